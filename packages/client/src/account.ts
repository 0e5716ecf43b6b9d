import type { Address, Hex } from 'viem'
import type { TypedData } from './typed-data.ts'

/**
 * Who signs: any viem account, or anything with an address that signs typed data, such as a wallet or a remote signer.
 * The client never sees a key.
 */
export type Account = {
  readonly address: Address
  signTypedData(typedData: {
    domain: Record<string, unknown>
    types: Record<string, unknown>
    primaryType: string
    message: Record<string, unknown>
  }): Promise<Hex>
}

/** Signs typed data that the client has built. viem derives the domain's type itself. */
export function signWith(account: Account, { domain, types, primaryType, message }: TypedData): Promise<Hex> {
  const { EIP712Domain: _, ...structs } = types
  return account.signTypedData({ domain, types: structs, primaryType, message })
}
