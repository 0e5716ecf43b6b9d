import type { Hex } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { findKey, unlockKey } from './key-folder.ts'
import { readPassword } from './password.ts'

/** Which key, and where its password is. */
export type KeyOptions = { key?: string | undefined; passwordFile?: string | undefined }

/** A stored key. Its address is known at once; it is decrypted when it first signs. */
export type Signer = { address: Hex; unlock(): Promise<PrivateKeyAccount> }

/**
 * Returns the key that the options name, locked; without a name the only one, or of several the one with the preferred
 * address.
 */
export function openSigner(
  home: string,
  { key, passwordFile }: KeyOptions,
  { canAsk = true, preferred }: { canAsk?: boolean | undefined; preferred?: string | undefined } = {},
): Signer {
  const stored = findKey(home, key, preferred)
  let account: Promise<PrivateKeyAccount> | undefined
  return {
    address: stored.address,
    unlock() {
      account ??= readPassword({ passwordFile }, { name: stored.name, canAsk }).then(password =>
        unlockKey(stored, password),
      )
      return account
    },
  }
}
