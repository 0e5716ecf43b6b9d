import { decodeRevert } from '@agent-trading-service/protocol/decode-revert'
import { type Finding, findingsOf } from '@agent-trading-service/protocol/finding'
import type { PriceSourceKind } from '@agent-trading-service/protocol/oracle-price'
import { type Address, formatUnits, type Hex, zeroAddress } from 'viem'
import { uniswapV3SwapAdapterAbi } from '../../contracts-abi/uniswap-v3-swap-adapter.ts'
import type { Chain } from '../chain/configured-chain.ts'
import { priceOracle } from '../chain/contracts.ts'
import { attempt, call, optional, readTree } from '../chain/read-tree.ts'
import type { Token } from '../chain/read-vaults-and-tokens.ts'
import { Refusal } from '../errors/refusal.ts'

/** What is known about the price of a token that does not come from the updater. Prices have 8 decimals. */
export type PriceSourceFact = {
  symbol: string
  kind: Exclude<PriceSourceKind, 'updater'>
  /** Why the provider has no report; undefined if it has one, or if no market trades. */
  problem?: string | undefined
  /** Why the oracle refuses what the source says: the name of its error. */
  refusal?: string | undefined
  price: bigint
  /** The average of the pool; undefined without one. */
  poolPrice: bigint | undefined
}

const sources = findingsOf('price source')

/** Further than this from the pool's average, one of the two is wrong, or a trade moves the other soon. */
const MAX_DRIFT_BPS = 300n
const BPS = 10_000n
const TWAP_SECONDS = 300

/** Judges the sources of prices that prove themselves: whether they say something, and what their pools say to it. */
export const judgePriceSources = (facts: readonly PriceSourceFact[]): Finding[] =>
  facts.map(({ symbol, kind, problem, refusal, price, poolPrice }) => {
    const name = kind === 'feed' ? 'push feed' : 'signed report'
    if (problem !== undefined)
      return sources.wrong(
        symbol,
        `There is no ${name} of ${symbol}: ${problem}. It cannot be traded.`,
        'check DATA_STREAMS_URL, DATA_STREAMS_KEY and DATA_STREAMS_SECRET, and the provider',
      )
    if (refusal !== undefined)
      return sources.wrong(
        symbol,
        `The oracle refuses the newest ${name} of ${symbol}: ${refusal}.`,
        `compare the source with the provider's list of streams: ats admin call 'PriceOracle.sourceOf("${symbol}")'`,
      )
    const drift = driftBps(price, poolPrice)
    if (drift !== undefined && drift > MAX_DRIFT_BPS)
      return sources.warning(
        symbol,
        `The ${name} of ${symbol} says ${usd(price)} and its pool ${usd(poolPrice)}: they are ${drift} basis points apart.`,
        'find out which of them is wrong before the router refuses trades, or someone trades against it',
      )
    return sources.ok(symbol, `The price of ${symbol} comes from a ${name}, ${usd(price)}.`)
  })

const usd = (price: bigint | undefined) => `$${formatUnits(price ?? 0n, 8)}`

function driftBps(price: bigint, poolPrice: bigint | undefined): bigint | undefined {
  if (price === 0n || poolPrice === undefined || poolPrice === 0n) return undefined
  return ((price > poolPrice ? price - poolPrice : poolPrice - price) * BPS) / poolPrice
}

/** Reads what the sources say at the moment, and whether the oracle takes it. Throws CHAIN_UNREACHABLE. */
export async function readPriceSources(
  chain: Chain,
  tokens: readonly Pick<Token, 'symbol' | 'address' | 'source'>[],
): Promise<PriceSourceFact[]> {
  const proven = tokens.filter(({ source }) => source.kind !== 'updater')
  if (proven.length === 0) return []
  // All of them at once first, so that the provider is asked once.
  const streams = proven.flatMap(({ source }) => (source.kind === 'reports' ? [source.feedIds] : []))
  const problem = await reportsOf(chain, streams).then(
    () => undefined,
    error => problemOf(error),
  )
  const carried = await Promise.all(
    proven.map(async ({ source }) => {
      if (source.kind !== 'reports' || problem !== undefined) return { reports: [], problem }
      return reportsOf(chain, [source.feedIds]).then(
        reports => ({ reports, problem }),
        error => ({ reports: [], problem: problemOf(error) }),
      )
    }),
  )
  const oracle = priceOracle(chain)
  const adapter = { address: chain.contracts.SwapAdapter ?? zeroAddress, abi: uniswapV3SwapAdapterAbi }
  const { values } = await readTree(
    chain,
    proven.map(({ address, source }, index) => ({
      taken:
        source.kind === 'feed'
          ? attempt(call(oracle, 'syncFeeds', [[address]]))
          : attempt(call(oracle, 'postReports', [carried[index]?.reports ?? []])),
      round: optional(call(oracle, 'latestRoundData', [address])),
      pool: optional(call(adapter, 'pricesOf', [address, TWAP_SECONDS])),
    })),
  )
  return proven.map(({ symbol, source }, index) => {
    const { taken, round, pool } = values[index] ?? {}
    const [spot, twap] = pool ?? []
    return {
      symbol,
      kind: source.kind === 'feed' ? 'feed' : 'reports',
      problem: source.kind === 'reports' ? carried[index]?.problem : undefined,
      refusal: taken?.revertData === undefined ? undefined : nameOf(taken.revertData),
      price: round?.[1] ?? 0n,
      poolPrice: twap || spot,
    }
  })
}

async function reportsOf({ reports }: Chain, streams: readonly (readonly Hex[])[]): Promise<readonly Hex[]> {
  if (streams.length === 0) return []
  if (reports === undefined) throw new Error('no provider of reports')
  return (await reports.carriedFor({ streams, feeds: [] as Address[] })).reports
}

const problemOf = (error: unknown): string =>
  error instanceof Refusal ? `${error.body.details?.problem}` : 'nothing reads its reports here'

const nameOf = (revertData: Hex): string => decodeRevert(revertData)?.name ?? 'it reverts without a reason'
