import type { Address } from 'viem'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { tradeRouterLensAbi } from '../../contracts-abi/trade-router-lens.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import type { TrackConfig } from '../protocol/track-config.ts'
import { type Block, maybe, read, type TradingChain } from './chain.ts'

/** What the limits of an account are held against; amounts in USDC base units. */
type Exposure = { cap: bigint; drawdownBps: bigint; dailyRealizedPnlUsdc: bigint }
type Limits = Pick<TrackConfig, 'maxDrawdownBps' | 'maxDailyLossBps'>

const BPS = 10_000n

/** Which limits of its account an agent has reached, and the loss of the day beside the most that is allowed; 0 is off. */
export function breachesOf({ cap, drawdownBps, dailyRealizedPnlUsdc }: Exposure, limits: Limits) {
  const { maxDrawdownBps, maxDailyLossBps } = limits
  const maxDailyLossUsdc = (cap * maxDailyLossBps) / BPS
  const dailyLossUsedUsdc = dailyRealizedPnlUsdc < 0n ? -dailyRealizedPnlUsdc : 0n
  return {
    drawdown: maxDrawdownBps > 0n && drawdownBps >= maxDrawdownBps,
    dailyLoss: maxDailyLossBps > 0n && dailyLossUsedUsdc >= maxDailyLossUsdc,
    maxDailyLossUsdc,
    dailyLossUsedUsdc,
  }
}

/** An agent's limits at one block; the drawdown is undefined while a price that it holds is stale. */
export type AgentBreaches = {
  agentId: number
  drawdownBps: bigint | undefined
  maxDrawdownBps: bigint
} & ReturnType<typeof breachesOf>

/** Agents of one `eth_call`: a page stays far below the gas that nodes give a call. */
const PAGE = 100

/** Holds agents against their limits, by pages of one round trip; `day` is days since the epoch. Throws CHAIN_UNREACHABLE. */
export async function readBreaches(
  chain: TradingChain,
  agents: readonly { agentId: number; vault: Address; track: number }[],
  day: bigint,
): Promise<{ block: Block | undefined; breaches: AgentBreaches[] }> {
  const { trading, contracts } = chain
  let block: Block | undefined
  const breaches: AgentBreaches[] = []
  for (let from = 0; from < agents.length; from += PAGE) {
    const page = agents.slice(from, from + PAGE)
    const policies = [...new Map(page.map(({ vault, track }) => [`${vault}:${track}`, { vault, track }]))]
    const answer = await read(chain, [
      ...policies.map(([, { vault, track }]) => ({
        ...{ address: contracts.VaultTrackRegistry, abi: vaultTrackRegistryAbi },
        ...{ functionName: 'getVaultTrackConfig', args: [vault, BigInt(track)] },
      })),
      ...page.flatMap(({ agentId }) => {
        const id = BigInt(agentId)
        return [
          { address: trading.AllocationManager, abi: allocationManagerAbi, functionName: 'getAllocation', args: [id] },
          { address: trading.TradeRouter, abi: tradeRouterAbi, functionName: 'dailyRealizedPnlUsdc', args: [id, day] },
          {
            ...{ address: trading.TradeRouterLens, abi: tradeRouterLensAbi },
            ...{ functionName: 'currentDrawdownBps', args: [id] },
          },
        ]
      }),
    ] as readonly unknown[])
    block = answer.block
    let next = 0
    const value = <T>() => maybe(answer.results[next++] as never) as T | undefined
    const limits = new Map(policies.map(([key]) => [key, value<TrackConfig>()]))
    for (const { agentId, vault, track } of page) {
      const allocation = value<{ cap: bigint }>()
      const dailyRealizedPnlUsdc = value<bigint>()
      const drawdownBps = value<bigint>()
      const policy = limits.get(`${vault}:${track}`)
      if (allocation === undefined || dailyRealizedPnlUsdc === undefined || policy === undefined) continue
      const exposure = { cap: allocation.cap, drawdownBps: drawdownBps ?? 0n, dailyRealizedPnlUsdc }
      breaches.push({ agentId, drawdownBps, maxDrawdownBps: policy.maxDrawdownBps, ...breachesOf(exposure, policy) })
    }
  }
  return { block, breaches }
}
