import { DurableObject } from 'cloudflare:workers'
import { armBefore } from '../alarm.ts'
import { createChain, type TradingChain } from '../chain/configured-chain.ts'
import { createQueue, singleFlight, singleFlightAgain, sleep } from '../concurrency.ts'
import { parseConfig } from '../config/config.ts'
import type { IntentRecord } from '../executor/intent-record.ts'
import { presentIntentRecord } from '../executor/present-intent.ts'
import { agentOfGroup } from '../executor/requester.ts'
import { indexKeyOf } from '../history/tables/cursor.ts'
import { logFailure } from '../log.ts'
import { createAlerts } from './alerts.ts'
import type { EventStreamsStatus, StreamRefusal } from './client.ts'
import type { EventFilter, LoggedEvent, StreamEvent } from './event.ts'
import { createAgentVaults, createIndexPublisher, type IndexPublisher } from './index-publisher.ts'
import { createShardFeed, type ShardFeed } from './push-events-to-shards.ts'
import { type EventLog, type LogCursor, openEventLog } from './store.ts'
import {
  createWebhookNotices,
  type LogPage,
  readLog,
  type WebhookCounts,
  type WebhookNotices,
  type WebhookUsage,
  webhooksOf,
} from './webhook-notices.ts'

/** How often to renew the watch at most: every new stream and every beat of a shard asks for it. */
const MIN_WATCH_INTERVAL_MS = 14_000
/** After a failure the index is read again after this time, even without a signal of a change. */
const RETRY_MS = 2_000
/** How often the vaults of intents are read before their events are published without, and the pause in between. */
const MAX_VAULT_READS = 3
const VAULT_RETRY_MS = 500
/**
 * How long the indexer follows the chain closely after a sign that events are awaited. The cron trigger renews it every
 * minute.
 */
const WATCH_MS = 90_000

/** Where a stream starts: the row before its first event and the newest row of the log; or why it cannot start. */
type StreamStart =
  | { after: number; newest: LogCursor }
  | { code: Extract<StreamRefusal, 'EVENT_ID_UNKNOWN' | 'HISTORY_UNAVAILABLE'> }

/**
 * Holds the event log of a deployment and feeds the shards, which hold the streams. Each event is written to the log
 * before it is sent, in one order for all streams, so a client resumes exactly after the event whose id it sends.
 * Trades come from the index after their commit there, intents from the executor's lanes, alerts from reads of the
 * chain.
 */
