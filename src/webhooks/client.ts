import type { Chain } from '../chain/configured-chain.ts'
import type { Config } from '../config/config.ts'
import { refuse } from '../errors/refuse.ts'
import { eventLogOf } from '../live/client.ts'
import { type WebhookUsage, webhooksOf } from '../live/webhook-notices.ts'
import { checkTargetHost } from './attempt.ts'
import { deliveryRulesOf, type WebhookChange, type WebhookCreation, type WebhookResult } from './object.ts'
import type { WebhookParty, WebhookRecord } from './store.ts'
import { checkTarget } from './target.ts'

/**
 * The webhooks of a deployment, as operations see them. Each method throws WEBHOOKS_UNAVAILABLE if the object is not
 * reachable.
 */
export type Webhooks = {
  /** Throws WEBHOOK_URL_REFUSED if events may not be posted to a URL, whatever its host resolves to. */
  assertUrl(url: string): void
  /** Throws WEBHOOK_URL_REFUSED unless the host has public addresses only. */
  assertHost(url: string): Promise<void>
  create(agentId: bigint, creation: WebhookCreation): Promise<WebhookResult>
  change(agentId: bigint, change: WebhookChange): Promise<WebhookResult>
  list(agentId: bigint, party: WebhookParty): Promise<WebhookRecord[]>
  /** Returns the places that are taken, and the agents that take most of them. */
  usage(limit: number): Promise<WebhookUsage>
  /** Disables the active webhooks of an agent, and returns all. */
  disableAll(agentId: bigint, reason: string): Promise<WebhookRecord[]>
}

/** Creates the client of a chain's webhooks. Throws WEBHOOKS_NOT_CONFIGURED. */
export function createWebhooks(
  { WEBHOOKS, EVENT_STREAMS }: Pick<Env, 'WEBHOOKS' | 'EVENT_STREAMS'>,
  chain: Chain,
  { webhooks, baseUrl }: Pick<Config, 'webhooks' | 'baseUrl'>,
): Webhooks {
  if (webhooks === undefined) throw refuse('WEBHOOKS_NOT_CONFIGURED')
  const rules = deliveryRulesOf(webhooks, baseUrl)
  const object = (agentId: bigint) => webhooksOf(WEBHOOKS, chain, agentId)

  function accepted(text: string): URL {
    const target = checkTarget(text, rules)
    if (target.kind === 'refused') throw refuse('WEBHOOK_URL_REFUSED', { url: text, problem: target.problem })
    return target.url
  }

  const reach = <T>(call: () => Promise<T>): Promise<T> =>
    call().catch(error => {
      throw refuse('WEBHOOKS_UNAVAILABLE', {}, { cause: error })
    })

  return {
    assertUrl: url => void accepted(url),
    async assertHost(url) {
      const check = await checkTargetHost(accepted(url), rules)
      if (check.kind === 'unknown') throw refuse('WEBHOOKS_UNAVAILABLE')
      if (check.kind === 'refused') throw refuse('WEBHOOK_URL_REFUSED', { url, problem: check.problem })
    },
    create: (agentId, creation) => reach(async () => object(agentId).create(creation)),
    change: (agentId, change) => reach(async () => object(agentId).change(change)),
    list: (agentId, party) => reach(async () => object(agentId).list(party)),
    usage: limit => reach(async () => eventLogOf(EVENT_STREAMS, chain).webhookUsage(limit)),
    disableAll: (agentId, reason) => reach(async () => object(agentId).disableAll(reason)),
  }
}
