import { z } from 'zod'
import { OperationReply } from '../call.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import { newSalt, quoteWebhookMessage, verifyWebhookMessage } from '../intents/webhook-message.ts'
import { deadline } from '../resources/primitives.ts'
import { typedDataSchemas } from '../resources/typed-data.ts'
import {
  action,
  eventTypesQuery,
  url,
  webhookBody,
  webhookChangeBody,
  webhookList,
  webhookListBody,
  webhookQuote,
  webhookReceipt,
} from '../resources/webhook.ts'
import type { WebhookResult } from '../webhooks/object.ts'
import { presentWebhook, presentWebhooks } from '../webhooks/present-webhook.ts'
import { defineOperation } from './define-operation.ts'

export const getWebhookQuote = defineOperation(
  {
    id: 'getWebhookQuote',
    tool: {
      name: 'svc_get_webhook_quote',
      description:
        'First step of creating a webhook: typed data for the URL and the event types. The owner or signer of the agent signs typedData (EIP-712); then call svc_create_webhook. Example: {"agentId":"1","url":"https://agents.example/events","eventTypes":"trade,exit,risk"}',
    },
    path: '/agents/{agentId}/webhooks/quote',
    tag: 'Webhooks',
    summary: 'Get a quote for creating a webhook',
    description:
      "Returns the CreateWebhook message to sign, its digest and the body to post. The agent's owner or its signer signs; only the owner can change what the owner created.",
    query: z.object({ url, eventTypes: eventTypesQuery, deadline: deadline.optional() }),
    output: webhookQuote('Webhook', typedDataSchemas.CreateWebhook, webhookBody),
  },
  async (context: Context, { agentId, url, eventTypes = [], deadline }) => {
    context.webhooks.assertUrl(url)
    const fields = { url, eventTypes, salt: newSalt() }
    return quoteWebhookMessage(context, {
      agentId,
      primaryType: 'CreateWebhook',
      deadline,
      message: { agentId, ...fields },
      body: fields,
    })
  },
)

export const createWebhook = defineOperation(
  {
    id: 'createWebhook',
    tool: {
      name: 'svc_create_webhook',
      description:
        'Creates a webhook from the body of svc_get_webhook_quote with its signature. The secret is returned this once; give it to whoever verifies deliveries and do not repeat it elsewhere. Repeating the identical body creates nothing and shows no secret.',
    },
    method: 'post',
    path: '/agents/{agentId}/webhooks',
    tag: 'Webhooks',
    summary: 'Create a webhook',
    description:
      "Verifies a CreateWebhook message of the agent's owner or signer, and posts the agent's further events to the URL: the events of GET /agents/{agentId}/events with the same ids, in the same order, at least once, signed by Standard Webhooks 1.0.0. `secret` is returned this once.",
    body: webhookBody,
    status: 201,
    replay: 200,
    output: webhookReceipt,
    errors: [404, 409, 502, 503],
  },
  async (context: Context, { agentId, url, eventTypes, salt, deadline, signature }, call) => {
    const { webhooks } = context
    webhooks.assertUrl(url)
    const message = { agentId, url, eventTypes, salt, deadline, signature }
    const verified = await verifyWebhookMessage(context, call, 'CreateWebhook', message)
    await webhooks.assertHost(url)
    return replyOf(agentId, verified.digest, await webhooks.create(agentId, { ...verified, url, eventTypes }))
  },
)

export const getWebhookListQuote = defineOperation(
  {
    id: 'getWebhookListQuote',
    tool: {
      name: 'svc_get_webhook_list_quote',
      description:
        'First step of listing webhooks: typed data that the owner or signer of the agent signs; then call svc_list_webhooks. Example: {"agentId":"1"}',
    },
    path: '/agents/{agentId}/webhooks/list/quote',
    tag: 'Webhooks',
    summary: 'Get a quote for listing webhooks',
    description:
      'Returns the ListWebhooks message to sign and the body to post. One signature lists until its deadline.',
    query: z.object({ deadline: deadline.optional() }),
    output: webhookQuote('WebhookList', typedDataSchemas.ListWebhooks, webhookListBody),
  },
  (context, { agentId, deadline }) =>
    quoteWebhookMessage(context, {
      agentId,
      primaryType: 'ListWebhooks',
      deadline,
      message: { agentId },
      body: {},
    }),
)

