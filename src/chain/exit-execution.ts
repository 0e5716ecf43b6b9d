import {
  type Address,
  decodeEventLog,
  encodeFunctionData,
  getAbiItem,
  type Hex,
  isAddressEqual,
  numberToHex,
  toEventSelector,
} from 'viem'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { decodeRevert } from '../protocol/contract-errors.ts'
import { PositionStatus } from '../protocol/enums.ts'
import type { ExitMarket } from '../protocol/pending-exits.ts'
import type { WatchedPosition } from '../protocol/position.ts'
import { type RoundData, strictestMaxAge, toPriceQuote } from '../protocol/price-quote.ts'
import type { ExitRule } from '../protocol/typed-data.ts'
import { getLogs } from '../rpc/get-logs.ts'
import { type Block, maybe, read, type TradingChain } from './chain.ts'

export type Watch = {
  block: Block
  /** Ids run from 1 to here. */
  positionCount: bigint
  /** Those of the ids that exist, open or closed. */
  positions: WatchedPosition[]
  marketOf: (position: Pick<WatchedPosition, 'token' | 'vault'>) => ExitMarket
  /** Whether the router takes many exits in one call. */
  takesBatches: boolean
}

/** New positions that are looked for on the chance that they exist; more are read in another page. */
const SPARE = 8n
/** Positions of one `eth_call`: a page stays far below the gas that nodes give a call. */
const PAGE = 300

/** Tokens and vaults that positions have named and the configuration does not. */
const learned = new WeakMap<object, Set<Address>>()

/**
 * Reads positions with all that decides about their exits: the given ids, and every id after `cursor` where there is one.
 * One `eth_call` at one block, another one per further 300 positions; since nodes may not keep any state but the newest,
 * those may be of a later block than the one answered. Throws CHAIN_UNREACHABLE.
 */
export async function readWatch(chain: TradingChain, ids: readonly bigint[], cursor?: bigint): Promise<Watch> {
  const { contracts, trading } = chain
  const extra = learned.get(contracts) ?? new Set()
  learned.set(contracts, extra)
  const tokens = new Set([...Object.values(chain.tokens), ...extra])
  const vaults = new Set([...Object.values(chain.vaults), ...extra])
  const rounds = new Map<Address, { round: RoundData | undefined; maxAge: bigint; decimals: number }>()
  const pauses = new Map<Address, { tradingPaused: boolean; maxPriceAge: bigint }>()
  const positions: WatchedPosition[] = []
  const manager = { address: trading.PositionManager, abi: positionManagerAbi } as const

  /** One round trip: a page of positions beside the tokens and vaults that are not known yet. */
  async function page(pageIds: readonly bigint[]) {
    const newTokens = [...tokens].filter(token => !rounds.has(token))
    const newVaults = [...vaults].filter(vault => !pauses.has(vault))
    const calls = [
      { ...manager, functionName: 'positionCount' },
      { address: trading.TradeRouter, abi: tradeRouterAbi, functionName: 'executeExits', args: [[]] },
      ...newTokens.flatMap(token => marketCalls(chain, token)),
      ...newVaults.flatMap(vaultCalls),
      ...pageIds.flatMap(id => [
        { ...manager, functionName: 'getPosition', args: [id] },
        { ...manager, functionName: 'getExitRules', args: [id] },
      ]),
    ]
    const { block, results } = await read(chain, calls as readonly unknown[])
    let next = 0
    const value = <T>() => maybe(results[next++] as never) as T | undefined
    const positionCount = value<bigint>() ?? 0n
    const takesBatches = value<unknown>() !== undefined
    for (const token of newTokens)
      rounds.set(token, {
        round: value<RoundData>(),
        maxAge: value<bigint>() ?? 0n,
        decimals: value<number>() ?? 18,
      })
    for (const vault of newVaults)
      pauses.set(vault, { tradingPaused: value<boolean>() ?? false, maxPriceAge: value<bigint>() ?? 0n })
    for (const _ of pageIds) {
      const record = value<Omit<WatchedPosition, 'exitRules'> & { openedAt: bigint }>()
      const exitRules = value<readonly ExitRule[]>()
      if (record && exitRules && record.openedAt > 0n) positions.push({ ...record, exitRules })
    }
    return { block, positionCount, takesBatches }
  }

  const wanted = [...ids, ...(cursor === undefined ? [] : range(cursor + 1n, cursor + SPARE))]
  const first = await page(wanted.splice(0, PAGE))
  if (cursor !== undefined) wanted.push(...range(cursor + SPARE + 1n, first.positionCount))
  while (wanted.length > 0) await page(wanted.splice(0, PAGE))

  const open = positions.filter(({ status }) => status === PositionStatus.Open)
  for (const { token, vault } of open)
    if (!tokens.has(token) || !vaults.has(vault)) {
      extra.add(token).add(vault)
      tokens.add(token)
      vaults.add(vault)
    }
  if (open.some(({ token, vault }) => !rounds.has(token) || !pauses.has(vault))) await page([])

  return {
    ...first,
    positions,
    marketOf({ token, vault }) {
      const { round, maxAge = 0n, decimals = 18 } = rounds.get(token) ?? {}
      const { tradingPaused = false, maxPriceAge = 0n } = pauses.get(vault) ?? {}
      return {
        quote: toPriceQuote(round, strictestMaxAge([maxPriceAge, maxAge]), first.block),
        decimals,
        tradingPaused,
      }
    },
  }
}

