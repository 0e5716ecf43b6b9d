import { PositionStatus } from '@agent-trading-service/protocol/enums'
import { type PriceQuote, strictestMaxAge, toPriceQuote } from '@agent-trading-service/protocol/oracle-price'
import type { OrderRecord } from '@agent-trading-service/protocol/order-record'
import { type Domain, toDomain } from '@agent-trading-service/protocol/typed-data'
import { type Address, isAddressEqual, zeroAddress } from 'viem'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import { nowAt } from '../clock.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import { existing, foundAgent } from './agent-record.ts'
import { agentRecordCall } from './agents.ts'
import { sourceOf } from './carried-prices.ts'
import type { Block, Chain, TradingChain } from './configured-chain.ts'
import { refusalOfRevert } from './contract-error-refusals.ts'
import { agentRegistry, eip712Contract, mandateVault, positionManager, priceOracle, tradeRouter } from './contracts.ts'
import type { SigningTerms } from './read-intent-terms.ts'
import { call, optional, readTree } from './read-tree.ts'
import { multiplierCalls, multiplierIn } from './token-facts.ts'

const orderBook = (address: Address) => ({ address, abi: orderBookAbi })

/** Reads what an agent's next order, or a cancellation, must match. Throws AGENT_NOT_FOUND, ORDER_BOOK_NOT_SET. */
export async function getOrderTerms(chain: TradingChain, agentId: bigint): Promise<{ block: Block } & SigningTerms> {
  const { block, values } = await readTree(chain, {
    record: agentRecordCall(chain, agentId),
    nonce: call(tradeRouter(chain), 'nonces', [agentId]),
    book: bookCall(chain),
  })
  const agent = foundAgent(existing(values.record), agentId)
  return { block, agent, nonce: values.nonce, domain: await domainOf(chain, values.book, block) }
}

/** Reads the domain of the order book; undefined in a deployment without one. */
export async function readOrderBookDomain(chain: TradingChain): Promise<Domain | undefined> {
  const { block, values } = await readTree(chain, { book: bookCall(chain) })
  if (values.book === undefined || values.book === zeroAddress) return undefined
  return domainOf(chain, values.book, block)
}

const bookCall = (chain: Chain) => optional(call(agentRegistry(chain), 'orderBook', []))

async function domainOf(chain: TradingChain, book: Address | undefined, at: Block): Promise<Domain> {
  if (book === undefined || book === zeroAddress) throw refuse('ORDER_BOOK_NOT_SET')
  const known = chain.memory.orderBookDomain
  if (known && isAddressEqual(book, known.verifyingContract)) return known
  const { values } = await readTree(chain, call(eip712Contract(book), 'eip712Domain', []), at)
  const domain = toDomain(values)
  if (!isAddressEqual(book, domain.verifyingContract) || domain.chainId !== BigInt(chain.id))
    throw refuse('ORDER_BOOK_NOT_SET')
  chain.memory.orderBookDomain = domain
  return domain
}

/**
 * What the chain says about an order that has not ended in the index. Prices have 8 decimals, times are Unix seconds.
 */
export type OrderState = {
  /** Undefined once it has ended: its slot is free then. */
  open: { peak: bigint; nextAt: number } | undefined
  /** What it waits for; undefined if nothing, as far as the order book and the oracle are concerned. */
  waitsFor: Refusal | undefined
  isPositionClosed: boolean
  quote: PriceQuote
}

/** Reads the states of an agent's orders at a block, in one call. */
export async function readOrderStates(
  chain: TradingChain,
  { domain, agent }: Pick<SigningTerms, 'domain' | 'agent'>,
  orders: readonly Pick<OrderRecord, 'orderId' | 'order' | 'executions'>[],
  at: Block,
): Promise<OrderState[]> {
  if (orders.length === 0) return []
  const book = orderBook(domain.verifyingContract)
  const { values } = await readTree(
    chain,
    {
      maxAge: optional(call(mandateVault(agent.vault), 'maxPriceAge', [])),
      orders: orders.map(({ orderId, order, executions }) => ({
        token: order.token,
        state: call(book, 'orderStateOf', [order.agentId, orderId]),
        waitsFor: optional(call(book, 'waitsFor', [order])),
        // An order that opens a position is signed without one.
        position: optional(
          call(positionManager(chain), 'getPosition', [executions.at(-1)?.positionId ?? order.positionId]),
        ),
        round: optional(call(priceOracle(chain), 'latestRoundData', [order.token])),
        maxAge: optional(call(priceOracle(chain), 'maxAgeOf', [order.token])),
        multiplier: multiplierCalls(chain, order.token),
      })),
    },
    at,
  )
  return values.orders.map(({ token, state, waitsFor, position, round, maxAge, multiplier }) => ({
    open: state.placedAt === 0 ? undefined : state,
    waitsFor: waitsFor === undefined || waitsFor === '0x' ? undefined : refusalOfRevert(waitsFor),
    isPositionClosed: position?.status === PositionStatus.Closed,
    quote: toPriceQuote(round, strictestMaxAge([values.maxAge ?? 0n, maxAge ?? 0n]), {
      at: nowAt(at),
      effectiveAt: multiplierIn(multiplier).effectiveAt,
      source: sourceOf(chain, token).kind,
    }),
  }))
}
