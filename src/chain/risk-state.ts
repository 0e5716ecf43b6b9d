import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { tradeRouterLensAbi } from '../../contracts-abi/trade-router-lens.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import { refuse } from '../errors/catalogue.ts'
import type { TrackConfig } from '../protocol/track-config.ts'
import type { Allocation } from '../protocol/trading-terms.ts'
import { type Agent, agentOf } from './agents.ts'
import { type Block, must, type TradingChain } from './chain.ts'
import { type Equity, equityOf } from './equity.ts'
import { outcomeOf } from './multicall.ts'
import { askReader } from './service-reader.ts'
import { allocationOf } from './trading-terms.ts'

/** Risk figures of an agent at one block; amounts in USDC base units, signed where PnL. */
export type Risk = {
  agent: Agent
  allocation: Allocation & { createdAt: bigint }
  trackConfig: TrackConfig
  equity: Equity
  dailyRealizedPnlUsdc: bigint
  day: bigint
  opened: bigint
  closed: bigint
  trades: bigint
}

/** Reads the risk figures in one round trip. Throws AGENT_NOT_FOUND. */
export async function getRisk(chain: TradingChain, agentId: bigint): Promise<{ block: Block; risk: Risk }> {
  const { block, answers } = await askReader(chain, 'riskFigures', agentId)
  const [figures] = answers
  const agent = agentOf(figures.agent)
  if (agent === undefined) throw refuse('AGENT_NOT_FOUND', { agentId })

  const equity = equityOf(figures.equity)
  if (equity === undefined) throw new Error('A configured contract refused a read that never fails')
  const { used, status, createdAt } = allocationOf(figures.allocation)
  return {
    block,
    risk: {
      agent,
      allocation: { cap: equity.cap, used, status, createdAt },
      trackConfig: must(outcomeOf(vaultTrackRegistryAbi, 'getVaultTrackConfig', figures.trackConfig)),
      equity,
      dailyRealizedPnlUsdc: must(outcomeOf(tradeRouterAbi, 'dailyRealizedPnlUsdc', figures.dailyRealizedPnl)),
      day: figures.day,
      opened: must(outcomeOf(tradeRouterLensAbi, 'positionsOpened', figures.positionsOpened)),
      closed: must(outcomeOf(tradeRouterLensAbi, 'positionsClosed', figures.positionsClosed)),
      trades: must(outcomeOf(tradeRouterLensAbi, 'tradeCount', figures.tradeCount)),
    },
  }
}
