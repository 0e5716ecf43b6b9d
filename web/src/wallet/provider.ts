/** What pages need of an EIP-1193 provider. */
export type Provider = {
  request(call: { method: string; params?: readonly unknown[] }): Promise<unknown>
  on?(event: string, listener: (value: never) => void): void
}
/** A wallet that announced itself (EIP-6963). Its name is text that the wallet wrote. */
export type Wallet = { id: string; name: string; provider: Provider }
export type Connected = { wallet: Wallet; address: `0x${string}`; chainId: number }

const USER_REJECTED = 4001

export const isDeclined = (error: unknown): boolean => (error as { code?: unknown } | null)?.code === USER_REJECTED

const UNKNOWN_CHAIN = 4902
const MAX_NESTING = 4

/** Whether a wallet says that it does not know a chain. Some put that error inside an internal one (-32603). */
export function isUnknownChain(error: unknown, depth = 0): boolean {
  if (typeof error !== 'object' || error === null || depth > MAX_NESTING) return false
  const { code, data, originalError, cause, error: inner } = error as Record<string, unknown>
  if (code === UNKNOWN_CHAIN || code === `${UNKNOWN_CHAIN}`) return true
  return [data, originalError, cause, inner].some(nested => isUnknownChain(nested, depth + 1))
}

/** Says in a sentence why a wallet's call failed. */
export function walletProblem(error: unknown): string {
  const { message } = (error ?? {}) as { message?: unknown }
  if (isDeclined(error)) return 'You declined in the wallet; it sent nothing for this step.'
  return typeof message === 'string' && message !== '' ? message : 'The wallet did not respond.'
}