const range = (from: bigint, to: bigint) =>
  Array.from({ length: Math.max(0, Number(to - from) + 1) }, (_, index) => from + BigInt(index))

const marketCalls = ({ contracts }: TradingChain, token: Address) => [
  { address: contracts.PriceOracle, abi: priceOracleAbi, functionName: 'latestRoundData', args: [token] },
  { address: contracts.PriceOracle, abi: priceOracleAbi, functionName: 'maxAgeOf', args: [token] },
  { address: contracts.TokenRegistry, abi: tokenRegistryAbi, functionName: 'tokenDecimals', args: [token] },
]
const vaultCalls = (address: Address) => [
  { address, abi: mandateVaultAbi, functionName: 'tradingPaused' },
  { address, abi: mandateVaultAbi, functionName: 'maxPriceAge' },
]

/** What the router does with one position; the data is the revert data of one that it does not exit. */
export type ExitVerdict = {
  is: 'executed' | 'notDue' | 'stalePrice' | 'paused' | 'notOpen' | 'failed'
  data: Hex | undefined
}

// ITradeRouter.ExitStatus
const statuses = ['executed', 'notDue', 'stalePrice', 'paused', 'notOpen', 'failed'] as const

/** What the router would do with each position now, in one `eth_call`. Throws CHAIN_UNREACHABLE. */
export async function simulateExits(
  chain: TradingChain,
  positionIds: readonly bigint[],
  takesBatches: boolean,
): Promise<ExitVerdict[]> {
  const router = { address: chain.trading.TradeRouter, abi: tradeRouterAbi } as const
  if (!takesBatches) {
    const calls = positionIds.map(id => ({ ...router, functionName: 'executeExit', args: [id] }) as const)
    const { results } = await read(chain, calls as readonly unknown[])
    return results.map(({ error }) => (error ? verdictOf(error.data) : { is: 'executed', data: undefined }))
  }
  const { results } = await read(chain, [{ ...router, functionName: 'executeExits', args: [positionIds] }] as const)
  const [outcome] = results
  if (outcome.status === 'failure') return positionIds.map(() => ({ is: 'failed', data: outcome.error.data }))
  const [found, reasons] = outcome.result
  return positionIds.map((_, index) => ({ is: statuses[found[index] ?? 5] ?? 'failed', data: reasons[index] }))
}

const verdicts: Record<string, ExitVerdict['is']> = {
  TriggerNotMet: 'notDue',
  StalePrice: 'stalePrice',
  TokenNotQuoted: 'stalePrice',
  SequencerDown: 'stalePrice',
  SequencerGracePeriod: 'stalePrice',
  TradingPaused: 'paused',
  PositionNotOpen: 'notOpen',
  PositionNotFound: 'notOpen',
}

/** What the revert data of one exit means; `failed` where it is none of the reasons to wait. */
export const verdictOf = (data: Hex | undefined): ExitVerdict => ({
  is: verdicts[decodeRevert(data)?.name ?? ''] ?? 'failed',
  data,
})

/** The call that fires the exits: the batch, or the one exit where the router takes no batches. */
export function exitCall({ trading }: TradingChain, positionIds: readonly bigint[], takesBatches: boolean) {
  const [first] = positionIds
  if (first === undefined) throw new Error('There is no exit to fire')
  const data = takesBatches
    ? encodeFunctionData({ abi: tradeRouterAbi, functionName: 'executeExits', args: [positionIds] })
    : encodeFunctionData({ abi: tradeRouterAbi, functionName: 'executeExit', args: [first] })
  return { to: trading.TradeRouter, data }
}

/** An exit that was executed: which rule fired, by its place in the ladder now, and the USDC that the vault got. */
export type ExecutedExit = { ruleIndex: number; usdcOut: bigint }

const EXIT_EXECUTED = toEventSelector(getAbiItem({ abi: tradeRouterAbi, name: 'ExitExecuted' }))

/** The exits of positions in a range of blocks, oldest first, whoever fired them. Throws CHAIN_UNREACHABLE. */
export async function findExits(
  chain: TradingChain,
  { positionIds, fromBlock, toBlock }: { positionIds: readonly bigint[]; fromBlock: bigint; toBlock: bigint },
): Promise<(ExecutedExit & { positionId: bigint; keeper: Address; transactionHash: Hex })[]> {
  const topics = [EXIT_EXECUTED, positionIds.map(id => numberToHex(id, { size: 32 }))]
  const filter = { address: chain.trading.TradeRouter, topics }
  const logs = await getLogs(chain.rpc, filter, { fromBlock, toBlock })
  return logs.map(({ topics, data, transactionHash }) => {
    const { args } = decodeEventLog({
      ...{ abi: tradeRouterAbi, eventName: 'ExitExecuted' as const },
      ...{ topics: topics as [Hex, ...Hex[]], data },
    })
    return { ...args, transactionHash }
  })
}

/** The exits of a mined transaction by position id, from its logs. */
export function executedExits(
  { trading }: TradingChain,
  logs: readonly { address: Address; topics: Hex[]; data: Hex }[],
): Map<bigint, ExecutedExit> {
  const exits = new Map<bigint, ExecutedExit>()
  for (const { address, topics, data } of logs) {
    if (!isAddressEqual(address, trading.TradeRouter)) continue
    const event = decodeEventLog({ abi: tradeRouterAbi, topics: topics as [Hex, ...Hex[]], data })
    if (event.eventName !== 'ExitExecuted') continue
    const { positionId, ruleIndex, usdcOut } = event.args
    exits.set(positionId, { ruleIndex, usdcOut })
  }
  return exits
}