export const listWebhooks = defineOperation(
  {
    id: 'listWebhooks',
    tool: {
      name: 'svc_list_webhooks',
      description:
        'Lists the webhooks of an agent: state, why one is disabled, which delivery fails and when it is retried. Before: svc_get_webhook_list_quote. Shows no secrets.',
    },
    method: 'post',
    path: '/agents/{agentId}/webhooks/list',
    tag: 'Webhooks',
    summary: 'List webhooks',
    description:
      'Lists the webhooks of an agent, without secrets: the state of each, the delivery that fails and why. Takes a signed ListWebhooks message, because URLs are nobody else’s business. A signer sees only what the signer created.',
    body: webhookListBody,
    readsOnly: true,
    output: webhookList,
  },
  async (context: Context, { agentId, deadline, signature }, call) => {
    const { webhooks } = context
    const { party } = await verifyWebhookMessage(context, call, 'ListWebhooks', { agentId, deadline, signature })
    return presentWebhooks(agentId, await webhooks.list(agentId, party))
  },
)

export const getWebhookChangeQuote = defineOperation(
  {
    id: 'getWebhookChangeQuote',
    tool: {
      name: 'svc_get_webhook_change_quote',
      description:
        'First step of changing a webhook: test, rotateSecret, enable or delete. The owner or signer signs typedData; then call svc_change_webhook. Example: {"agentId":"1","webhookId":"0x…","action":"test"}',
    },
    path: '/agents/{agentId}/webhooks/{webhookId}/quote',
    tag: 'Webhooks',
    summary: 'Get a quote for changing a webhook',
    description: 'Returns the ManageWebhook message to sign, its digest and the body to post.',
    query: z.object({ action, deadline: deadline.optional() }),
    output: webhookQuote('WebhookChange', typedDataSchemas.ManageWebhook, webhookChangeBody),
  },
  (context, { agentId, webhookId, action, deadline }) => {
    const salt = newSalt()
    return quoteWebhookMessage(context, {
      agentId,
      primaryType: 'ManageWebhook',
      deadline,
      message: { agentId, webhookId, action, salt },
      body: { action, salt },
    })
  },
)

export const changeWebhook = defineOperation(
  {
    id: 'changeWebhook',
    tool: {
      name: 'svc_change_webhook',
      description:
        'Tests, enables or deletes a webhook, or rotates its secret, which is returned this once. Before: svc_get_webhook_change_quote; send its body with agentId, webhookId and the signature. Repeating the identical body does nothing again.',
    },
    method: 'post',
    path: '/agents/{agentId}/webhooks/{webhookId}',
    tag: 'Webhooks',
    summary: 'Test, enable or delete a webhook, or rotate its secret',
    description:
      'Verifies a ManageWebhook message and does what `action` says, once. `test` posts an event of the type `test` at once and returns what the receiver responded in `lastTest`. After `rotateSecret`, deliveries carry two signatures for 24 hours. `enable` continues with the event that failed.',
    body: webhookChangeBody,
    status: 201,
    replay: 200,
    output: webhookReceipt,
  },
  async (context: Context, { agentId, webhookId, action, salt, deadline, signature }, call) => {
    const { webhooks } = context
    const message = { agentId, webhookId, action, salt, deadline, signature }
    const verified = await verifyWebhookMessage(context, call, 'ManageWebhook', message)
    return replyOf(agentId, webhookId, await webhooks.change(agentId, { ...verified, webhookId, action }))
  },
)

/** Returns the reply to a signed message. Throws the refusal of one that was not executed. */
function replyOf(agentId: bigint, webhookId: `0x${string}`, result: WebhookResult) {
  switch (result.kind) {
    case 'notFound':
      throw refuse('WEBHOOK_NOT_FOUND', { agentId, webhookId })
    case 'tooManyMessages':
      throw refuse('TOO_MANY_WEBHOOK_MESSAGES', { agentId }, { retryAfterSeconds: result.retryAfterSeconds })
    case 'tooMany':
      throw refuse('TOO_MANY_WEBHOOKS', { agentId, max: result.max, party: result.party })
    case 'deploymentIsFull':
      throw refuse('WEBHOOKS_FULL')
    default: {
      const { kind, webhook, secret } = result
      const receipt = { webhook: presentWebhook(webhook), ...(secret !== undefined && { secret }) }
      return new OperationReply(receipt, { isReplay: kind === 'repeated' })
    }
  }
}
