import type { PaymentPayload } from '@x402/core/types'
import type { Address, Hex } from 'viem'
import type { Payment } from './parse-payment.ts'
import type { PaymentRequirements } from './requirements.ts'

/**
 * `settling`: handed to a facilitator, and only the chain knows what became of it. `refused`: not settled. `settled`: the
 * money has moved, and it pays for one registration of its signer. `spent`: that registration is on the chain.
 */
export type PaymentState = 'settling' | 'refused' | 'settled' | 'spent'

/** The registration that a payment pays for: the digest and the nonce of its SelfRegister message. */
export type Registration = { signer: Address; digest: Hex; nonce: bigint }

export type Entry = Payment & {
  state: PaymentState
  signer: Address
  /** The registration that holds a settled payment, and since when (milliseconds). */
  digest: Hex | null
  registrationNonce: bigint
  heldSince: number
  requirements: PaymentRequirements
  /** A block of the fee network at which it was not settled, and its time. */
  fromBlock: bigint
  fromTime: bigint
  transaction: Hex | null
}

export type Accounts = ReturnType<typeof openAccounts>

const schema = `
  CREATE TABLE IF NOT EXISTS payment (
    payer TEXT NOT NULL, nonce TEXT NOT NULL, state TEXT NOT NULL, signer TEXT NOT NULL, digest TEXT,
    registration_nonce TEXT NOT NULL, held_since INTEGER NOT NULL, valid_before TEXT NOT NULL, requirements TEXT NOT NULL,
    payload TEXT NOT NULL, from_block TEXT NOT NULL, from_time TEXT NOT NULL, "transaction" TEXT, updated_at INTEGER NOT NULL,
    PRIMARY KEY (payer, nonce)
  ) WITHOUT ROWID;
  CREATE UNIQUE INDEX IF NOT EXISTS payment_open ON payment (signer) WHERE state IN ('settling', 'settled');
  CREATE INDEX IF NOT EXISTS payment_registration ON payment (digest);
`

type Row = Record<string, SqlStorageValue>
type Key = Pick<Payment, 'payer' | 'nonce'>

/** The ledger's table: nothing is ever deleted from it. A signer has at most one payment that is not spent. */
export function openAccounts(sql: SqlStorage) {
  sql.exec(schema)
  const all = (query: string, ...bindings: SqlStorageValue[]) =>
    sql
      .exec<Row>(query, ...bindings)
      .toArray()
      .map(toEntry)
  const first = (query: string, ...bindings: SqlStorageValue[]) => all(query, ...bindings)[0]
  const change = (query: string, ...bindings: SqlStorageValue[]) => sql.exec(query, ...bindings).rowsWritten > 0

  return {
    entry: ({ payer, nonce }: Key) => first('SELECT * FROM payment WHERE payer = ? AND nonce = ?', payer, nonce),
    /** The signer's payment that is not spent. */
    open: (signer: Address) =>
      first(`SELECT * FROM payment WHERE signer = ? AND state IN ('settling', 'settled')`, signer),
    /** The signer's payments that were refused after the given time (milliseconds). */
    refused: (signer: Address, since: number) =>
      all(`SELECT * FROM payment WHERE signer = ? AND state = 'refused' AND updated_at > ?`, signer, since),
    /** The payment that a registration has spent. */
    spentOn: (digest: Hex) => first(`SELECT * FROM payment WHERE digest = ? AND state = 'spent'`, digest),

    /** Writes down a payment before it is settled; one that was refused may be tried again. */
    begin(
      { payer, nonce, validBefore, payload }: Payment,
      { signer, digest, nonce: registrationNonce }: Registration,
      { requirements, block }: { requirements: PaymentRequirements; block: { number: bigint; timestamp: bigint } },
    ) {
      const now = Date.now()
      sql.exec(
        `INSERT INTO payment VALUES (?1, ?2, 'settling', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, NULL, ?6)
         ON CONFLICT (payer, nonce) DO UPDATE SET state = 'settling', signer = ?3, digest = ?4, registration_nonce = ?5,
           held_since = ?6, valid_before = ?7, requirements = ?8, payload = ?9, from_block = ?10, from_time = ?11, updated_at = ?6`,
        ...[payer, nonce, signer, digest, `${registrationNonce}`, now, `${validBefore}`],
        ...[JSON.stringify(requirements), JSON.stringify(payload), `${block.number}`, `${block.timestamp}`],
      )
    },
    settle: ({ payer, nonce }: Key, transaction: Hex) =>
      change(
        `UPDATE payment SET state = 'settled', "transaction" = ?, updated_at = ? WHERE payer = ? AND nonce = ?`,
        ...[transaction, Date.now(), payer, nonce],
      ),
    refuse: ({ payer, nonce }: Key) =>
      change(
        `UPDATE payment SET state = 'refused', digest = NULL, updated_at = ? WHERE payer = ? AND nonce = ?`,
        ...[Date.now(), payer, nonce],
      ),
    /** Lets a registration hold its signer's settled payment. */
    hold: ({ signer, digest, nonce }: Registration) =>
      change(
        `UPDATE payment SET digest = ?1, registration_nonce = ?2, held_since = ?3, updated_at = ?3
         WHERE signer = ?4 AND state = 'settled'`,
        ...[digest, `${nonce}`, Date.now(), signer],
      ),
    release: (digest: Hex) => change(`UPDATE payment SET digest = NULL WHERE digest = ? AND state = 'settled'`, digest),
    /** The registration is on the chain: its signer's settled payment is spent on it. */
    spend: ({ signer, digest }: Pick<Registration, 'signer' | 'digest'>) =>
      change(
        `UPDATE payment SET state = 'spent', digest = ?, updated_at = ? WHERE signer = ? AND state = 'settled'`,
        ...[digest, Date.now(), signer],
      ),
  }
}

const toEntry = (row: Row): Entry => ({
  payer: row.payer as Address,
  nonce: row.nonce as Hex,
  validBefore: BigInt(row.valid_before as string),
  payload: JSON.parse(row.payload as string) as PaymentPayload,
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
