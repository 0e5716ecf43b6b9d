import type { Address } from 'viem'
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

const SCHEMA = `
  -- StoredWebhook as JSON.
  CREATE TABLE IF NOT EXISTS webhook (id TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  -- Signed messages that were executed, until their deadline in block time. result: WebhookRecord as JSON.
  CREATE TABLE IF NOT EXISTS message (
    digest TEXT PRIMARY KEY, deadline INTEGER NOT NULL, account TEXT NOT NULL, webhook TEXT NOT NULL, result TEXT NOT NULL
  ) WITHOUT ROWID;
`

/** A signed message that is executed once, and the account that signed it. Times are block times in Unix seconds. */
export type WebhookCommand = { digest: string; account: Address; deadline: number; chainTime: number }

/**
 * How many executed messages one account may have that are still valid. Whoever has the signer's key uses up none of
 * the owner's.
 */
const MAX_REMEMBERED_MESSAGES = 1_000

export type WebhookStore = ReturnType<typeof openWebhookStore>

/** Opens the webhooks of one agent. Every method is synchronous. */
export function openWebhookStore(sql: SqlStorage) {
  sql.exec(SCHEMA)

  function list(): StoredWebhook[] {
    const rows = sql.exec<{ value: string }>('SELECT value FROM webhook').toArray()
    return rows.map(({ value }): StoredWebhook => JSON.parse(value)).sort((a, b) => a.createdAt - b.createdAt)
  }

  function find(id: string): StoredWebhook | undefined {
    const [row] = sql.exec<{ value: string }>('SELECT value FROM webhook WHERE id = ?', id).toArray()
    return row && JSON.parse(row.value)
  }

  function put(webhook: StoredWebhook) {
    sql.exec('INSERT OR REPLACE INTO webhook VALUES (?, ?)', webhook.id, JSON.stringify(webhook))
  }

  return {
    list,
    find,
    put,

    /** Changes fields of a webhook and returns it; undefined if it was deleted. */
    update(id: string, changes: Partial<StoredWebhook>): StoredWebhook | undefined {
      const webhook = find(id)
      if (webhook === undefined) return undefined
      const changed = { ...webhook, ...changes }
      put(changed)
      return changed
    },

    delete(id: string) {
      sql.exec('DELETE FROM webhook WHERE id = ?', id)
    },

    /** Returns what an earlier execution of a message did, as it is now; undefined if the message is new. */
    repeated({ digest }: WebhookCommand): WebhookRecord | undefined {
      const [row] = sql
        .exec<{ webhook: string; result: string }>('SELECT webhook, result FROM message WHERE digest = ?', digest)
        .toArray()
      if (row === undefined) return undefined
      const current = find(row.webhook)
      return current ? withoutSecrets(current) : { ...(JSON.parse(row.result) as WebhookRecord), state: 'deleted' }
    },

    /** Forgets the messages that expired. Returns the seconds until another one of the account can be remembered. */
    secondsUntilRoom({ account, chainTime }: WebhookCommand): number {
      sql.exec('DELETE FROM message WHERE deadline < ?', chainTime)
      const { count, first } = sql
        .exec<{ count: number; first: number | null }>(
          'SELECT count(*) AS count, min(deadline) AS first FROM message WHERE account = ?',
          account,
        )
        .one()
      return count < MAX_REMEMBERED_MESSAGES ? 0 : Number(first) - chainTime + 1
    },

    /** Remembers a message, so that its repetition does nothing. */
    remember({ digest, account, deadline }: WebhookCommand, webhook: StoredWebhook): WebhookRecord {
      const record = withoutSecrets(webhook)
      sql.exec(
        'INSERT INTO message VALUES (?, ?, ?, ?, ?)',
        digest,
        deadline,
        account,
        webhook.id,
        JSON.stringify(record),
      )
      return record
    },
  }
}
