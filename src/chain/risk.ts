import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { tradeRouterLensAbi } from '../../contracts-abi/trade-router-lens.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import { refuse } from '../errors.ts'
import { worth } from './checks.ts'
import { type Block, maybe, must, read, type TradingChain } from './client.ts'
import type { TrackConfig } from './market.ts'
import type { RoundData } from './oracle.ts'
import { type Position, positionCalls, toPosition } from './positions.ts'
import { type Agent, agentCalls, toAgent } from './registry.ts'
import type { Allocation } from './terms.ts'

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

/** Reads the risk figures in two round trips at one block. Throws AGENT_NOT_FOUND. */
export async function getRisk(chain: TradingChain, agentId: bigint): Promise<{ block: Block; risk: Risk }> {
  const { trading, contracts } = chain
  const args = [agentId] as const
  const router = { address: trading.TradeRouter, abi: tradeRouterAbi } as const
  const lens = { address: trading.TradeRouterLens, abi: tradeRouterLensAbi, args } as const
  const first = await read(chain, [
    ...agentCalls(chain, agentId),
    { address: trading.AllocationManager, abi: allocationManagerAbi, functionName: 'getAllocation', args },
    { address: trading.PositionManager, abi: positionManagerAbi, functionName: 'getOpenPositionIds', args },
    { ...router, functionName: 'lifetimeRealizedPnlUsdc', args },
    { ...lens, functionName: 'peakEquityUsdc' },
    { ...lens, functionName: 'currentEquityUsdc' },
    { ...lens, functionName: 'currentDrawdownBps' },
    { ...lens, functionName: 'tradeCount' },
    { ...lens, functionName: 'positionsOpened' },
    { ...lens, functionName: 'positionsClosed' },
  ] as const)
  const { block } = first
  const [record, isOwnerCurrent, allocation, openIds, lifetime, peak, current, drawdown, trades, opened, closed] =
    first.results
  const agent = toAgent(record, isOwnerCurrent)
  if (agent === undefined) throw refuse('AGENT_NOT_FOUND', { agentId: `${agentId}` })

  const ids = must(openIds)
  const day = block.timestamp / 86_400n
  const tokens = ids.length === 0 ? [] : Object.values(chain.tokens)
  const { results, more } = await read(
    chain,
    [
      {
        address: contracts.VaultTrackRegistry,
        abi: vaultTrackRegistryAbi,
        functionName: 'getVaultTrackConfig',
        args: [agent.vault, BigInt(agent.track)],
      },
      { ...router, functionName: 'dailyRealizedPnlUsdc', args: [agentId, day] },
    ] as const,
    block,
    [
      ...ids.flatMap(id => positionCalls(chain, id)),
      ...tokens.flatMap(
        token =>
          [
            { address: contracts.PriceOracle, abi: priceOracleAbi, functionName: 'latestRoundData', args: [token] },
            {
              address: contracts.TokenRegistry,
              abi: tokenRegistryAbi,
              functionName: 'tokenDecimals',
              args: [token],
            },
          ] as const,
      ),
    ],
  )
  const positions = ids.flatMap(
    (_, index) => toPosition(...(more.slice(3 * index, 3 * index + 3) as Parameters<typeof toPosition>)) ?? [],
  )
  const stale = positions.filter(({ unrealizedPnlUsdc }) => unrealizedPnlUsdc === undefined)
  const lastKnown = new Map<string, LastKnown>()
  for (const [index, token] of tokens.entries()) {
    const round = maybe(more[3 * ids.length + 2 * index] as never) as RoundData | undefined
    const decimals = maybe(more[3 * ids.length + 2 * index + 1] as never) as number | undefined
    if (round && decimals !== undefined) lastKnown.set(token, { price: round[1], decimals })
  }
  const unrealized = positions.reduce(
    (sum, position) => sum + (position.unrealizedPnlUsdc ?? lastKnownPnl(position, lastKnown)),
    0n,
  )

  const { cap, used, status, createdAt } = maybe(allocation) ?? { cap: 0n, used: 0n, status: 2, createdAt: 0n }
  const lifetimeRealizedPnlUsdc = must(lifetime)
  const peakUsdc = maybe(peak) ?? cap
  const currentUsdc = maybe(current) ?? atLeastZero(cap + lifetimeRealizedPnlUsdc + unrealized)
  return {
    block,
    risk: {
      agent,
      allocation: { cap, used, status, createdAt },
      trackConfig: must(results[0]),
      equity: {
        peak: peakUsdc > currentUsdc ? peakUsdc : currentUsdc,
        current: currentUsdc,
        drawdownBps: maybe(drawdown) ?? drawdownBps(peakUsdc, currentUsdc),
      },
      unrealizedPnlUsdc: unrealized,
      lifetimeRealizedPnlUsdc,
      dailyRealizedPnlUsdc: must(results[1]),
      day,
      opened: must(opened),
      closed: must(closed),
      openCount: BigInt(ids.length),
      trades: must(trades),
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
