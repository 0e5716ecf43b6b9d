import type { LogCursor } from '../live/store.ts'

/** Who created a webhook. What the owner created, the signer can neither see nor change. */
export type WebhookParty = 'owner' | 'signer'

/** A failed delivery that is being retried, or was when the webhook was disabled. Times are in milliseconds. */
export type DeliveryFailure = {
  /** The message that fails. */
  messageId: string
  attempts: number
  since: number
  lastAttemptAt: number
  status?: number | undefined
  problem: string
}

/** The last test of a webhook. */
export type WebhookTest = {
  at: number
  isDelivered: boolean
  status?: number | undefined
  problem?: string | undefined
}

/** A webhook as everybody but its object sees it: without secrets. */
export type WebhookRecord = {
  id: string
  url: string
  /** Empty for all types. */
  eventTypes: string[]
  createdBy: WebhookParty
  createdAt: number
  state: 'active' | 'disabled' | 'deleted'
  /** Why it is disabled. */
  disabledReason?: string | undefined
  /** The row of the log up to which everything was delivered. */
  cursor: LogCursor
  lastDeliveredAt?: number | undefined
  failure?: DeliveryFailure | undefined
  /** When the next attempt starts; undefined if everything is delivered, or the webhook is disabled. */
  nextAttemptAt?: number | undefined
  /** Until when deliveries also carry the signature of the secret before the last rotation. */
  previousSecretUntil?: number | undefined
  lastTest?: WebhookTest | undefined
}

/** A webhook as its object stores it. */
export type StoredWebhook = WebhookRecord & {
  secret: string
  previousSecret?: string | undefined
  /** The minute in which attempts are being counted, and how many it has. */
  minute?: { startedAt: number; attempts: number } | undefined
}

/** Returns a webhook without its secrets. */
export const withoutSecrets = ({ secret, previousSecret, minute, ...record }: StoredWebhook): WebhookRecord => record
