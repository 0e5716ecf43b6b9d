import type { PaymentPayload } from '@x402/core/types'
import type { Address, Hex } from 'viem'
import type { Payment, PaymentRequirements } from './parse-payment.ts'

/**
 * `settling`: handed to a facilitator; the chain knows the result. `refused`: not settled. `settled`: the money has
 * moved, and it pays for one registration of the signer. `spent`: that registration is on the chain.
 */
type PaymentState = 'settling' | 'refused' | 'settled' | 'spent'

/** The registration that a payment is for: digest and nonce of its SelfRegister message. */
export type PaidRegistration = { signer: Address; digest: Hex; nonce: bigint }

/** A recorded payment. */
export type LedgerEntry = Omit<Payment, 'payload'> & {
  /** Kept only while the payment is settling. */
  payload: PaymentPayload | undefined
  state: PaymentState
  signer: Address
  /** The registration that holds a settled payment, and since when (milliseconds). */
  digest: Hex | null
  registrationNonce: bigint
  heldSince: number
  requirements: PaymentRequirements
  /** A block of the fee network at which the payment was not settled, and its time in Unix seconds. */
  fromBlock: bigint
  fromTime: bigint
  transaction: Hex | null
}

export type LedgerStore = ReturnType<typeof openLedgerStore>

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS payment (
    payer TEXT NOT NULL, nonce TEXT NOT NULL, state TEXT NOT NULL, signer TEXT NOT NULL, digest TEXT,
    registration_nonce TEXT NOT NULL, held_since INTEGER NOT NULL, valid_before TEXT NOT NULL, requirements TEXT NOT NULL,
    payload TEXT NOT NULL, from_block TEXT NOT NULL, from_time TEXT NOT NULL, "transaction" TEXT, updated_at INTEGER NOT NULL,
    PRIMARY KEY (payer, nonce)
  ) WITHOUT ROWID;
  CREATE UNIQUE INDEX IF NOT EXISTS payment_open ON payment (signer) WHERE state IN ('settling', 'settled');
  CREATE INDEX IF NOT EXISTS payment_registration ON payment (digest);
  CREATE INDEX IF NOT EXISTS payment_refused ON payment (signer, updated_at) WHERE state = 'refused';
  CREATE INDEX IF NOT EXISTS payment_ended ON payment (CAST(valid_before AS INTEGER), updated_at) WHERE state = 'refused';
  CREATE INDEX IF NOT EXISTS payment_settling ON payment (updated_at) WHERE state = 'settling';