export class EventStreamsObject extends DurableObject<Env> {
  readonly #config = parseConfig({ ...this.env })
  readonly #eventLog: EventLog
  readonly #webhookNotices: WebhookNotices
  readonly #feed: ShardFeed
  readonly #agentVaults = createAgentVaults()
  readonly #unpublishedIntents: IntentRecord[] = []
  #chain: TradingChain | undefined
  #publisher: IndexPublisher | undefined
  #isFailing = false
  #watchedAt = 0
  readonly #inOrder = createQueue()
  /** Publishes everything in the index that is not in the log yet. */
  readonly #publishChanges = singleFlightAgain(() => this.#inOrder(() => this.#readChanges()))
  /**
   * Publishes the alerts that are not due yet. The activity that they depend on is in memory too, so an alarm would not
   * add to it.
   */
  readonly #advanceAt = singleFlight(async (time: number) => {
    await sleep(time - Date.now())
    this.ctx.waitUntil(this.advance())
  })
  readonly #publishNewIntents = singleFlightAgain(() => this.#publishUnpublishedIntents())
  /** Makes the indexer read the chain now. Returns whether that succeeded and the log has started. */
  readonly #catchUp = singleFlightAgain(() => this.#readIndex())

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    this.#eventLog = openEventLog(ctx.storage.sql)
    this.#webhookNotices = createWebhookNotices(ctx.storage.sql, agentId => this.#notifyWebhooks(agentId))
    this.#feed = createShardFeed(ctx.storage.sql, (shard, batch) =>
      env.EVENT_STREAM_SHARDS.getByName(shard).push(batch),
    )
  }

  /** Finds where a stream starts, and feeds its shard from now on. */
  async follow(shard: string, filter: EventFilter, lastEventId: string | undefined): Promise<StreamStart> {
    // The client may know a trade from its receipt before the index does, or from the index before the log does.
    const isAhead = this.#resolve(lastEventId, filter) === 'ahead'
    // A stream without an id starts at the head of the chain, or what an idle index has not read would seem to be new.
    const hasStarted = isAhead || lastEventId === undefined ? await this.#catchUp() : true
    if (isAhead && !hasStarted) return { code: 'HISTORY_UNAVAILABLE' }
    const after = this.#resolve(lastEventId, filter)
    if (after === 'ahead' || after === 'unknown') return { code: 'EVENT_ID_UNKNOWN' }
    this.#feed.register(shard)
    this.#watchIndex()
    return { after, newest: this.#eventLog.newest() }
  }

  /** Feeds a shard from now on; shards call this regularly. Returns the newest row of the log. */
  beat(shard: string): LogCursor {
    this.#feed.register(shard)
    this.#watchIndex()
    return this.#eventLog.newest()
  }

  /**
   * Returns a filter's next events after a row, in order, and the row up to which the list is complete. `hasGap` is
   * true if some of them were deleted. Without a filter, the rows of all streams.
   */
  readEvents(
    filter: EventFilter | undefined,
    after: number,
    limit: number,
  ): { events: LoggedEvent[]; through: LogCursor; hasGap: boolean } {
    const { events, through } = this.#eventLog.page(filter, after, limit)
    return {
      events,
      through: { seq: through, id: this.#eventLog.idAt(through) ?? this.#eventLog.newest().id },
      hasGap: filter !== undefined && this.#eventLog.gapAfter(filter, after) !== undefined,
    }
  }

  async status(): Promise<EventStreamsStatus> {
    const sizes = await Promise.allSettled(
      this.#feed.shards().map(shard => this.env.EVENT_STREAM_SHARDS.getByName(shard).size()),
    )
    return {
      streams: sizes.reduce((sum, size) => sum + (size.status === 'fulfilled' ? size.value : 0), 0),
      block: this.#eventLog.position()?.block,
      isFailing: this.#isFailing,
      webhooks: this.#webhookNotices.totals(),
    }
  }

  /** Publishes everything in the index that is not in the log yet. Returns whether the log has started. */
  async advance(): Promise<boolean> {
    await this.#publishChanges()
    return this.#hasStarted()
  }

  /**
   * Withdraws every event with a reorg without a common ancestor, so that clients read everything again. The log starts
   * again once the index has reached the head.
   */
  async restart(): Promise<void> {
    await this.#inOrder(async () => {
      const position = this.#eventLog.position()
      if (position === undefined || position.block < 0) return
      const { reorg, block } = position
      this.#publish([this.#eventLog.withdraw({ id: reorg, ancestor: -1, lost: block })])
      this.#publisher = undefined
    })
  }

  override async alarm(): Promise<void> {
    await this.advance()
  }

  /** Publishes new states of intents that were signed, in the order of the calls. The executor's lanes call it. */
  async publishIntents(records: IntentRecord[]): Promise<void> {
    this.#unpublishedIntents.push(...records.filter(isSigned))
    await this.#publishNewIntents()
  }

  /** Returns an agent's events after a row of the log, or that some of the given types (none for all) were deleted. */
  readAgentEvents(agentId: number, types: string[], cursor: LogCursor, limit: number): LogPage {
    return readLog(this.#eventLog, { agentId }, types, cursor, limit)
  }

  /** Sets how many webhooks an agent has, and returns the newest row; undefined if they then take too many places. */
  setWebhookCounts(agentId: number, counts: WebhookCounts, maxPlaces: number): LogCursor | undefined {
    if (counts.active > 0) this.#watchIndex()
    return this.#webhookNotices.setCounts(agentId, counts, maxPlaces) ? this.#eventLog.newest() : undefined
  }

  /** Returns the places that webhooks take, and the agents that take most of them. */
  webhookUsage(limit: number): WebhookUsage {
    return this.#webhookNotices.usage(limit)
  }

  /**
   * Resends failed notices to webhooks, and wakes those of some agents in each minute, given as one since the epoch.
   */
  async retryWebhookNotices(minute: number): Promise<void> {
    this.#webhookNotices.markHourly(minute)
    await this.#webhookNotices.send()
  }

  /** Makes the indexer follow the chain closely if webhooks or subscribers of MCP wait for its events. */
  async watchForSubscribers(): Promise<void> {
    if (this.#webhookNotices.hasWebhooks() || (await this.env.MCP_HUB.getByName('hub').hasSubscribers()))
      this.#watchIndex()
  }

  #watchIndex() {
    if (Date.now() - this.#watchedAt < MIN_WATCH_INTERVAL_MS) return
    this.#watchedAt = Date.now()
    const indexer = this.env.HISTORY_INDEXER.getByName(this.ctx.id.name ?? '')
    const watching = indexer.watch(WATCH_MS).catch(error => {
      this.#watchedAt = 0
      logStreamFailure(error)
    })
    this.ctx.waitUntil(watching)
  }

  #publish(events: readonly LoggedEvent[]) {
    this.#webhookNotices.mark(events)
    this.ctx.waitUntil(this.#feed.publish(events))
    this.ctx.waitUntil(this.#webhookNotices.send())
  }

  /** Tells the object that delivers an agent's webhooks that the log has new events. */
  async #notifyWebhooks(agentId: number): Promise<void> {
    const { chain, webhooks } = this.#config
    if (chain && webhooks) await webhooksOf(this.env.WEBHOOKS, chain, agentId).notify()
  }

  /**
   * Whether the log follows the index. False before its first start, and after a replay until the index reaches the
   * head.
   */
  #hasStarted(): boolean {
    return (this.#eventLog.position()?.block ?? -1) >= 0
  }

  #resolve(lastEventId: string | undefined, filter: EventFilter): number | 'ahead' | 'unknown' {
    if (this.#eventLog.position() === undefined) return 'ahead'
    return lastEventId === undefined ? this.#eventLog.newest().seq : this.#eventLog.resolve(lastEventId, filter)
  }

  /** An event without its vault would not reach the streams of that vault, so the vaults are read first. */
  async #publishUnpublishedIntents(): Promise<void> {
    const presented = this.#unpublishedIntents.splice(0).flatMap(record => {
      const data = presentIntentRecord(record)
      return data ? [{ data, agentId: agentOf(record) }] : []
    })
    await this.#loadVaults(presented.flatMap(({ agentId }) => agentId ?? []))
    if (!this.#hasStarted()) return
    const events = presented.map(
      ({ data, agentId }): StreamEvent => ({
        type: 'intent',
        agentId,
        vault: agentId === undefined ? undefined : this.#agentVaults.get(agentId),
        data,
      }),
    )
    this.#publish(this.#eventLog.appendOffChain(events))
  }

  /** Reads the vaults of agents. Gives up after some attempts, because the other streams wait for the events too. */
  async #loadVaults(agentIds: readonly number[]): Promise<void> {
    const chain = this.#openChain()
    if (chain === undefined) return
    for (let attempt = 1; attempt <= MAX_VAULT_READS; attempt++) {
      if (attempt > 1) await scheduler.wait(VAULT_RETRY_MS)
      const isLoaded = this.#agentVaults.loadFromIndexOrChain(this.env.HISTORY, chain, agentIds).then(() => true)
      if (await isLoaded.catch(logStreamFailure)) return
    }
  }

  async #readChanges(): Promise<void> {
    try {
      const dueAt = await this.#openPublisher()?.publishChanges()
      this.#isFailing = false
      if (dueAt !== undefined) void this.#advanceAt(dueAt)
    } catch (error) {
      this.#isFailing = true
      logStreamFailure(error)
      await armBefore(this.ctx.storage, Date.now() + RETRY_MS)
    }
  }

  async #readIndex(): Promise<boolean> {
    const indexer = this.env.HISTORY_INDEXER.getByName(this.ctx.id.name ?? '')
    const status = await indexer.catchUp().catch(logStreamFailure)
    return (await this.advance()) && status !== undefined
  }

  /** Returns undefined if the deployment has no trading contracts. */
  #openChain(): TradingChain | undefined {
    if (this.#chain) return this.#chain
    const { chain, trading } = this.#config
    if (chain === undefined || trading === undefined) return undefined
    this.#chain = createChain(chain, trading) as TradingChain
    return this.#chain
  }

  #openPublisher(): IndexPublisher | undefined {
    if (this.#publisher) return this.#publisher
    const chain = this.#openChain()
    if (chain === undefined) return undefined
    const db = this.env.HISTORY
    const eventLog = this.#eventLog
    this.#publisher = createIndexPublisher({
      chain,
      db,
      indexKey: indexKeyOf(chain),
      eventLog,
      publish: events => this.#publish(events),
      alerts: createAlerts({ chain, db, eventLog }),
      agentVaults: this.#agentVaults,
      onAgentsChanged: agentIds =>
        this.ctx.waitUntil(
          this.env.MCP_HUB.getByName('hub')
            .agentsChanged(agentIds)
            .catch(() => {}),
        ),
    })
    return this.#publisher
  }
}

const logStreamFailure = (error: unknown) => logFailure('event streams failure', error)

/**
 * Whether a transaction was signed for an intent. Refused ones are no events: they cost their sender nothing, so anyone
 * could fill the log with them.
 */
const isSigned = ({ attempts }: IntentRecord): boolean => attempts.length > 0

/** Returns the agent that signed an intent, from its group. */
function agentOf({ group }: IntentRecord): number | undefined {
  const agentId = agentOfGroup(group)
  return agentId === undefined ? undefined : Number(agentId)
}
