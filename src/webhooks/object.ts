import { DurableObject } from 'cloudflare:workers'
import { armBefore } from '../alarm.ts'
import { createQueue } from '../concurrency.ts'
import { parseConfig, type WebhookConfig } from '../config/config.ts'
import { eventLogOf } from '../live/client.ts'
import type { LogCursor } from '../live/store.ts'
import type { WebhookCounts } from '../live/webhook-notices.ts'
import { logFailure } from '../log.ts'
import type { WebhookAction } from '../resources/webhook.ts'
import { attempt, createSecret, type DeliveryRules } from './attempt.ts'
import { createDelivery, type Delivery, takesPlace, testBody, type WebhookMessage } from './deliver-due-events.ts'
import {
  openWebhookStore,
  type StoredWebhook,
  type WebhookCommand,
  type WebhookParty,
  type WebhookRecord,
  type WebhookStore,
  withoutSecrets,
} from './store.ts'

export type WebhookCreation = WebhookCommand & { url: string; eventTypes: string[]; party: WebhookParty }
export type WebhookChange = WebhookCommand & { webhookId: string; action: WebhookAction; party: WebhookParty }

/** What became of a signed message. Only the first execution returns a new secret. */
export type WebhookResult =
  | { kind: 'done' | 'repeated'; webhook: WebhookRecord; secret?: string }
  | { kind: 'notFound' | 'deploymentIsFull' }
  | { kind: 'tooManyMessages'; retryAfterSeconds: number }
  | { kind: 'tooMany'; max: number; party: WebhookParty }

const EVENTS_PER_READ = 50
/** Webhooks of one agent that its owner may have, and as many its signer. */
const MAX_WEBHOOKS_PER_PARTY = 5
const PREVIOUS_SECRET_MS = 86_400_000
/** A test responds within the time of a submission. */
const TEST_TIMEOUT_MS = 3_000
/** How often webhooks without new events ask for notices again. */
const RENEWAL_MS = 3_600_000
/** How soon counts are sent again that the event log did not get. */
const COUNTS_RETRY_MS = 60_000

/**
 * The webhooks of one agent: a receiver that is slow or down costs no other agent anything. The event log notifies the
 * object, which then reads the log from the cursor of each webhook. All deliveries run in the alarm.
 */
