import type { TradingChain } from '../chain/configured-chain.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import type { Trade } from '../protocol/trade-events.ts'
import type { AgentVaults } from './agent-vaults.ts'
import type { Alerts } from './alerts.ts'
import type { LoggedEvent, StreamEvent, StreamEventType, WithdrawnEvent } from './event.ts'
import { type IndexChanges, readIndexChanges } from './read-index-changes.ts'
import type { EventLog, IndexReorg } from './store.ts'
import type { Subscribers } from './subscribers.ts'

/** Returns the fields of a trade as the API shows them. */
export type PresentTrade = (trade: Trade, symbol: string) => Record<string, unknown>

export type IndexPublisher = ReturnType<typeof createIndexPublisher>

/** Copies what the index gains into the event log and publishes it, with the alerts that follow from it. */
export function createIndexPublisher({
  chain,
  db,
  indexKey,
  eventLog,
  subscribers,
  alerts,
  agentVaults,
  presentTrade,
  onAgentsChanged,
}: {
  chain: TradingChain
  db: D1Database
  indexKey: string
  eventLog: EventLog
  subscribers: Subscribers
  alerts: Alerts
  agentVaults: AgentVaults
  presentTrade: PresentTrade
  onAgentsChanged: (agentIds: number[]) => void
}) {
  /** Activity since the alerts were last evaluated. It survives a failed evaluation. */
  const agentsTraded = new Set<number>()
  const tokensPriced = new Set<Trade['token']>()

  function publishReorgs(reorgs: readonly IndexReorg[]) {
    alerts.reset()
    for (const reorg of reorgs) {
      const event = eventLog.withdraw(reorg)
      subscribers.publish([event])
      for (const agentId of agentsOf(event)) agentsTraded.add(agentId)
    }
  }

  async function publishTrades({ trades, pricedTokens, block, hash, isComplete }: Changes<'trades'>) {
    const symbolOf = await symbolsOf(
      chain,
      trades.map(({ token }) => token),
    )
    alerts.applyTrades(trades)
    const events = trades.map(trade => ({
      ...toEvent(trade, presentTrade(trade, symbolOf(trade.token))),
      block: Number(trade.blockNumber),
      logIndex: trade.logIndex,
    }))
    subscribers.publish(eventLog.appendFromChain(events, isComplete ? { block, hash } : undefined))
    for (const { agentId, vault } of trades) {
      agentsTraded.add(Number(agentId))
      agentVaults.set(Number(agentId), vault)
    }
    for (const token of pricedTokens) tokensPriced.add(token)
  }

  async function publishAlerts(timestamp: number) {
    if (agentsTraded.size > 0) onAgentsChanged([...agentsTraded])
    const { events, commit } = await alerts.evaluate({ agentsTraded, tokensPriced, timestamp })
    commit()
    agentsTraded.clear()
    tokensPriced.clear()
    subscribers.publish(eventLog.appendOffChain(events))
    const agentIds = new Set(events.flatMap(({ agentId }) => agentId ?? []))
    if (agentIds.size > 0) onAgentsChanged([...agentIds])
  }

  /** Publishes everything that the index has and the log has not. Throws if the database or the chain is unreachable. */
  async function publishChanges(): Promise<void> {
    for (;;) {
      const changes = await readIndexChanges(db, indexKey, eventLog.position())
      if (changes === undefined) return
      if (changes.kind === 'start') eventLog.start(changes.block, changes.hash, changes.reorg)
      if (changes.kind === 'reorgs') publishReorgs(changes.reorgs)
      if (changes.kind === 'trades') {
        await publishTrades(changes)
        if (changes.isComplete) return publishAlerts(changes.timestamp)
      }
    }
  }

  return { publishChanges }
}

type Changes<Kind extends IndexChanges['kind']> = Extract<IndexChanges, { kind: Kind }>

const eventTypes: Partial<Record<Trade['type'], StreamEventType>> = {
  ExitExecuted: 'exit',
  ExitPartlyExecuted: 'exit',
  ExitLadderUpdated: 'ladder',
}

const toEvent = ({ type, agentId, vault }: Trade, fields: Record<string, unknown>): StreamEvent => ({
  type: eventTypes[type] ?? 'trade',
  agentId: Number(agentId),
  vault,
  data: { agentId: `${agentId}`, ...fields },
})

const agentsOf = ({ data }: LoggedEvent): number[] =>
  (JSON.parse(data) as { withdrawn: WithdrawnEvent[] }).withdrawn.flatMap(({ agentId }) => agentId ?? [])
