import type { Webhook } from '../resources/webhook.ts'
import type { DeliveryFailure, WebhookRecord, WebhookTest } from './store.ts'

const toSeconds = (ms: number) => `${Math.floor(ms / 1_000)}`

/** Presents a webhook. Times of a webhook come from the service's clock. */
export function presentWebhook(record: WebhookRecord): Webhook {
  const { lastDeliveredAt, nextAttemptAt, previousSecretUntil, disabledReason } = record
  return {
    webhookId: record.id,
    url: record.url,
    eventTypes: record.eventTypes,
    createdBy: record.createdBy,
    createdAt: toSeconds(record.createdAt),
    state: record.state,
    ...(disabledReason !== undefined && { disabledReason }),
    deliveredThrough: record.cursor.id,
    ...(lastDeliveredAt !== undefined && { lastDeliveredAt: toSeconds(lastDeliveredAt) }),
    ...(record.failure && { failure: presentFailure(record.failure) }),
    ...(nextAttemptAt !== undefined && { nextAttemptAt: toSeconds(nextAttemptAt) }),
    ...(previousSecretUntil !== undefined && { previousSecretUntil: toSeconds(previousSecretUntil) }),
    ...(record.lastTest && { lastTest: presentTest(record.lastTest) }),
  }
}

export const presentWebhooks = (agentId: bigint, records: readonly WebhookRecord[]) => ({
  agentId: `${agentId}`,
  webhooks: records.map(presentWebhook),
})

const presentFailure = ({ messageId, attempts, since, lastAttemptAt, status, problem }: DeliveryFailure) => ({
  messageId,
  attempts,
  since: toSeconds(since),
  lastAttemptAt: toSeconds(lastAttemptAt),
  ...(status !== undefined && { status }),
  problem,
})

const presentTest = ({ at, isDelivered, status, problem }: WebhookTest) => ({
  at: toSeconds(at),
  delivered: isDelivered,
  ...(status !== undefined && { status }),
  ...(problem !== undefined && { problem }),
})
