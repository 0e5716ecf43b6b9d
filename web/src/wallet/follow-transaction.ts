import type { Hex } from 'viem'
import { isSameAddress, type Provider } from './provider.ts'

/** A transaction that the wallet sent, and the chain that it was sent on. */
export type SentCall = { hash: Hex; address: string; chainId: number }
/** The transaction that was mined: the one that was sent, or the one that took its nonce. */
type Outcome = { hash: Hex; isSuccess: boolean; isSameCall: boolean }
type Transaction = { hash: Hex; from: string; to: string | null; input: Hex; value: Hex; nonce: Hex }

/**
 * Resolves once a transaction, or the one that the wallet replaced it with, is in a block, however long that takes.
 * Calls `onOpen` after each look that found neither, with what keeps it from being known.
 */
export async function followTransaction(
  provider: Provider,
  sent: SentCall,
  onOpen: (why: string | undefined) => void,
  pollMs: number,
): Promise<Outcome> {
  const look = createLook(provider, sent)
  for (;;) {
    const found = await look().catch(() => 'the wallet could not read it')
    if (typeof found === 'object') return found
    onOpen(found)
    await new Promise(resolve => setTimeout(resolve, pollMs))
  }
}

/** Returns a function that looks for the outcome. It returns a reason if there is more to say than "not yet". */
function createLook(provider: Provider, { hash, address, chainId }: SentCall) {
  const rpc = <T>(method: string, ...params: unknown[]) => provider.request({ method, params }) as Promise<T>
  const currentChain = async () => Number(await rpc('eth_chainId'))
  let original: Transaction | undefined

  async function look(): Promise<Outcome | string | undefined> {
    const actual = await currentChain()
    if (actual !== chainId) return `the wallet is on chain ${actual}; switch it back to chain ${chainId}`
    const isSuccess = await successOf(hash)
    if (isSuccess !== undefined) return { hash, isSuccess, isSameCall: true }
    const listed = await rpc<Transaction | null>('eth_getTransactionByHash', hash)
    // Only the transaction itself says its nonce: a wallet may choose another one than the next.
    if (listed && isOwn(listed)) original = listed
    const replaced = original && (await replacementOf(original))
    return replaced ?? (original && !listed ? 'the node of the wallet does not list it any more' : undefined)
  }

  async function replacementOf(sent: Transaction): Promise<Outcome | undefined> {
    const mined = await minedWith(Number(sent.nonce))
    if (mined === undefined || mined.hash === hash) return undefined
    const isSuccess = await successOf(mined.hash)
    // If the wallet was switched in between, these are the nonces of another chain.
    if (isSuccess === undefined || (await currentChain()) !== chainId) return undefined
    return { hash: mined.hash, isSuccess, isSameCall: isSameCall(mined, sent) }
  }

  async function successOf(mined: Hex): Promise<boolean | undefined> {
    const receipt = await rpc<{ status?: Hex } | null>('eth_getTransactionReceipt', mined)
    return receipt?.status === undefined ? undefined : Number(receipt.status) === 1
  }

  /**
   * Finds the account's mined transaction with a nonce: by the block in which the count of its transactions passed it.
   */
  async function minedWith(nonce: number): Promise<Transaction | undefined> {
    const isPast = async (block: number) => Number(await rpc('eth_getTransactionCount', address, hex(block))) > nonce
    let after = Number(await rpc('eth_blockNumber'))
    if (!(await isPast(after))) return undefined
    let before = after - 1
    for (let step = 1; before >= 0 && (await isPast(before)); step *= 2) {
      after = before
      before -= step
    }
    while (after - before > 1) {
      const middle = Math.floor((after + before) / 2)
      if (await isPast(middle)) after = middle
      else before = middle
    }
    const block = await rpc<{ transactions: Transaction[] } | null>('eth_getBlockByNumber', hex(after), true)
    return block?.transactions.find(mined => isOwn(mined) && Number(mined.nonce) === nonce)
  }

  const isOwn = ({ from }: Transaction) => isSameAddress(from, address)
  return look
}

const hex = (value: number): Hex => `0x${value.toString(16)}`

const isSameCall = (one: Transaction, other: Transaction): boolean =>
  one.to?.toLowerCase() === other.to?.toLowerCase() &&
  one.input === other.input &&
  BigInt(one.value) === BigInt(other.value)
