import { decodeRevert } from '@agent-trading-service/protocol/decode-revert'
import { type DecodedExitStatus, decodeExitStatus } from '@agent-trading-service/protocol/exit-results'
import type { ExitRule } from '@agent-trading-service/protocol/exit-rule'
import type { Order } from '@agent-trading-service/protocol/order-typed-data'
import type { Position } from '@agent-trading-service/protocol/position'
import { type Address, type Hex, isAddressEqual, keccak256, parseAbi, toHex, zeroAddress } from 'viem'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import { standInCode } from '../../contracts-abi/stand-in-bytecode.ts'
import { uniswapV3FactoryAbi } from '../../contracts-abi/uniswap-v3-factory.ts'
import { uniswapV3SwapAdapterAbi } from '../../contracts-abi/uniswap-v3-swap-adapter.ts'
import { refuse } from '../errors/refuse.ts'
import type { StateOverride } from '../rpc/requests.ts'
import { existing, foundAgent } from './agent-record.ts'
import { agentRecordCall } from './agents.ts'
import { readerCall, readerOverride, readerValues } from './call-service-reader.ts'
import type { Block, TradingChain } from './configured-chain.ts'
import { positionManager, priceOracle, tokenRegistry, tradeRouter } from './contracts.ts'
import { encodeCall } from './encode-and-decode-call.ts'
import { movedPool, sqrtPriceAt } from './moved-pool.ts'
import { decodePosition } from './positions.ts'
import { decodeTerms, type IntentTerms, termsQuery } from './read-intent-terms.ts'
import { attempt, type ContractCall, call, optional, readTree } from './read-tree.ts'
import { decodeRisk, type Risk } from './risk-state.ts'

// What would happen at other prices, and after intents that nobody has signed: the contracts themselves run it, in an
// `eth_call` whose state is changed. Code that accepts every signature stands in for the agent's signer, and code that
// makes the calls for the admins of router and oracle. Nothing is sent, and nothing but prices, pools and these
// accounts differs.

/** An intent as an agent would sign it. Amounts are base units. */
export type WhatIfIntent =
  | { kind: 'open'; token: Address; usdcAmount: bigint; minTokenOut: bigint; maxSlippageBps: number; exits: ExitRule[] }
  | { kind: 'add'; positionId: bigint; usdcAmount: bigint; minTokenOut: bigint; maxSlippageBps: number }
  | { kind: 'reduce'; positionId: bigint; exitBps: number }
  | { kind: 'exitLadder'; positionId: bigint; exits: ExitRule[] }

/** A price in USD with 8 decimals. */
type WhatIfPrice = { token: Address; price: bigint }

/** How long the intents are valid, as those that agents sign. */
const VALIDITY_SECONDS = 60n
const EXECUTOR_ROLE = keccak256(toHex('EXECUTOR_ROLE'))
const ORACLE_FORCER_ROLE = keccak256(toHex('ORACLE_FORCER_ROLE'))

const standInAbi = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calls) returns (Result[] results)',
])

/** What became of an intent: its terms before, and what the router returned or why it reverted. */
export type IntentOutcome = { terms: IntentTerms; returned: bigint | undefined; revertData: Hex | undefined }
export type ExitOutcome = DecodedExitStatus & { positionId: bigint }
/** An order, and why it would not execute. */
type OrderOutcome = OpenOrder & { revertData: Hex | undefined }
/** The open orders of an agent, and the order book that has them. */
export type OpenOrders = { book: Address; orders: readonly OpenOrder[] }
type OpenOrder = { orderId: Hex; order: Order }

export type WhatIf = {
  block: Block
  signer: Address
  before: Risk
  after: Risk
  intents: IntentOutcome[]
  exits: ExitOutcome[]
  orders: OrderOutcome[]
  /** The open positions after the intents, before and after the exits and orders. */
  held: Position[]
  positions: Position[]
}

const poolAbi = parseAbi([
  'function token0() view returns (address)',
  'function slot0() view returns (uint160, int24, uint16, uint16, uint16, uint8, bool)',
  'function observe(uint32[]) view returns (int56[], uint160[])',
])

/**
 * Sets prices, executes intents in their order, then the exits that are due and the orders whose price or time has
 * come, all in one `eth_call`. One or two reads of the same block come before it. Throws AGENT_NOT_FOUND,
 * POSITION_NOT_FOUND, POOL_NOT_CONFIGURED and WHAT_IF_UNAVAILABLE.
 */
