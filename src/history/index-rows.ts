import { pairTradeEvents, type Trade } from '@agent-trading-service/protocol/trade-events'
import { completeTrades, type TradedPosition } from '../chain/complete-trades.ts'
import type { Chain, TradingChain } from '../chain/configured-chain.ts'
import type { NodeLog } from '../rpc/requests.ts'
import { decodeFollowedEvent, type NamedContracts } from './followed-events.ts'
import type { IndexRows } from './store.ts'
import { type AgentVersion, toAgentVersions } from './tables/agents.ts'
import type { ContractEvent } from './tables/events.ts'
import { openedPositions } from './tables/positions.ts'
import { toPostedPrice } from './tables/posted-prices.ts'

/** Reads indexed positions and agents that new events refer to. */
export type IndexedState = {
  readPositions(ids: readonly bigint[]): Promise<Map<bigint, TradedPosition>>
  readAgents(ids: readonly number[]): Promise<AgentVersion[]>
}

/** Returns the Unix seconds of a log's block. */
type TimeOf = (log: NodeLog) => number

/** Converts the logs of a range of blocks to rows. Throws CHAIN_UNREACHABLE. */
export async function toIndexRows(
  chain: Chain,
  named: NamedContracts,
  logs: readonly NodeLog[],
  timeOf: TimeOf,
  state: IndexedState,
): Promise<IndexRows> {
  const { AgentRegistry, PriceOracle } = chain.contracts
  const trades = await toTrades(chain, logs, timeOf, state.readPositions)
  const decoded = logs.flatMap(log => decodeFollowedEvent(chain, named, log, timeOf(log)) ?? [])
  const isOf = (address: string) => (event: ContractEvent) => event.contract === address
  const prices = decoded.filter(isOf(PriceOracle))
  const events = decoded.filter(event => event.contract !== PriceOracle)
  return {
    trades,
    positions: openedPositions(trades),
    agents: await toAgentVersions(events.filter(isOf(AgentRegistry)), state.readAgents),
    prices: prices.map(toPostedPrice),
    events,
    blocks: blocksOf(logs),
  }
}

/** Converts the logs of whole transactions to trades, oldest first. Throws CHAIN_UNREACHABLE. */
export async function toTrades(
  chain: Chain,
  logs: readonly NodeLog[],
  timeOf: TimeOf,
  readPositions: IndexedState['readPositions'],
): Promise<Trade[]> {
  const { trading } = chain
  if (trading === undefined) return []
  const addresses = [trading.TradeRouter, trading.PositionManager].map(address => address.toLowerCase())
  const tradeLogs = logs.filter(({ address }) => addresses.includes(address.toLowerCase())).map(toTradeLog)
  const events = pairTradeEvents(tradeLogs)
  const opened = new Set(events.flatMap(({ type, positionId }) => (type === 'PositionOpened' ? [positionId] : [])))
  const older = [...new Set(events.map(({ positionId }) => positionId))].filter(id => !opened.has(id))
  const positions = older.length > 0 ? await readPositions(older) : new Map<bigint, TradedPosition>()
  return completeTrades(chain as TradingChain, events, positions, ({ nodeLog }) => BigInt(timeOf(nodeLog)))
}

const toTradeLog = (nodeLog: NodeLog) => ({
  topics: nodeLog.topics,
  data: nodeLog.data,
  transactionHash: nodeLog.transactionHash,
  blockNumber: BigInt(nodeLog.blockNumber),
  logIndex: Number(nodeLog.logIndex),
  nodeLog,
})

function blocksOf(logs: readonly NodeLog[]): IndexRows['blocks'] {
  const hashes = new Map(logs.map(({ blockNumber, blockHash }) => [Number(blockNumber), blockHash]))
  return [...hashes].map(([number, hash]) => ({ number, hash }))
}
