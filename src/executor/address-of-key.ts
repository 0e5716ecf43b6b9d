import type { Address, Hex } from 'viem'
import { privateKeyToAddress } from 'viem/accounts'

const addresses = new Map<Hex, Address>()

/** Returns the address of a private key. */
export function addressOfKey(key: Hex): Address {
  const address = addresses.get(key) ?? privateKeyToAddress(key)
  addresses.set(key, address)
  return address
}