export async function runWhatIf(
  chain: TradingChain,
  {
    agentId,
    prices,
    intents,
    open: { book, orders },
  }: { agentId: bigint; prices: readonly WhatIfPrice[]; intents: readonly WhatIfIntent[]; open: OpenOrders },
): Promise<WhatIf> {
  const { block, agent, nonce, positionIds, routerAdmin, oracleAdmin, override } = await readStart(chain, {
    agentId,
    prices,
    opened: intents.length,
  })
  const deadline = block.timestamp + VALIDITY_SECONDS
  const reads = () => readerCall(chain, 'riskFigures', agentId)
  const { values } = await readTree(
    chain,
    {
      before: reads(),
      role: call(tradeRouter(chain), 'grantRole', [EXECUTOR_ROLE, routerAdmin]),
      prices: prices.length === 0 ? [] : [asAdmin(oracleAdmin, priceCalls(chain, oracleAdmin, prices))],
      intents: intents.map((intent, index) => ({
        terms: readerCall(chain, 'intentTerms', termsQuery(agentId, intent)),
        // A refused intent keeps its nonce, so this one may have any from the first to its own place. Descending,
        // because an attempt that executes makes the next nonce valid.
        attempts: Array.from({ length: index + 1 }, (_, refused) => {
          const used = BigInt(index - refused)
          return attempt(intentCall(chain, intent, { agentId, vault: agent.vault, deadline, nonce: nonce + used }))
        }),
      })),
      held: readerCall(chain, 'openPositions', agentId),
      exits: call(tradeRouter(chain), 'executeExits', [positionIds]),
      orders: orders.map(({ order }) => attempt(call({ address: book, abi: orderBookAbi }, 'executeOrder', [order]))),
      positions: readerCall(chain, 'openPositions', agentId),
      after: reads(),
    },
    block,
    { from: routerAdmin, override },
  )
  if (values.prices.flat().some(({ success }) => !success)) throw refuse('WHAT_IF_UNAVAILABLE')
  const [statuses, reasons] = values.exits
  const positionsIn = (held: (typeof values)['held']) =>
    readerValues('openPositions', held).positions.flatMap(each => decodePosition(each) ?? [])
  const riskIn = (risk: (typeof values)['before']) => decodeRisk(agentId, readerValues('riskFigures', risk).risk)
  return {
    block,
    signer: agent.signer,
    before: riskIn(values.before),
    after: riskIn(values.after),
    intents: await Promise.all(
      values.intents.map(async ({ terms: read, attempts }, index) => {
        const { terms: results } = readerValues('intentTerms', read)
        const terms = await decodeTerms(chain, { block, results, agentId, subject: intents[index] ?? {} })
        const tried = attempts.find(({ revertData }) => decodeRevert(revertData)?.name !== 'InvalidNonce')
        return { terms, returned: tried?.value as bigint | undefined, revertData: tried?.revertData }
      }),
    ),
    exits: positionIds.map((positionId, index) => ({
      positionId,
      ...decodeExitStatus(statuses[index], reasons[index]),
    })),
    orders: orders.map((each, index) => ({ ...each, revertData: values.orders[index]?.revertData })),
    held: positionsIn(values.held),
    positions: positionsIn(values.positions),
  }
}

/** Reads what the simulation starts from, and prepares the accounts and pools that it changes. */
async function readStart(
  chain: TradingChain,
  { agentId, prices, opened }: { agentId: bigint; prices: readonly WhatIfPrice[]; opened: number },
) {
  const adapter = { address: chain.contracts.SwapAdapter ?? zeroAddress, abi: uniswapV3SwapAdapterAbi }
  const { block, values } = await readTree(chain, {
    agent: agentRecordCall(chain, agentId),
    nonce: call(tradeRouter(chain), 'nonces', [agentId]),
    routerAdmin: optional(call(tradeRouter(chain), 'defaultAdmin', [])),
    oracleAdmin: optional(call(priceOracle(chain), 'defaultAdmin', [])),
    count: call(positionManager(chain), 'positionCount', []),
    openIds: call(positionManager(chain), 'getOpenPositionIds', [agentId]),
    markets: prices.map(({ token, price }) => ({
      token,
      price,
      decimals: call(tokenRegistry(chain), 'tokenDecimals', [token]),
      pool: optional(call(adapter, 'poolOf', [token])),
      fees: optional(call(adapter, 'poolFeesOf', [token])),
    })),
    factory: prices.length === 0 ? undefined : optional(call(adapter, 'factory', [])),
  })
  const { nonce, routerAdmin, oracleAdmin, count, openIds } = values
  const agent = foundAgent(existing(values.agent), agentId)
  if (!isNamed(routerAdmin) || !isNamed(oracleAdmin)) throw refuse('WHAT_IF_UNAVAILABLE')
  const newIds = Array.from({ length: opened }, (_, index) => count + BigInt(index + 1))
  const standIns = [routerAdmin, oracleAdmin, agent.signer].map(account => [account, { code: standInCode }] as const)
  const override: StateOverride = {
    ...Object.fromEntries(standIns),
    ...readerOverride,
    ...(await movedPools(chain, block, await withOtherPools(chain, block, values))),
  }
  return { block, agent, nonce, positionIds: [...openIds, ...newIds], routerAdmin, oracleAdmin, override }
}

