import { DurableObject } from 'cloudflare:workers'
import { createQueue } from '../concurrency.ts'
import { parseConfig, type WebhookConfig } from '../config/config.ts'
import { eventLogOf } from '../live/client.ts'
import type { LogCursor } from '../live/store.ts'
import { logFailure } from '../log.ts'
import type { WebhookAction } from '../resources/webhook.ts'
import { attempt, createSecret, type DeliveryRules } from './attempt.ts'
import { createDelivery, type Delivery, testBody, type WebhookMessage } from './deliver-due-events.ts'
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
  | { kind: 'notFound' | 'tooManyMessages' | 'deploymentIsFull' }
  | { kind: 'tooMany'; max: number }

const EVENTS_PER_READ = 50
const PREVIOUS_SECRET_MS = 86_400_000
/** A test responds within the time of a submission. */
const TEST_TIMEOUT_MS = 3_000
/** An alarm that died is repeated after this time. */
const WATCHDOG_MS = 120_000
/** How often webhooks without new events ask for notices again. */
const RENEWAL_MS = 3_600_000

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
      readLog: cursor => this.#readLog(cursor),
      post: (webhook, message) => this.#post(webhook, message),
      now: () => Date.now(),
      random: () => Math.random(),
    })
  }

  /** Creates a webhook for the events that follow. Its id is the digest of the message, so a repetition creates nothing. */
  create(creation: WebhookCreation): Promise<WebhookResult> {
    return this.#inOrder(() => this.#create(creation))
  }

  async #create(creation: WebhookCreation): Promise<WebhookResult> {
    const { maxWebhooks, maxWebhooksPerAgent } = this.#settings()
    const known = this.#repeatedOrRefused(creation)
    if (known) return known
    const count = this.#store.list().length
    if (count >= maxWebhooksPerAgent) return { kind: 'tooMany', max: maxWebhooksPerAgent }
    const cursor = await this.#log().setWebhookCount(this.#agentId, count + 1, maxWebhooks)
    if (cursor === undefined) return { kind: 'deploymentIsFull' }
    const { digest, url, eventTypes, party } = creation
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
    const early = this.#repeatedOrRefused(change)
    if (early) return early
    const webhook = this.#store.find(change.webhookId)
    if (webhook === undefined || !isVisible(webhook, change.party)) return { kind: 'notFound' }
    if (change.action === 'test' && this.#delivery.count(webhook) !== undefined) return { kind: 'tooManyMessages' }
    this.#store.remember(change, webhook)
    const { secret, ...changed } = await this.#apply(change.action, webhook, change.digest)
    await this.#schedule()
    return { kind: 'done', webhook: changed, ...(secret !== undefined && { secret }) }
  }

  /** Starts the delivery of new events. The event log calls it. */
  async notify(): Promise<void> {
    this.#delivery.wakeAll()
    await this.#schedule()
  }

  override async alarm(): Promise<void> {
    if (this.#config.webhooks === undefined) return
    await this.ctx.storage.setAlarm(Date.now() + WATCHDOG_MS)
    if (this.#delivery.nextDueAt() === undefined) await this.#renewNotices()
    await this.#delivery.deliverDue()
    await this.#schedule()
  }

  #repeatedOrRefused(command: WebhookCommand): WebhookResult | undefined {
    const webhook = this.#store.repeated(command)
    if (webhook) return { kind: 'repeated', webhook }
    return this.#store.hasRoom(command) ? undefined : { kind: 'tooManyMessages' }
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
        return this.#update(webhook, { ...changes, nextAttemptAt: Date.now() })
      }
      case 'rotateSecret': {
        const secret = createSecret()
        const previousSecretUntil = Date.now() + PREVIOUS_SECRET_MS
        return { ...this.#update(webhook, { secret, previousSecret, previousSecretUntil }), secret }
      }
      case 'delete': {
        this.#store.delete(id)
        await this.#inOrder(() => this.#sendCount())
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

  #readLog = (cursor: LogCursor) => this.#log().readAgentEvents(this.#agentId, cursor, EVENTS_PER_READ)

  /** Asks for notices and reads the log, because an event log that was lost does not know who has webhooks. */
  async #renewNotices(): Promise<void> {
    try {
      await this.#inOrder(() => this.#sendCount())
      this.#delivery.wakeAll()
    } catch (error) {
      logFailure('webhook log unreadable', error) // tried again with the next renewal
    }
  }

  #sendCount = () => this.#log().setWebhookCount(this.#agentId, this.#store.list().length, Number.POSITIVE_INFINITY)

  async #schedule() {
    const isFollowing = this.#store.list().some(({ state }) => state === 'active')
    if (isFollowing) await this.ctx.storage.setAlarm(this.#delivery.nextDueAt() ?? Date.now() + RENEWAL_MS)
    else await this.ctx.storage.deleteAlarm()
  }
}

const deleted = (webhook: StoredWebhook): WebhookRecord => ({
  ...withoutSecrets(webhook),
  state: 'deleted',
  nextAttemptAt: undefined,
})

const isVisible = ({ createdBy }: StoredWebhook, party: WebhookParty) => party === 'owner' || createdBy === party

/** Returns the rules for targets of a deployment. */
export const deliveryRulesOf = (
  { allowsLocalTargets, resolverUrl }: WebhookConfig,
  baseUrl: string | undefined,
): DeliveryRules => {
  const own = URL.parse(baseUrl ?? '')
  return { allowsLocalTargets, resolverUrl, ownHosts: own ? [own.hostname] : [] }
}
