import type { PriceSourceKind } from '@agent-trading-service/protocol/oracle-price'
import type { StreamEventType } from '@agent-trading-service/protocol/stream-event-types'
import type { Trade } from '@agent-trading-service/protocol/trade-events'
import { type Address, formatUnits } from 'viem'
import { getAgents } from '../chain/agents.ts'
import { sourceOf } from '../chain/carried-prices.ts'
import type { Chain, TradingChain } from '../chain/configured-chain.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { withDeadline } from '../concurrency.ts'
import { readCurrentAgents } from '../history/tables/agents.ts'
import type { ContractEvent, PostedPrice } from '../history/tables/events.ts'
import type { PlacedOrder } from '../history/tables/orders.ts'
import { endReasons, presentOrderTerms } from '../resources/order.ts'
import { ORACLE_DECIMALS } from '../resources/price.ts'
import { presentTrade } from '../resources/trade.ts'
import type { Alerts } from './alerts.ts'
import type { LoggedEvent, WithdrawnEvent } from './event.ts'
import { presentOwnerEvent, presentPlace } from './present-owner-event.ts'
import { type IndexChanges, ORDER_EVENTS, readIndexChanges } from './read-index-changes.ts'
import type { EventLog, EventOfLog, IndexReorg } from './store.ts'

/** The minimum time between two evaluations of the alerts, which read the chain. */
const MIN_EVALUATION_INTERVAL_MS = 2_000

export type IndexPublisher = ReturnType<typeof createIndexPublisher>

/** Copies new rows of the index into the event log and publishes them, with the alerts they cause. */
export function createIndexPublisher({
  chain,
  db,
  indexKey,
  eventLog,
  publish,
  alerts,
  agentVaults,
  onAgentsChanged,
}: {
  chain: TradingChain
  db: D1Database
  indexKey: string
  eventLog: EventLog
  publish: (events: readonly LoggedEvent[]) => void
  alerts: Alerts
  agentVaults: AgentVaults
  /** Called with the agents whose positions or risk have changed. */
  onAgentsChanged: (agentIds: number[]) => void
}) {
  /** Activity since the alerts were last evaluated. It survives a failed evaluation. */
  const agentsChanged = new Set<number>()
  const tokensPriced = new Set<Trade['token']>()
  let evaluatedAt = 0

  function publishReorgs(reorgs: readonly IndexReorg[]) {
    for (const reorg of reorgs) {
      const hasAllLost = eventLog.hasAllAfter(reorg.ancestor)
      const event = eventLog.withdraw(reorg)
      publish([event])
      const { withdrawn, isComplete = true } = JSON.parse(event.data) as ReorgData
      const agentIds = withdrawn.flatMap(({ agentId }) => agentId ?? [])
      for (const agentId of agentIds) agentsChanged.add(agentId)
      alerts.forgetPositions(isComplete && hasAllLost ? agentIds : 'all')
    }
  }

  async function publishEvents(changes: Changes<'events'>) {
    const { trades, orders, events: contractEvents, announcing, reallocatedAgents, posts, block, hash } = changes
    const symbolOf = await symbolsOf(chain, [...trades, ...posts, ...orders.map(({ order }) => order)])
    alerts.applyTrades(trades)
    alerts.noteAnnouncements(announcing)
    for (const { agentId, vault } of trades) agentVaults.set(Number(agentId), vault)
    await agentVaults.load(db, [
      ...contractEvents.flatMap(({ agentId }) => agentId ?? []),
      ...orders.map(({ order }) => Number(order.agentId)),
    ])
    const events = [
      ...trades.map(trade => toEvent(trade, presentTrade(trade, symbolOf(trade.token)))),
      ...orders.map(placed => toPlacedEvent(placed, symbolOf(placed.order.token), agentVaults)),
      ...contractEvents.map(event => toAgentEvent(event, agentVaults)),
      ...posts.map(post => toPriceEvent(post, symbolOf(post.token), sourceOf(chain, post.token).kind)),
    ].sort((a, b) => a.block - b.block || a.logIndex - b.logIndex)
    publish(eventLog.appendFromChain(events, { block, hash }))
    for (const { agentId } of trades) agentsChanged.add(Number(agentId))
    for (const agentId of reallocatedAgents) agentsChanged.add(agentId)
    for (const { token } of posts) tokensPriced.add(token)
  }

  /**
   * Evaluates the alerts, unless that was done a moment ago. Returns when they are due (epoch milliseconds); undefined
   * if done.
   */
  async function publishAlerts(timestamp: number): Promise<number | undefined> {
    const dueAt = evaluatedAt + MIN_EVALUATION_INTERVAL_MS
    if (Date.now() < dueAt) return dueAt
    evaluatedAt = Date.now()
    if (agentsChanged.size > 0) onAgentsChanged([...agentsChanged])
    const { events, commit } = await alerts.evaluate({ agentsChanged, tokensPriced, timestamp })
    commit()
    agentsChanged.clear()
    tokensPriced.clear()
    publish(eventLog.appendOffChain(events))
    const agentIds = new Set(events.flatMap(({ agentId }) => agentId ?? []))
    if (agentIds.size > 0) onAgentsChanged([...agentIds])
    return undefined
  }

  /**
   * Publishes everything in the index that is not in the log yet. Returns when to call again for the alerts (epoch
   * milliseconds); undefined if all is published. Throws if the database or the chain is unreachable.
   */
  async function publishChanges(): Promise<number | undefined> {
    for (;;) {
      const changes = await readIndexChanges(db, indexKey, eventLog.position())
      if (changes === undefined) return undefined
      if (changes.kind === 'start') eventLog.start(changes.block, changes.hash, changes.reorg)
      if (changes.kind === 'reorgs') publishReorgs(changes.reorgs)
      if (changes.kind === 'events') {
        await publishEvents(changes)
        if (changes.isComplete) return publishAlerts(changes.timestamp)
      }
    }
  }

  return { publishChanges }
}