export class WebhooksObject extends DurableObject<Env> {
  readonly #store: WebhookStore
  readonly #delivery: Delivery
  readonly #config = parseConfig({ ...this.env })
  readonly #chainId: string
  readonly #agentId: number
  #hasUnsentCounts = false
  /** Whether the alarm runs, which arms the next one when it ends. */
  #isDelivering = false
  /** Runs what tells the log a number of webhooks, in order: it must end with the one that was counted last. */
  readonly #inOrder = createQueue()

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    const [chainId = '', agentId = ''] = (ctx.id.name ?? '').split(':')
    this.#chainId = chainId
    this.#agentId = Number(agentId)
    this.#store = openWebhookStore(ctx.storage.sql)
    this.#delivery = createDelivery({
      agentId: this.#agentId,
      store: this.#store,
      readLog: webhook => this.#readLog(webhook),
      post: (webhook, message) => this.#post(webhook, message),
      now: () => Date.now(),
      random: () => Math.random(),
      onPlacesChanged: () => {
        this.#hasUnsentCounts = true
      },
    })
  }

  /**
   * Creates a webhook for the events that follow. Its id is the digest of the message, so a repetition creates nothing.
   */
  create(creation: WebhookCreation): Promise<WebhookResult> {
    return this.#inOrder(() => this.#create(creation))
  }

  async #create(creation: WebhookCreation): Promise<WebhookResult> {
    const known = this.#repeatedOrRefused(creation)
    if (known) return known
    const { digest, url, eventTypes, party } = creation
    // Each party has its own, so that a thief of the signer's key leaves the owner's free.
    const own = this.#store.list().filter(({ createdBy }) => createdBy === party)
    if (own.length >= MAX_WEBHOOKS_PER_PARTY) return { kind: 'tooMany', max: MAX_WEBHOOKS_PER_PARTY, party }
    const cursor = await this.#takePlace(party)
    if (cursor === undefined) return { kind: 'deploymentIsFull' }
    const webhook: StoredWebhook = {
      id: digest,
      url,
      eventTypes,
      createdBy: party,
      createdAt: Date.now(),
      state: 'active',
      cursor: { seq: cursor.seq, id: cursor.id },
      nextAttemptAt: Date.now(), // events may have been logged since the cursor was read
      secret: createSecret(),
    }
    this.#store.put(webhook)
    const record = this.#store.remember(creation, webhook)
    await this.#schedule()
    return { kind: 'done', webhook: record, secret: webhook.secret }
  }

  /** Returns the webhooks that a party may see, oldest first. */
  list(party: WebhookParty): WebhookRecord[] {
    return this.#store
      .list()
      .filter(webhook => isVisible(webhook, party))
      .map(withoutSecrets)
  }

  /** Does what a signed message says, once. */
  async change(change: WebhookChange): Promise<WebhookResult> {
    return change.action === 'test' ? this.#change(change) : this.#inOrder(() => this.#change(change))
  }

  async #change(change: WebhookChange): Promise<WebhookResult> {
    const early = this.#repeatedOrRefused(change)
    if (early) return early
    const { action, party } = change
    const webhook = this.#store.find(change.webhookId)
    if (webhook === undefined || !isVisible(webhook, party)) return { kind: 'notFound' }
    const testAt = action === 'test' ? this.#delivery.count(webhook) : undefined
    if (testAt !== undefined)
      return { kind: 'tooManyMessages', retryAfterSeconds: Math.ceil((testAt - Date.now()) / 1_000) }
    const needsPlace = action === 'enable' && webhook.state === 'disabled'
    if (needsPlace && (await this.#takePlace(webhook.createdBy)) === undefined) return { kind: 'deploymentIsFull' }
    this.#store.remember(change, webhook)
    const { secret, ...changed } = await this.#apply(action, webhook, change.digest)
    await this.#schedule()
    return { kind: 'done', webhook: changed, ...(secret !== undefined && { secret }) }
  }

  /** Disables every active webhook of the agent, and returns all. */
  async disableAll(reason: string): Promise<WebhookRecord[]> {
    for (const { id, state } of this.#store.list()) if (state === 'active') this.#delivery.disable(id, reason)
    await this.#inOrder(() => this.#sendCounts())
    await this.#schedule()
    return this.list('owner')
  }

  /** Starts the delivery of new events. The event log calls it. */
  async notify(): Promise<void> {
    this.#delivery.wakeAll()
    if (this.#counts().active === 0) this.#hasUnsentCounts = true // the log counts webhooks that do not exist
    await this.#schedule()
  }

  override async alarm(): Promise<void> {
    if (this.#config.webhooks === undefined) return
    this.#isDelivering = true
    try {
      if (this.#delivery.nextDueAt() === undefined) await this.#renewNotices()
      await this.#delivery.deliverDue()
      if (this.#hasUnsentCounts) await this.#inOrder(() => this.#sendCounts()).catch(logUnreadableLog)
    } finally {
      this.#isDelivering = false
      await this.#schedule()
    }
  }

  #repeatedOrRefused(command: WebhookCommand): WebhookResult | undefined {
    const webhook = this.#store.repeated(command)
    if (webhook) return { kind: 'repeated', webhook }
    const retryAfterSeconds = this.#store.secondsUntilRoom(command)
    return retryAfterSeconds > 0 ? { kind: 'tooManyMessages', retryAfterSeconds } : undefined
  }

  async #apply(
    action: WebhookAction,
    webhook: StoredWebhook,
    digest: string,
  ): Promise<WebhookRecord & { secret?: string }> {
    const { id, secret: previousSecret } = webhook
    switch (action) {
      case 'test':
        return this.#test(webhook, digest)
      case 'enable': {
        const changes = { state: 'active', disabledReason: undefined, failure: undefined } as const
        const enabled = this.#update(webhook, { ...changes, nextAttemptAt: Date.now() })
        this.#hasUnsentCounts = true // it may have failed for long
        return enabled
      }
      case 'rotateSecret': {
        const secret = createSecret()
        const previousSecretUntil = Date.now() + PREVIOUS_SECRET_MS
        return { ...this.#update(webhook, { secret, previousSecret, previousSecretUntil }), secret }
      }
      case 'delete': {
        this.#store.delete(id)
        await this.#sendCounts().catch(logUnreadableLog)
        return deleted(webhook)
      }
    }
  }

  #update(webhook: StoredWebhook, changes: Partial<StoredWebhook>): WebhookRecord {
    const changed = this.#store.update(webhook.id, changes)
    return changed ? withoutSecrets(changed) : deleted(webhook)
  }

  /** Posts a test event at once, outside the order of the events, and records the receiver's response. */
  async #test(webhook: StoredWebhook, digest: string): Promise<WebhookRecord> {
    const at = Date.now()
    const message = { id: `test-${digest.slice(2, 18)}`, body: testBody(this.#agentId, at) }
    const outcome = await attempt(this.#deliveryOf(webhook), message, this.#rules(), {
      now: at,
      timeoutMs: TEST_TIMEOUT_MS,
    })
    const status = outcome.kind === 'gone' ? 410 : outcome.status
    const problem = outcome.kind === 'gone' ? 'the response has status 410' : undefined
    return this.#update(webhook, {
      lastTest: {
        at,
        isDelivered: outcome.kind === 'delivered',
        status,
        problem: outcome.kind === 'failed' ? outcome.problem : problem,
      },
    })
  }

  #post = (webhook: StoredWebhook, message: WebhookMessage) =>
    attempt(this.#deliveryOf(webhook), message, this.#rules(), { now: Date.now() })

  #deliveryOf({ url, secret, previousSecret, previousSecretUntil = 0 }: StoredWebhook) {
    const isPreviousValid = previousSecret !== undefined && Date.now() < previousSecretUntil
    return { url, secrets: isPreviousValid ? [secret, previousSecret] : [secret] }
  }

  #settings(): WebhookConfig {
    if (this.#config.webhooks === undefined) throw new Error('webhooks are turned off')
    return this.#config.webhooks
  }

  #rules = (): DeliveryRules => deliveryRulesOf(this.#settings(), this.#config.baseUrl)

  #log = () => eventLogOf(this.env.EVENT_STREAMS, { id: Number(this.#chainId) })

  #readLog = ({ eventTypes, cursor }: StoredWebhook) =>
    this.#log().readAgentEvents(this.#agentId, eventTypes, cursor, EVENTS_PER_READ)

  /** Asks for notices and reads the log, because an event log that was lost does not know who has webhooks. */
  async #renewNotices(): Promise<void> {
    try {
      await this.#inOrder(() => this.#sendCounts())
      this.#delivery.wakeAll()
    } catch (error) {
      logUnreadableLog(error) // tried again with the next renewal
    }
  }

  /**
   * Takes a place for one more webhook of a party and returns the newest row of the log; undefined if the deployment
   * has none left. The first active one of a party is always accepted, so however many places others take, nobody is
   * without.
   */
  #takePlace(party: WebhookParty): Promise<LogCursor | undefined> {
    const { active, places } = this.#counts()
    const isFirst = !this.#store.list().some(webhook => webhook.createdBy === party && webhook.state === 'active')
    const max = isFirst ? Number.POSITIVE_INFINITY : this.#settings().maxWebhooks
    return this.#log().setWebhookCounts(this.#agentId, { active: active + 1, places: places + 1 }, max)
  }

  async #sendCounts(): Promise<void> {
    this.#hasUnsentCounts = false
    try {
      await this.#log().setWebhookCounts(this.#agentId, this.#counts(), Number.POSITIVE_INFINITY)
    } catch (error) {
      this.#hasUnsentCounts = true
      throw error
    }
  }

  #counts(): WebhookCounts {
    const active = this.#store.list().filter(({ state }) => state === 'active')
    return { active: active.length, places: active.filter(takesPlace).length }
  }

  async #schedule() {
    if (this.#isDelivering) return
    const isFollowing = this.#store.list().some(({ state }) => state === 'active')
    const dueAt = this.#delivery.nextDueAt() ?? (isFollowing ? Date.now() + RENEWAL_MS : Number.POSITIVE_INFINITY)
    const countsAt = this.#hasUnsentCounts ? Date.now() + COUNTS_RETRY_MS : Number.POSITIVE_INFINITY
    const nextAt = Math.min(dueAt, countsAt)
    if (Number.isFinite(nextAt)) await armBefore(this.ctx.storage, nextAt)
  }
}

const logUnreadableLog = (error: unknown) => logFailure('webhook log unreadable', error)

const deleted = (webhook: StoredWebhook): WebhookRecord => ({
  ...withoutSecrets(webhook),
  state: 'deleted',
  nextAttemptAt: undefined,
})

const isVisible = ({ createdBy }: StoredWebhook, party: WebhookParty) => party === 'owner' || createdBy === party

export const deliveryRulesOf = (
  { allowsLocalTargets, resolverUrl }: WebhookConfig,
  baseUrl: string | undefined,
): DeliveryRules => {
  const own = URL.parse(baseUrl ?? '')
  return { allowsLocalTargets, resolverUrl, ownHosts: own ? [own.hostname] : [] }
}
