import { PositionStatus } from '@agent-trading-service/protocol/enums'
import { type PriceQuote, strictestMaxAge, toPriceQuote } from '@agent-trading-service/protocol/oracle-price'
import type { Order } from '@agent-trading-service/protocol/order-typed-data'
import { type Domain, toDomain } from '@agent-trading-service/protocol/typed-data'
import { type Address, type Hex, isAddressEqual, zeroAddress } from 'viem'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import { nowAt } from '../clock.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import { type AgentRecord, agentRecordCall, existing } from './agents.ts'
import type { Block, Chain, TradingChain } from './configured-chain.ts'
import { refusalOfRevert } from './contract-error-refusals.ts'
import { agentRegistry, eip712Contract, mandateVault, positionManager, priceOracle, tradeRouter } from './contracts.ts'
import { call, optional, readTree } from './read-tree.ts'

/** What the signature of an agent's next order, or of a cancellation, must match. */
export type OrderTerms = {
  agent: AgentRecord
  /** The agent's next nonce, which orders share with intents. */
  nonce: bigint
  /** The domain of the order book, which is its `verifyingContract`. */
  domain: Domain
  openOrderCount: bigint
  maxOpenOrders: bigint
}

/** An order book: its domain, which is fixed in its code, and how many open orders it lets an agent have. */
type OrderBook = { domain: Domain; maxOpenOrders: bigint }

/** The order books that this isolate has read, by the configured trading contracts. */
const knownBooks = new WeakMap<object, OrderBook>()

const orderBook = (address: Address) => ({ address, abi: orderBookAbi })

/** Reads what an agent's next order must match. Throws AGENT_NOT_FOUND, ORDER_BOOK_NOT_SET. */
export async function getOrderTerms(
  chain: TradingChain,
  agentId: bigint,
  at?: Block,
): Promise<{ block: Block } & OrderTerms> {
  const known = knownBooks.get(chain.trading)
  const { block, values } = await readTree(
    chain,
    {
      record: agentRecordCall(chain, agentId),
      nonce: call(tradeRouter(chain), 'nonces', [agentId]),
      book: bookCall(chain),
      count: known && optional(call(orderBook(known.domain.verifyingContract), 'openOrderCount', [agentId])),
    },
    at,
  )
  const agent = existing(values.record)
  if (agent === undefined) throw refuse('AGENT_NOT_FOUND', { agentId })
  if (known && values.count !== undefined && isSame(values.book, known))
    return { block, agent, nonce: values.nonce, openOrderCount: values.count, ...known }
  await readOrderBook(chain, values.book, block)
  return getOrderTerms(chain, agentId, block)
}

/** Reads the domain of the order book; undefined in a deployment without one. */
export async function readOrderBookDomain(chain: TradingChain): Promise<Domain | undefined> {
  const { block, values } = await readTree(chain, { book: bookCall(chain) })
  if (values.book === undefined || values.book === zeroAddress) return undefined
  return (await readOrderBook(chain, values.book, block)).domain
}

const bookCall = (chain: Chain) => optional(call(agentRegistry(chain), 'orderBook', []))

const isSame = (address: Address | undefined, { domain }: OrderBook) =>
  address !== undefined && isAddressEqual(address, domain.verifyingContract)

async function readOrderBook(chain: TradingChain, address: Address | undefined, at: Block): Promise<OrderBook> {
  if (address === undefined || address === zeroAddress) throw refuse('ORDER_BOOK_NOT_SET')
  const known = knownBooks.get(chain.trading)
  if (known && isSame(address, known)) return known
  const { values } = await readTree(
    chain,
    {
      domain: call(eip712Contract(address), 'eip712Domain', []),
      maxOpenOrders: call(orderBook(address), 'MAX_OPEN_ORDERS', []),
    },
    at,
  )
  const book = { domain: toDomain(values.domain), maxOpenOrders: values.maxOpenOrders }
  if (!isSame(address, book) || book.domain.chainId !== BigInt(chain.id)) throw refuse('ORDER_BOOK_NOT_SET')
  knownBooks.set(chain.trading, book)
  return book
}

/** Reads whether an order of an agent is open at a block. */
export async function isOrderOpen(
  chain: TradingChain,
  { agentId, orderId, domain }: { agentId: bigint; orderId: Hex; domain: Domain },
  at: Block,
): Promise<boolean> {
  const { values } = await readTree(
    chain,
    call(orderBook(domain.verifyingContract), 'orderStateOf', [agentId, orderId]),
    at,
  )
  return values.placedAt > 0
}

/** What the chain says about an order that has not ended in the index. Prices have 8 decimals, times are Unix seconds. */
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
  { domain, agent }: Pick<OrderTerms, 'domain' | 'agent'>,
  orders: readonly { orderId: Hex; order: Order }[],
  at: Block,
): Promise<OrderState[]> {
  if (orders.length === 0) return []
  const book = orderBook(domain.verifyingContract)
  const { values } = await readTree(
    chain,
    {
      maxAge: optional(call(mandateVault(agent.vault), 'maxPriceAge', [])),
      orders: orders.map(({ orderId, order }) => ({
        state: call(book, 'orderStateOf', [order.agentId, orderId]),
        waitsFor: optional(call(book, 'waitsFor', [order])),
        position: optional(call(positionManager(chain), 'getPosition', [order.positionId])),
        round: optional(call(priceOracle(chain), 'latestRoundData', [order.token])),
        maxAge: optional(call(priceOracle(chain), 'maxAgeOf', [order.token])),
      })),
    },
    at,
  )
  return values.orders.map(({ state, waitsFor, position, round, maxAge }) => ({
    open: state.placedAt === 0 ? undefined : state,
    waitsFor: waitsFor === undefined || waitsFor === '0x' ? undefined : refusalOfRevert(waitsFor),
    isPositionClosed: position?.status === PositionStatus.Closed,
    quote: toPriceQuote(round, strictestMaxAge([values.maxAge ?? 0n, maxAge ?? 0n]), nowAt(at)),
  }))
}
