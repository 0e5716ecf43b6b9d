import type { Address, Hex } from 'viem'
import { addressOfPrivateKey } from '../crypto/secp256k1.ts'

const addresses = new Map<Hex, Address>()

/** Returns the address of a private key. */
export function addressOfKey(key: Hex): Address {
  const address = addresses.get(key) ?? addressOfPrivateKey(key)
  addresses.set(key, address)
  return address
}