`

type LedgerRow = Record<string, SqlStorageValue>
type PaymentKey = Pick<Payment, 'payer' | 'nonce'>

/** The most rows that one call deletes. A new payment adds at most one row, so this outpaces them. */
const MAX_DELETED = 50

/**
 * Opens the ledger's table. Only refused payments are deleted. A signer has at most one payment that is settling or
 * settled.
 */
export function openLedgerStore(sql: SqlStorage) {
  sql.exec(SCHEMA)
  const select = (query: string, ...bindings: SqlStorageValue[]): LedgerEntry[] =>
    sql
      .exec<LedgerRow>(`SELECT * FROM payment WHERE ${query}`, ...bindings)
      .toArray()
      .map(toEntry)

  return {
    find: ({ payer, nonce }: PaymentKey) => select('payer = ? AND nonce = ?', payer, nonce)[0],

    /** Returns the signer's payment that is settling or settled, but not spent. */
    unspentOf: (signer: Address) => select(`signer = ? AND state IN ('settling', 'settled')`, signer)[0],

    /** Returns up to `max` of the signer's payments that were refused after a time (milliseconds), newest first. */
    refusedSince: (signer: Address, since: number, max: number) =>
      select(
        `signer = ? AND state = 'refused' AND updated_at > ? ORDER BY updated_at DESC LIMIT ?`,
        signer,
        since,
        max,
      ),

    /** Tells whether a payment of the payer has ever settled. */
    hasPaid: (payer: Address): boolean =>
      select(`payer = ? AND state IN ('settled', 'spent') LIMIT 1`, payer).length > 0,

    /** Returns the payment that was spent on a registration. */
    spentOn: (digest: Hex) => select(`digest = ? AND state = 'spent'`, digest)[0],

    /** Records a payment before it is settled. A refused payment may be recorded again. */
    begin(
      { payer, nonce, validBefore, payload }: Payment,
      { signer, digest, nonce: registrationNonce }: PaidRegistration,
      { requirements, block }: { requirements: PaymentRequirements; block: { number: bigint; timestamp: bigint } },
    ) {
      sql.exec(
        `INSERT INTO payment VALUES (?1, ?2, 'settling', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, NULL, ?6)
         ON CONFLICT (payer, nonce) DO UPDATE SET state = 'settling', signer = ?3, digest = ?4, registration_nonce = ?5,
           held_since = ?6, valid_before = ?7, requirements = ?8, payload = ?9, from_block = ?10, from_time = ?11, updated_at = ?6`,
        payer,
        nonce,
        signer,
        digest,
        `${registrationNonce}`,
        Date.now(),
        `${validBefore}`,
        JSON.stringify(requirements),
        JSON.stringify(payload),
        `${block.number}`,
        `${block.timestamp}`,
      )
    },

    markSettled({ payer, nonce }: PaymentKey, transaction: Hex) {
      sql.exec(
        `UPDATE payment SET state = 'settled', payload = '', "transaction" = ?, updated_at = ? WHERE payer = ? AND nonce = ?`,
        transaction,
        Date.now(),
        payer,
        nonce,
      )
    },

    markRefused({ payer, nonce }: PaymentKey) {
      sql.exec(
        `UPDATE payment SET state = 'refused', payload = '', digest = NULL, updated_at = ? WHERE payer = ? AND nonce = ?`,
        Date.now(),
        payer,
        nonce,
      )
    },

    /**
     * Deletes the next payments that were refused before `refusedBefore` (milliseconds) and whose validity ended before
     * `endedBefore` (Unix seconds).
     */
    deleteRefused({ endedBefore, refusedBefore }: { endedBefore: number; refusedBefore: number }) {
      sql.exec(
        `DELETE FROM payment WHERE (payer, nonce) IN (
           SELECT payer, nonce FROM payment INDEXED BY payment_ended
           WHERE state = 'refused' AND CAST(valid_before AS INTEGER) < ? AND updated_at < ? LIMIT ${MAX_DELETED}
         )`,
        endedBefore,
        refusedBefore,
      )
    },

    /**
     * Returns up to `max` payments that are still settling although their validity ended before `endedBefore` (Unix
     * seconds), those first that were not returned for longest. None is returned twice after `unseenSince`
     * (milliseconds).
     */
    takeAbandoned({ endedBefore, unseenSince, max }: { endedBefore: number; unseenSince: number; max: number }) {
      const abandoned = select(
        `state = 'settling' AND updated_at < ? AND CAST(valid_before AS INTEGER) < ? ORDER BY updated_at LIMIT ?`,
        unseenSince,
        endedBefore,
        max,
      )
      for (const { payer, nonce } of abandoned)
        sql.exec('UPDATE payment SET updated_at = ? WHERE payer = ? AND nonce = ?', Date.now(), payer, nonce)
      return abandoned
    },

    /** Lets a registration hold its signer's settled payment. */
    hold({ signer, digest, nonce }: PaidRegistration) {
      sql.exec(
        `UPDATE payment SET digest = ?1, registration_nonce = ?2, held_since = ?3, updated_at = ?3
         WHERE signer = ?4 AND state = 'settled'`,
        digest,
        `${nonce}`,
        Date.now(),
        signer,
      )
    },

    /** Frees the settled payment that a registration holds. */
    release(digest: Hex) {
      sql.exec(`UPDATE payment SET digest = NULL WHERE digest = ? AND state = 'settled'`, digest)
    },

    /** Records that the signer's settled payment was spent on a registration that is on the chain. */
    spend({ signer, digest }: Pick<PaidRegistration, 'signer' | 'digest'>) {
      sql.exec(
        `UPDATE payment SET state = 'spent', digest = ?, updated_at = ? WHERE signer = ? AND state = 'settled'`,
        digest,
        Date.now(),
        signer,
      )
    },
  }
}

const toEntry = (row: LedgerRow): LedgerEntry => ({
  payer: row.payer as Address,
  nonce: row.nonce as Hex,
  validBefore: BigInt(row.valid_before as string),
  payload: row.payload === '' ? undefined : (JSON.parse(row.payload as string) as PaymentPayload),
  state: row.state as PaymentState,
  signer: row.signer as Address,
  digest: row.digest as Hex | null,
  registrationNonce: BigInt(row.registration_nonce as string),
  heldSince: row.held_since as number,
  requirements: JSON.parse(row.requirements as string) as PaymentRequirements,
  fromBlock: BigInt(row.from_block as string),
  fromTime: BigInt(row.from_time as string),
  transaction: row.transaction as Hex | null,
})