/** Tells whether contracts have an admin: some name none, and some have none any more. */
const isNamed = (admin: Address | undefined): admin is Address => admin !== undefined && admin !== zeroAddress

type PricedPool = { token: Address; price: bigint; decimals: number; pool: Address | undefined }

/** Adds the other pools in which the tokens trade: one more read, and only where a token has some. */
async function withOtherPools(
  chain: TradingChain,
  block: Block,
  {
    markets,
    factory = zeroAddress,
  }: {
    markets: readonly (PricedPool & { fees: readonly number[] | undefined })[]
    factory: Address | undefined
  },
): Promise<PricedPool[]> {
  const others = markets.flatMap(({ fees = [], ...market }) =>
    fees.slice(1).flatMap(fee => (fee === 0 ? [] : [{ ...market, fee }])),
  )
  if (others.length === 0) return [...markets]
  const { values } = await readTree(
    chain,
    others.map(({ fee, ...market }) => ({
      ...market,
      pool: call({ address: factory, abi: uniswapV3FactoryAbi }, 'getPool', [
        chain.contracts.USDC ?? zeroAddress,
        market.token,
        fee,
      ]),
    })),
    block,
  )
  return [...markets, ...values]
}

/** Returns the pools as trades to the prices would leave them. Throws POOL_NOT_CONFIGURED. */
async function movedPools(chain: TradingChain, block: Block, markets: readonly PricedPool[]): Promise<StateOverride> {
  if (markets.length === 0) return {}
  const { values } = await readTree(
    chain,
    markets.map(({ token, price, decimals, pool }) => {
      if (pool === undefined || pool === zeroAddress) throw refuse('POOL_NOT_CONFIGURED', { token })
      const contract = { address: pool, abi: poolAbi }
      return {
        pool,
        price,
        decimals,
        token0: call(contract, 'token0', []),
        slot0: call(contract, 'slot0', []),
        observed: call(contract, 'observe', [[0]]),
        token,
      }
    }),
    block,
  )
  return Object.fromEntries(
    values.map(({ pool, price, decimals, token0, token, ...state }) => {
      const sqrtPriceX96 = sqrtPriceAt({ price, decimals }, { isUsdcFirst: !isAddressEqual(token0, token) })
      return [pool, { stateDiff: movedPool(state, sqrtPriceX96, block) }]
    }),
  )
}

/** Returns the calls that set prices. The admin of the oracle gives itself the role that no bound limits. */
const priceCalls = (chain: TradingChain, admin: Address, prices: readonly WhatIfPrice[]) => {
  const { address, abi } = priceOracle(chain)
  return [
    encodeCall(abi, 'grantRole', [ORACLE_FORCER_ROLE, admin]),
    ...prices.map(({ token, price }) => encodeCall(abi, 'forcePrice', [token, price])),
  ].map(callData => ({ target: address, allowFailure: true, callData }))
}

const asAdmin = (admin: Address, calls: ReturnType<typeof priceCalls>) =>
  call({ address: admin, abi: standInAbi }, 'aggregate3', [calls])

/** Returns the router's call of an intent, with no signature. */
function intentCall(
  chain: TradingChain,
  { kind: _, ...intent }: WhatIfIntent,
  signed: { agentId: bigint; vault: Address; deadline: bigint; nonce: bigint },
): ContractCall<unknown> {
  const router = tradeRouter(chain)
  const { vault, ...fields } = signed
  if ('token' in intent) return call(router, 'openPosition', [{ ...intent, ...fields, vault }, NO_SIGNATURE])
  if ('usdcAmount' in intent) return call(router, 'addToPosition', [{ ...intent, ...fields }, NO_SIGNATURE])
  if ('exitBps' in intent) return call(router, 'reducePosition', [{ ...intent, ...fields }, NO_SIGNATURE])
  return call(router, 'updateExitLadder', [{ ...intent, ...fields }, NO_SIGNATURE])
}
const NO_SIGNATURE = '0x'
