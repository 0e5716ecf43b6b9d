import type { Chain } from '../chain/configured-chain.ts'
import type { Config } from '../config/config.ts'
import { refuse } from '../errors/refuse.ts'
import { eventLogOf } from '../live/client.ts'
import { type WebhookUsage, webhooksOf } from '../live/webhook-notices.ts'
import { checkTargetHost } from './attempt.ts'
import { deliveryRulesOf, type WebhookChange, type WebhookCreation, type WebhookResult } from './object.ts'
import type { WebhookParty, WebhookRecord } from './store.ts'
import { checkTarget } from './target.ts'

export type Webhooks = ReturnType<typeof createWebhooks>

/**
 * Creates the client of a chain's webhooks. Throws WEBHOOKS_NOT_CONFIGURED. Each method throws WEBHOOKS_UNAVAILABLE if
 * the object is not reachable.
 */
export function createWebhooks(
  { WEBHOOKS, EVENT_STREAMS }: Pick<Env, 'WEBHOOKS' | 'EVENT_STREAMS'>,
  chain: Chain,
  { webhooks, baseUrl }: Pick<Config, 'webhooks' | 'baseUrl'>,
) {
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
    /** Throws WEBHOOK_URL_REFUSED if events may not be posted to a URL, whatever its host resolves to. */
    assertUrl: (url: string): void => void accepted(url),
    /** Throws WEBHOOK_URL_REFUSED unless the host has public addresses only. */
    async assertHost(url: string): Promise<void> {
      const check = await checkTargetHost(accepted(url), rules)
      if (check.kind === 'unknown') throw refuse('WEBHOOKS_UNAVAILABLE')
      if (check.kind === 'refused') throw refuse('WEBHOOK_URL_REFUSED', { url, problem: check.problem })
    },
    create: (agentId: bigint, creation: WebhookCreation) =>
      reach<WebhookResult>(async () => object(agentId).create(creation)),
    change: (agentId: bigint, change: WebhookChange) =>
      reach<WebhookResult>(async () => object(agentId).change(change)),
    list: (agentId: bigint, party: WebhookParty) => reach<WebhookRecord[]>(async () => object(agentId).list(party)),
    /** Returns the places that are taken, and the agents that take most of them. */
    usage: (limit: number) => reach<WebhookUsage>(async () => eventLogOf(EVENT_STREAMS, chain).webhookUsage(limit)),
    /** Disables the active webhooks of an agent, and returns all. */
    disableAll: (agentId: bigint, reason: string) =>
      reach<WebhookRecord[]>(async () => object(agentId).disableAll(reason)),
  }
}
