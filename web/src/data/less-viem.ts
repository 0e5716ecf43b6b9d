/**
 * Takes the place of viem in two files of the client, because half of the script that pages load would be of it: a
 * node's transport, which pages do not use without `rpcUrl`, and secp256k1, by which the client tells whether it may
 * rewrite a signature to its canonical form. Pages post a signature as the wallet gave it; the service rewrites it.
 */
export function createPublicClient(): never {
  throw new Error('Pages read through the service and the wallet, not from a node.')
}
export const http = (): undefined => undefined
export const parseAbi = (): readonly [] => []
export const recoverAddress = (): Promise<never> => Promise.reject(new Error('Pages recover no signer.'))

export { BaseError, HttpRequestError, isAddressEqual, TimeoutError } from 'viem'
