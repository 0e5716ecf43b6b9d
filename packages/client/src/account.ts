import { formsOf } from '@agent-trading-service/protocol/signature-forms'
import { type Address, type Hex, isAddressEqual, recoverAddress } from 'viem'
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

/**
 * Returns the signature of a key in the form that the contracts accept, whichever form the wallet gave it: v of 0 or 1,
 * s in the upper half, EIP-2098. Returns any other signature unchanged: only the code of its account can tell what it
 * means.
 */
export async function canonicalForm(
  signature: Hex,
  { digest, signer }: { digest: Hex; signer: Address },
): Promise<Hex> {
  const [canonical] = formsOf(signature).forms
  if (canonical === signature) return signature
  const recovered = await recoverAddress({ hash: digest, signature: canonical }).catch(() => undefined)
  return recovered !== undefined && isAddressEqual(recovered, signer) ? canonical : signature
}
