import { readText, writeText } from '../../data/storage.ts'
import type { SentCall } from '../../wallet/follow-transaction.ts'

/**
 * A transaction of a form: without a hash, the wallet was asked for it and has not answered. `done` is its receipt's
 * text.
 */
export type FormTransaction = Omit<SentCall, 'hash'> & { hash?: SentCall['hash']; done: string }

const nameOf = (form: string) => `transaction: ${form}`

/** Keeps a form's transaction over a reload of the page; `undefined` forgets it. */
export const remember = (form: string, transaction: FormTransaction | undefined): void =>
  writeText('sessionStorage', nameOf(form), transaction && JSON.stringify(transaction))

/** Returns a form's transaction from before a reload. */
export function recall(form: string): FormTransaction | undefined {
  const text = readText('sessionStorage', nameOf(form))
  return text === undefined ? undefined : (JSON.parse(text) as FormTransaction)
}
