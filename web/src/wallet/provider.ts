/** What pages need of an EIP-1193 provider. */
export type Provider = {
  request(call: { method: string; params?: readonly unknown[] }): Promise<unknown>
  on?(event: string, listener: (value: never) => void): void
}
/**
 * A wallet that announced itself (EIP-6963). Its name is text that the wallet wrote, its icon an image in a `data:`
 * URL; `rdns` outlives a reload.
 */
export type Wallet = { id: string; rdns: string; name: string; icon?: string | undefined; provider: Provider }
export type Connected = { wallet: Wallet; address: `0x${string}`; chainId: number }

/** The person ended the wait for a wallet that had not answered. */
export class Stopped extends Error {
  constructor() {
    super('You stopped waiting for the wallet.')
  }
}

/** Resolves with what a wallet answers, which may be never. Rejects with Stopped once the signal aborts. */
export function untilStopped<T>(answer: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
    answer.then(resolve, reject)
  })
}

const USER_REJECTED = 4001

export const isDeclined = (error: unknown): boolean => (error as { code?: unknown } | null)?.code === USER_REJECTED

export const isSameAddress = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()

const UNKNOWN_CHAIN = 4902
const MAX_NESTING = 4

/** Whether a wallet says that it does not know a chain. Some put that error inside an internal one (-32603). */
export function isUnknownChain(error: unknown, depth = 0): boolean {
  if (typeof error !== 'object' || error === null || depth > MAX_NESTING) return false
  const { code, data, originalError, cause, error: inner } = error as Record<string, unknown>
  if (code === UNKNOWN_CHAIN || code === `${UNKNOWN_CHAIN}`) return true
  return [data, originalError, cause, inner].some(nested => isUnknownChain(nested, depth + 1))
}

/** Wallets put whole requests into their messages. */
const MAX_PROBLEM_LENGTH = 240

/** Says in a sentence why a wallet's call failed. */
export function walletProblem(error: unknown): string {
  const { message } = (error ?? {}) as { message?: unknown }
  if (isDeclined(error)) return 'You declined in the wallet; it sent nothing for this step.'
  if (typeof message !== 'string' || message === '') return 'The wallet did not respond.'
  return message.length > MAX_PROBLEM_LENGTH ? `${message.slice(0, MAX_PROBLEM_LENGTH)}…` : message
}
