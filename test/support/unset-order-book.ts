import { type Address, isAddressEqual, numberToHex, type PublicActions, type TestClient, zeroHash } from 'viem'

const MAX_SLOTS = 32

/**
 * Makes a registry name no order book, as before `setOrderBook`, which accepts no zero address. Throws if it does not
 * name `book`.
 */
export async function unsetOrderBook(
  node: TestClient & Pick<PublicActions, 'getStorageAt'>,
  registry: Address,
  book: Address,
): Promise<void> {
  for (let index = 0; index < MAX_SLOTS; index++) {
    const value = BigInt((await node.getStorageAt({ address: registry, slot: numberToHex(index) })) ?? 0n)
    if (value >> 160n !== 0n || !isAddressEqual(numberToHex(value, { size: 20 }), book)) continue
    return node.setStorageAt({ address: registry, index, value: zeroHash })
  }
  throw new Error(`AgentRegistry does not name ${book}.`)
}
