/**
 * Takes the place of viem in the client's chain reader: pages give the client no `rpcUrl`, and a node's transport would double
 * the script that they load.
 */
export function createPublicClient(): never {
  throw new Error('Pages read through the service and the wallet, not from a node.')
}
export const http = (): undefined => undefined

export { BaseError, HttpRequestError, TimeoutError } from 'viem'
