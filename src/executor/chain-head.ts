import type { Address, Hex } from 'viem'
import { logEvent } from '../log.ts'
import { unreachable } from '../rpc/node-errors.ts'
import { balanceRequest, blockRequest, chainIdRequest, transactionCountRequest } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import { sleep } from '../timeout.ts'

/** The head block and the account at that block, from one request. `readAt` is in milliseconds. */
export type ChainHead = {
  number: number
  hash: Hex
  /** Unix seconds. */
  timestamp: number
  baseFee: bigint
  /** The account's next nonce. */
  nonce: number
  balance: bigint
  /** The hash of block 0. */
  genesis: Hex
  readAt: number
}

export type HeadCache = ReturnType<typeof createHeadCache>

/** The most nonces that an account can plausibly use between two heads, even if others have its key. */
const MAX_NONCE_JUMP = 1_000

/** How often a head is read again until two in a row agree on what the lane does not know yet. */
const MAX_PLAUSIBLE_READS = 3

/** Another chain replaces the known one only after this many reads in a row have shown it on every node. */
const CONFIRMING_READS = 3
const CONFIRMING_PAUSE_MS = 750

/**
 * Caches the chain's head. `onHead` is called with every head that is read, before it is returned. A node whose genesis
 * block is not the known one counts as failed. If every node has the same other one, the chain may have been replaced.
 * If the configuration allows that, the head is read once the replacement is confirmed; otherwise no head is read.
 */
export function createHeadCache({
  rpc,
  address,
  chain,
  knownGenesis,
  lastGenesis,
  nextNonce,
  onImplausibleNonce,
  onHead,
}: {
  rpc: RpcTransport
  address: Address
  chain: { id: number; mayRestart: boolean }
  /** Returns the hash of the known chain's block 0; undefined while the lane does not depend on a chain. */
  knownGenesis: () => Hex | undefined
  /** Returns the hash of block 0 of the last head, also from before a restart; undefined before the first head. */
  lastGenesis: () => Hex | undefined
  /** Returns the account's next nonce as the lane knows it; 0 if it knows none. */
  nextNonce: () => number
  /** Called with an implausibly high nonce. The node that returned it counts as failed. */
  onImplausibleNonce: (nonce: number) => void
  onHead: (head: ChainHead) => void
}) {
  let head: ChainHead | undefined
  let reading: Promise<ChainHead> | undefined
  let isOtherChain = false

  async function read(): Promise<ChainHead> {
    const fresh = await readPlausible()
    isOtherChain = false
    onHead(fresh)
    head = fresh
    return fresh
  }

  /**
   * Reads a head. Two reads in a row must agree on a high nonce while the lane knows none, and on a new genesis block while
   * the lane depends on no chain: after it has adopted a wrong one, every correct head would look like another chain's.
   */
  async function readPlausible(): Promise<ChainHead> {
    let previous: ChainHead | undefined
    for (let reads = 0; reads <= MAX_PLAUSIBLE_READS; reads++) {
      const dependsOnChain = knownGenesis() !== undefined
      const read = await readConfirmed()
      const isNonceKnown = nextNonce() > 0 || Math.abs(read.nonce - (previous?.nonce ?? 0)) <= MAX_NONCE_JUMP
      const isGenesisKnown = dependsOnChain || [lastGenesis(), previous?.genesis].includes(read.genesis)
      if (isNonceKnown && isGenesisKnown) return read
      previous = read
    }
    throw unreachable('the nodes show another nonce or genesis block with each read')
  }

  async function readConfirmed(): Promise<ChainHead> {
    let other: Hex | undefined
    for (let reads = 0; ; reads++) {
      const isConfirmed = other !== undefined && reads >= CONFIRMING_READS
      const result = await readChainHead(rpc, {
        address,
        chainId: chain.id,
        genesis: isConfirmed ? other : knownGenesis(),
        maxNonce: isConfirmed || nextNonce() === 0 ? Number.MAX_SAFE_INTEGER : nextNonce() + MAX_NONCE_JUMP,
        onImplausibleNonce,
      })
      if (result.kind === 'head') return result.head
      if (!isOtherChain) logEvent('another genesis block', { executor: address, genesis: result.genesis })
      isOtherChain = true
      const mayBeConfirmed = chain.mayRestart && (other === undefined || other === result.genesis)
      if (!mayBeConfirmed) throw unreachable('every node shows another genesis block')
      other = result.genesis
      await sleep(CONFIRMING_PAUSE_MS)
    }
  }

  /** Reads the head; a call during a read joins it. Throws CHAIN_UNREACHABLE. */
  function refresh(): Promise<ChainHead> {
    reading ??= read().finally(() => {
      reading = undefined
    })
    return reading
  }

  return {
    refresh,
    /** Returns a head that is at most this old. Throws CHAIN_UNREACHABLE. */
    within: async (maxAgeMs: number): Promise<ChainHead> =>
      head !== undefined && Date.now() - head.readAt <= maxAgeMs ? head : refresh(),
    /** Makes the next call of `within` read the chain. */
    expire() {
      if (head) head = { ...head, readAt: 0 }
    },
    /** Returns the last head that was read; undefined before the first. */
    last: () => head,
    /** Whether every node had another genesis block than the known one when the head was last read. */
    areOfAnotherChain: () => isOtherChain,
  }
}

type HeadRequest = {
  address: Address
  chainId: number
  genesis: Hex | undefined
  /**
   * A node that returns a higher nonce counts as failed: adopting the nonce would leave a gap that no transaction
   * fills.
   */
  maxNonce: number
  onImplausibleNonce: (nonce: number) => void
}

/**
 * Reads the head from a node with the given genesis block. Returns the genesis block instead if every node has the same
 * other one.
 */
async function readChainHead(
  rpc: RpcTransport,
  { address, chainId, genesis, maxNonce, onImplausibleNonce }: HeadRequest,
): Promise<{ kind: 'head'; head: ChainHead } | { kind: 'other chain'; genesis: Hex }> {
  const others: Hex[] = []
  const requests = [
    chainIdRequest,
    transactionCountRequest(address),
    balanceRequest(address),
    blockRequest('latest'),
    blockRequest(0),
  ] as const
  const responses = await rpc
    .batch(requests, ([id, count, , , first]) => {
      if (Number(id.result) !== chainId) return false
      if (genesis === undefined || !first.result || first.result.hash === genesis) {
        const nonce = Number(count.result ?? 0)
        if (nonce > maxNonce) onImplausibleNonce(nonce)
        return nonce <= maxNonce
      }
      others.push(first.result.hash)
      return false
    })
    .catch(error => {
      if (others.length < rpc.nodes) throw error
    })
  if (responses === undefined) {
    const [other] = others
    if (other === undefined || others.some(hash => hash !== other)) throw unreachable('the nodes disagree on block 0')
    return { kind: 'other chain', genesis: other }
  }
  const [, nonce, balance, latest, first] = responses
  const block = latest.result
  if (!block || !first.result || nonce.error || balance.error)
    throw unreachable('the node did not return the whole head')
  return {
    kind: 'head',
    head: {
      number: Number(block.number),
      hash: block.hash,
      timestamp: Number(block.timestamp),
      baseFee: BigInt(block.baseFeePerGas ?? 0),
      nonce: Number(nonce.result),
      balance: BigInt(balance.result),
      genesis: first.result.hash,
      readAt: Date.now(),
    },
  }
}