type ReorgData = { withdrawn: WithdrawnEvent[]; isComplete?: boolean }

type Changes<Kind extends IndexChanges['kind']> = Extract<IndexChanges, { kind: Kind }>

const eventTypes: Partial<Record<Trade['type'], StreamEventType>> = {
  ExitExecuted: 'exit',
  ExitPartlyExecuted: 'exit',
  ExitLadderUpdated: 'ladder',
}

const toEvent = (
  { type, agentId, vault, blockNumber, logIndex }: Trade,
  fields: Record<string, unknown>,
): EventOfLog => ({
  block: Number(blockNumber),
  logIndex,
  type: eventTypes[type] ?? 'trade',
  agentId: Number(agentId),
  vault,
  data: { agentId: `${agentId}`, ...fields },
})

const toPriceEvent = (
  { token, price, observedAt, timestamp, block, logIndex }: PostedPrice,
  symbol: string,
  source: PriceSourceKind,
): EventOfLog => ({
  block,
  logIndex,
  type: 'price',
  agentId: undefined,
  vault: undefined,
  token,
  data: {
    symbol,
    token,
    priceUsd: formatUnits(price, ORACLE_DECIMALS),
    updatedAt: `${observedAt}`,
    source,
    blockNumber: `${block}`,
    logIndex,
    timestamp: `${timestamp}`,
  },
})

const toPlacedEvent = (
  { orderId, order, ...place }: PlacedOrder,
  symbol: string,
  agentVaults: AgentVaults,
): EventOfLog => ({
  block: place.block,
  logIndex: place.logIndex,
  type: 'order',
  agentId: Number(order.agentId),
  vault: agentVaults.get(Number(order.agentId)),
  data: {
    agentId: `${order.agentId}`,
    orderId,
    type: 'OrderPlaced',
    ...presentOrderTerms(order, symbol),
    ...presentPlace(place),
  },
})

/** Returns the event of an order after its placement, or of an agent's owner. */
const toAgentEvent = (event: ContractEvent, agentVaults: AgentVaults): EventOfLog => ({
  block: event.block,
  logIndex: event.logIndex,
  type: isOfOrder(event) ? 'order' : 'mandate',
  agentId: event.agentId ?? undefined,
  vault: event.agentId === null ? undefined : agentVaults.get(event.agentId),
  data: {
    agentId: `${event.agentId}`,
    ...(isOfOrder(event) ? presentOrderEvent(event) : presentOwnerEvent(event)),
  },
})

const isOfOrder = ({ name }: ContractEvent) => ORDER_EVENTS.includes(name)

/** Presents what happened to an order after its placement. */
const presentOrderEvent = (event: ContractEvent): Record<string, unknown> => ({
  type: event.name,
  ...(event.name === 'OrderExecuted'
    ? { ...event.args, part: Number(event.args.part) }
    : { orderId: event.args.orderId, reason: endReasons[Number(event.args.reason)] }),
  ...presentPlace(event),
})

type AgentVaults = ReturnType<typeof createAgentVaults>

/** How long the index may take before the chain is read instead. */
const MAX_INDEX_READ_MS = 1_000

/** Caches each agent's vault. It is fixed at registration. */
export function createAgentVaults() {
  const vaults = new Map<number, Address>()
  const missingOf = (agentIds: readonly number[]) => [...new Set(agentIds)].filter(agentId => !vaults.has(agentId))

  /** Reads the vaults of those agents that are not cached from the index. */
  async function load(db: D1Database, agentIds: readonly number[]): Promise<void> {
    for (const { agentId, vault } of await readCurrentAgents(db, missingOf(agentIds))) vaults.set(agentId, vault)
  }

  return {
    get: (agentId: number): Address | undefined => vaults.get(agentId),
    set(agentId: number, vault: Address) {
      vaults.set(agentId, vault)
    },
    load,
    /**
     * Like `load`, but reads from the chain what the index does not return: it can be unreachable, and lacks agents
     * that registered just now. Throws CHAIN_UNREACHABLE.
     */
    async loadFromIndexOrChain(db: D1Database, chain: Chain, agentIds: readonly number[]): Promise<void> {
      if (missingOf(agentIds).length === 0) return
      const loaded = load(db, agentIds).catch(() => {})
      await withDeadline(loaded, Date.now() + MAX_INDEX_READ_MS, () => undefined)
      const missing = missingOf(agentIds)
      if (missing.length === 0) return
      const { agents } = await getAgents(chain, missing.map(BigInt))
      for (const { agentId, agent } of agents) vaults.set(Number(agentId), agent.vault)
    },
  }
}
