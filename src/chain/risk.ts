import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { tradeRouterLensAbi } from '../../contracts-abi/trade-router-lens.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import { refuse } from '../errors.ts'
import { outcomeOf } from './calls.ts'
import { worth } from './checks.ts'
import { type Block, maybe, must, type TradingChain } from './client.ts'
import type { TrackConfig } from './market.ts'
import { type Position, positionOf } from './positions.ts'
import { askReader } from './reader.ts'
import { type Agent, agentOf } from './registry.ts'
import { type Allocation, allocationOf } from './terms.ts'

/** Risk figures of an agent at one block; amounts in USDC base units, signed where PnL. */
export type Risk = {
  agent: Agent
  allocation: Allocation & { createdAt: bigint }
  trackConfig: TrackConfig
  equity: { peak: bigint; current: bigint; drawdownBps: bigint }
  unrealizedPnlUsdc: bigint
  lifetimeRealizedPnlUsdc: bigint
  dailyRealizedPnlUsdc: bigint
  day: bigint
  opened: bigint
  closed: bigint
  openCount: bigint
  trades: bigint
  /** Tokens without a fresh price: the equity then counts them at the last known one. */
  staleTokens: `0x${string}`[]
}

/** Reads the risk figures in one round trip. Throws AGENT_NOT_FOUND. */
export async function getRisk(chain: TradingChain, agentId: bigint): Promise<{ block: Block; risk: Risk }> {
  const { block, answers } = await askReader(chain, 'riskFigures', agentId)
  const [figures] = answers
  const agent = agentOf(figures.agent)
  if (agent === undefined) throw refuse('AGENT_NOT_FOUND', { agentId: `${agentId}` })

  const positions = figures.positions.flatMap(position => positionOf(position) ?? [])
  const lastKnown = new Map<string, LastKnown>()
  for (const [index, { token }] of positions.entries()) {
    const round = maybe(outcomeOf(priceOracleAbi, 'latestRoundData', figures.lastRounds[index]))
    const decimals = maybe(outcomeOf(tokenRegistryAbi, 'tokenDecimals', figures.decimals[index]))
    if (round && decimals !== undefined) lastKnown.set(token, { price: round[1], decimals })
  }
  const stale = positions.filter(({ unrealizedPnlUsdc }) => unrealizedPnlUsdc === undefined)
  const unrealized = positions.reduce(
    (sum, position) => sum + (position.unrealizedPnlUsdc ?? lastKnownPnl(position, lastKnown)),
    0n,
  )

  const { cap, used, status, createdAt } = allocationOf(figures.allocation)
  const lifetimeRealizedPnlUsdc = must(
    outcomeOf(tradeRouterAbi, 'lifetimeRealizedPnlUsdc', figures.lifetimeRealizedPnl),
  )
  const peak = maybe(outcomeOf(tradeRouterLensAbi, 'peakEquityUsdc', figures.peakEquity)) ?? cap
  const current =
    maybe(outcomeOf(tradeRouterLensAbi, 'currentEquityUsdc', figures.currentEquity)) ??
    atLeastZero(cap + lifetimeRealizedPnlUsdc + unrealized)
  const drawdown = maybe(outcomeOf(tradeRouterLensAbi, 'currentDrawdownBps', figures.currentDrawdown))
  return {
    block,
    risk: {
      agent,
      allocation: { cap, used, status, createdAt },
      trackConfig: must(outcomeOf(vaultTrackRegistryAbi, 'getVaultTrackConfig', figures.trackConfig)),
      equity: {
        peak: peak > current ? peak : current,
        current,
        drawdownBps: drawdown ?? drawdownBps(peak, current),
      },
      unrealizedPnlUsdc: unrealized,
      lifetimeRealizedPnlUsdc,
      dailyRealizedPnlUsdc: must(outcomeOf(tradeRouterAbi, 'dailyRealizedPnlUsdc', figures.dailyRealizedPnl)),
      day: figures.day,
      opened: must(outcomeOf(tradeRouterLensAbi, 'positionsOpened', figures.positionsOpened)),
      closed: must(outcomeOf(tradeRouterLensAbi, 'positionsClosed', figures.positionsClosed)),
      openCount: BigInt(must(outcomeOf(positionManagerAbi, 'getOpenPositionIds', figures.openPositionIds)).length),
      trades: must(outcomeOf(tradeRouterLensAbi, 'tradeCount', figures.tradeCount)),
      staleTokens: [...new Set(stale.map(({ token }) => token))],
    },
  }
}

/** Unrealized PnL of a position whose price is stale, at the last known price; 0 when there is none. */
function lastKnownPnl({ token, tokenAmount, usdcCostBasis }: Position, known: Map<string, LastKnown>): bigint {
  const market = known.get(token)
  return market === undefined ? 0n : worth(tokenAmount, market) - usdcCostBasis
}
type LastKnown = { price: bigint; decimals: number }

const atLeastZero = (value: bigint) => (value > 0n ? value : 0n)
const drawdownBps = (peak: bigint, current: bigint) => (peak > current ? ((peak - current) * 10_000n) / peak : 0n)
