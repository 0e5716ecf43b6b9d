import type { Allocation, Waste } from '@agent-trading-service/protocol/check'
import type { PriceSourceKind } from '@agent-trading-service/protocol/oracle-price'
import type { PromotionCriteria, RequiredExamination } from '@agent-trading-service/protocol/promotion-criteria'
import type { TradePolicy } from '@agent-trading-service/protocol/trade-policy'
import type { TrackConfig } from '@agent-trading-service/protocol/vault-track-config'
import { type Address, zeroHash } from 'viem'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { promotionCriteriaAbi } from '../../contracts-abi/promotion-criteria.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { tradeRouterLensAbi } from '../../contracts-abi/trade-router-lens.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import { foundAgent } from './agent-record.ts'
import { type Agent, decodeAgent } from './agents.ts'
import { callReader, type ReaderValues } from './call-service-reader.ts'
import { sourceOf } from './carried-prices.ts'
import type { Block, TradingChain } from './configured-chain.ts'
import { type CallResult, decodeResult, tryDecodeResult } from './encode-and-decode-call.ts'
import { type Equity, toEquity } from './equity-and-worth.ts'
import { readAtNewestIfStale } from './newest-prices.ts'
import { decodePosition } from './positions.ts'
import { decodeAllocation, decodeTradePolicy, decodeWaste } from './read-intent-terms.ts'
import { readTree } from './read-tree.ts'

/** Risk figures of an agent at one block, in USDC base units; PnL is signed. `createdAt` is Unix seconds. */
export type Risk = {
  agent: Agent
  allocation: Allocation & { createdAt: bigint }
  trackConfig: TrackConfig
  equity: Equity
  dailyRealizedPnlUsdc: bigint
  /** Days since the epoch. */
  day: bigint
  /** Numbers of positions and trades since the registration. */
  opened: bigint
  closed: bigint
  trades: bigint
  /** The extension's facts; each is undefined in a deployment without it. */
  capitalMode: number | undefined
  effectiveCap: bigint | undefined
  tradePolicy: TradePolicy | undefined
  promotion: PromotionCriteria | undefined
  examination: RequiredExamination | undefined
  waste: Waste
  firstLoss: FirstLoss | undefined
}

/** The vault shares that answer for an agent's losses, and whether they are bound. */
export type FirstLoss = { owner: Address; shares: bigint; valueUsdc: bigint; isBound: boolean }

/** Reads the risk figures of an agent in one round trip. Throws AGENT_NOT_FOUND. */
export const getRisk = (chain: TradingChain, agentId: bigint): Promise<{ block: Block; risk: Risk }> =>
  readAtNewestIfStale(
    chain,
    async priced => {
      const { block, values } = await callReader(priced, 'riskFigures', agentId)
      return { block, risk: decodeRisk(agentId, values.risk) }
    },
    ({ risk }) => risk.equity.staleTokens,
  )

export async function heldSources(
  chain: TradingChain,
  agentId: bigint,
  { equity }: Pick<Risk, 'equity'>,
): Promise<Map<Address, PriceSourceKind>> {
  if (equity.openCount === 0) return new Map()
  if (chain.memory.priceSources.readAt === 0) await readTree(chain, {})
  const { values } = await callReader(chain, 'openPositions', agentId)
  const tokens = values.positions.flatMap(results => decodePosition(results)?.token ?? [])
  return new Map(tokens.map(token => [token, sourceOf(chain, token).kind]))
}

/** Returns the risk figures in the results of the service reader. Throws AGENT_NOT_FOUND. */
export function decodeRisk(agentId: bigint, figures: ReaderValues<'riskFigures'>['risk']): Risk {
  const agent = foundAgent(decodeAgent(figures.agent), agentId)
  const equity = toEquity(figures.equity)
  if (equity === undefined) throw new Error(`The contracts do not know the equity of agent ${agentId}`)
  const { used, status, createdAt } = decodeAllocation(figures.allocation)
  return {
    agent,
    allocation: { cap: equity.cap, used, status, createdAt },
    trackConfig: decodeResult(vaultTrackRegistryAbi, 'getVaultTrackConfig', figures.trackConfig),
    equity,
    dailyRealizedPnlUsdc: decodeResult(tradeRouterAbi, 'dailyRealizedPnlUsdc', figures.dailyRealizedPnl),
    day: figures.day,
    opened: decodeResult(tradeRouterLensAbi, 'positionsOpened', figures.positionsOpened),
    closed: decodeResult(tradeRouterLensAbi, 'positionsClosed', figures.positionsClosed),
    trades: decodeResult(tradeRouterLensAbi, 'tradeCount', figures.tradeCount),
    capitalMode: tryDecodeResult(allocationManagerAbi, 'capitalModeOf', figures.capitalMode),
    effectiveCap: tryDecodeResult(allocationManagerAbi, 'effectiveCapUsdc', figures.effectiveCap),
    tradePolicy: decodeTradePolicy(figures.policy),
    promotion: tryDecodeResult(promotionCriteriaAbi, 'criteriaOf', figures.promotion),
    examination: decodeExamination(figures.examination),
    waste: decodeWaste(figures.waste),
    firstLoss: decodeFirstLoss(figures.firstLoss),
  }
}

function decodeExamination(result: CallResult): RequiredExamination | undefined {
  const [examination, certificate] = tryDecodeResult(promotionCriteriaAbi, 'examinationOf', result) ?? []
  if (examination === undefined || examination === zeroHash) return undefined
  return { examination, certificate: certificate === zeroHash ? undefined : certificate }
}

function decodeFirstLoss(result: CallResult): FirstLoss | undefined {
  const decoded = tryDecodeResult(allocationManagerAbi, 'firstLossOf', result)
  if (decoded === undefined) return undefined
  const [owner, shares, valueUsdc, isBound] = decoded
  return { owner, shares, valueUsdc, isBound }
}
