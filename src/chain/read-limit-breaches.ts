import { type LimitBreaches, limitBreaches } from '@agent-trading-service/protocol/limit-breaches'
import type { Address } from 'viem'
import { batchesOf } from '../concurrency.ts'
import type { Block, TradingChain } from './configured-chain.ts'
import { allocationManager, tradeRouter, tradeRouterLens, vaultTrackRegistry } from './contracts.ts'
import { call, optional, readTree } from './read-tree.ts'

/**
 * The breached limits of an agent at a block. `drawdownBps` is undefined while a token that it holds has a stale price.
 */
type AgentLimitBreaches = LimitBreaches & {
  agentId: number
  drawdownBps: bigint | undefined
  maxDrawdownBps: bigint
}

type AgentOnTrack = { agentId: number; vault: Address; track: number }

/** Agents per `eth_call`: far below the gas that nodes allow for a call. */
const AGENTS_PER_CALL = 100

/**
 * Reads which limits agents have breached, one round trip per 100 agents; `day` is days since the epoch. `block` is the
 * last one read, undefined without agents. Agents without a readable allocation or track are left out. Throws
 * CHAIN_UNREACHABLE.
 */
export async function readLimitBreaches(
  chain: TradingChain,
  agents: readonly AgentOnTrack[],
  day: bigint,
): Promise<{ block: Block | undefined; breaches: AgentLimitBreaches[] }> {
  let block: Block | undefined
  const breaches: AgentLimitBreaches[] = []
  for (const batch of batchesOf(agents, AGENTS_PER_CALL)) {
    const page = await readPage(chain, batch, day)
    block = page.block
    breaches.push(...page.breaches)
  }
  return { block, breaches }
}

async function readPage(chain: TradingChain, agents: readonly AgentOnTrack[], day: bigint) {
  const tracks = new Map(agents.map(({ vault, track }) => [trackKey({ vault, track }), { vault, track }]))
  const { block, values } = await readTree(chain, {
    tracks: [...tracks].map(([key, { vault, track }]) => ({
      key,
      config: optional(call(vaultTrackRegistry(chain), 'getVaultTrackConfig', [vault, BigInt(track)])),
    })),
    agents: agents.map(({ agentId, vault, track }) => ({
      agentId,
      key: trackKey({ vault, track }),
      allocation: optional(call(allocationManager(chain), 'getAllocation', [BigInt(agentId)])),
      dailyRealizedPnlUsdc: optional(call(tradeRouter(chain), 'dailyRealizedPnlUsdc', [BigInt(agentId), day])),
      drawdownBps: optional(call(tradeRouterLens(chain), 'currentDrawdownBps', [BigInt(agentId)])),
    })),
  })
  const configs = new Map(values.tracks.map(({ key, config }) => [key, config]))
  const breaches = values.agents.flatMap(({ agentId, key, allocation, dailyRealizedPnlUsdc, drawdownBps }) => {
    const config = configs.get(key)
    if (allocation === undefined || dailyRealizedPnlUsdc === undefined || config === undefined) return []
    const exposure = { cap: allocation.cap, drawdownBps: drawdownBps ?? 0n, dailyRealizedPnlUsdc }
    return [{ agentId, drawdownBps, maxDrawdownBps: config.maxDrawdownBps, ...limitBreaches(exposure, config) }]
  })
  return { block, breaches }
}

const trackKey = ({ vault, track }: Pick<AgentOnTrack, 'vault' | 'track'>) => `${vault}:${track}`
