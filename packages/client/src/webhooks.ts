import { serviceDomainName } from '@agent-trading-service/protocol/typed-data'
import type { Hex } from 'viem'
import { canonicalForm, signWith } from './account.ts'
import { type Integer, toDigits } from './amounts.ts'
import { machineTime } from './deployment.ts'
import { ValidationError } from './errors.ts'
import type { components } from './generated/openapi.ts'
import { fillPath } from './http.ts'
import type { ClientContext } from './prepare.ts'
import { submit } from './submit.ts'
import { type Domain, digestOf, type Message, typedDataOf } from './typed-data.ts'

type Schemas = components['schemas']
export type WebhookInfo = Schemas['Webhook']
/** A webhook and the secret that signs its deliveries. */
export type WebhookWithSecret = { webhook: WebhookInfo; secret: string }
export type WebhookEventType = NonNullable<Schemas['WebhookBody']['eventTypes']>[number]
export type WebhookRequest = {
  /** https, port 443, a public host. */
  url: string
  /** All types by default; reorgs are always delivered. */
  eventTypes?: readonly WebhookEventType[]
}
type WebhookAction = Schemas['WebhookChangeBody']['action']
type Receipt = Schemas['WebhookReceipt']

const LIFETIME_SECONDS = 600
const SALT_BYTES = 32

/**
 * The webhooks of an agent, signed by the client's account: the agent's owner or signer. The messages carry no nonce
 * and move nothing, so the client builds them without a quote. Verify deliveries with the package `standardwebhooks`.
 */
export function createWebhooks(context: ClientContext, id: Integer) {
  const agentId = toDigits(id, 'agentId')
  const { http, deployment } = context

  /** The service's own domain: it names the agent registry and the host, under a name that no contract has. */
  async function domain(): Promise<Domain> {
    const { chainId, verifyingContract } = await deployment.domainOf('agentRegistry')
    return { name: serviceDomainName(new URL(http.origin).hostname), version: '1', chainId, verifyingContract }
  }

  async function send<Response>(
    primaryType: 'CreateWebhook' | 'ListWebhooks' | 'ManageWebhook',
    path: string,
    { webhookId, ...body }: Message,
  ): Promise<Response> {
    const { account } = context
    if (account === undefined)
      throw new ValidationError(
        'NO_ACCOUNT',
        "The agent's owner or signer has to sign, and the client has no account.",
        {
          remedy: 'Pass `account` to createClient.',
        },
      )
    const deadline = `${Math.max(await deployment.now(), machineTime()) + LIFETIME_SECONDS}`
    const ids = { agentId, ...(webhookId !== undefined && { webhookId }) }
    const typedData = typedDataOf(await domain(), primaryType, { ...ids, ...body, deadline })
    const digest = digestOf(typedData)
    const signature = await canonicalForm(await signWith(account, typedData), { digest, signer: account.address })
    const submission = {
      kind: 'webhook',
      method: 'POST' as const,
      path: fillPath(path, ids as Record<string, string>),
      body: { ...body, deadline, signature },
      digest,
    }
    return submit<Response>(http, submission)
  }

  const change = (webhookId: string, action: WebhookAction) =>
    send<Receipt>('ManageWebhook', '/agents/{agentId}/webhooks/{webhookId}', { webhookId, action, salt: newSalt() })

  /**
   * Replaces the secret and returns the new one. The old one stays valid for 24 hours.
   * @example
   * const { secret } = await agent.webhooks.rotateSecret(webhook.webhookId)
   */
  async function rotateSecret(webhookId: string): Promise<WebhookWithSecret> {
    const { webhook, secret } = await change(webhookId, 'rotateSecret')
    // The response with the secret was lost and the message repeated: only another rotation shows one.
    return secret === undefined ? rotateSecret(webhookId) : { webhook, secret }
  }

  return {
    /**
     * Creates a webhook for the events that follow. Store the secret: the service never shows it again.
     * @example const { webhook, secret } = await agent.webhooks.create({ url: 'https://example.org/hook', eventTypes:
     * ['trade'] })
     */
    async create({ url, eventTypes = [] }: WebhookRequest): Promise<WebhookWithSecret> {
      const fields = { url, eventTypes: [...eventTypes], salt: newSalt() }
      const { webhook, secret } = await send<Receipt>('CreateWebhook', '/agents/{agentId}/webhooks', fields)
      return secret === undefined ? rotateSecret(webhook.webhookId) : { webhook, secret }
    },
    /**
     * Lists the webhooks that the account may see, oldest first.
     * @example
     * const [oldest] = await agent.webhooks.list()
     */
    async list(): Promise<WebhookInfo[]> {
      const path = '/agents/{agentId}/webhooks/list'
      return (await send<Schemas['WebhookList']>('ListWebhooks', path, {})).webhooks
    },
    /**
     * Posts a test event at once; `lastTest` of the result says what the receiver responded.
     * @example
     * const { lastTest } = await agent.webhooks.test(webhook.webhookId)
     */
    test: async (webhookId: string) => (await change(webhookId, 'test')).webhook,
    rotateSecret,
    /**
     * Continues a disabled webhook with the event that failed, or retries a failing one at once.
     * @example
     * await agent.webhooks.enable(webhook.webhookId)
     */
    enable: async (webhookId: string) => (await change(webhookId, 'enable')).webhook,
    /**
     * Deletes a webhook.
     * @example
     * await agent.webhooks.delete(webhook.webhookId)
     */
    delete: async (webhookId: string) => (await change(webhookId, 'delete')).webhook,
  }
}

const newSalt = (): Hex =>
  `0x${[...crypto.getRandomValues(new Uint8Array(SALT_BYTES))].map(byte => byte.toString(16).padStart(2, '0')).join('')}`
