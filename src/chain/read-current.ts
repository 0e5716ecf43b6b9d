import { refuse } from '../errors/refuse.ts'
import { BehindNode, isUnreachable } from '../rpc/node-errors.ts'
import { blockNumberRequest, type RpcRequest } from '../rpc/requests.ts'
import type { Block, Chain } from './configured-chain.ts'

/**
 * Reads and decodes what a node returns about its newest block. A node of another chain is passed over, and one that has not
 * reached the chain's `minBlock`: behind a load balancer, one replica may lack the block that another has shown. Throws
 * NODES_BEHIND, CHAIN_UNREACHABLE and what `decode` throws.
 */
export async function readCurrent<Returned, Value extends { block: Block }>(
  { rpc, minBlock }: Chain,
  request: RpcRequest<Returned>,
  decode: (returned: Returned) => Value,
): Promise<Value> {
  let current: (() => Value) | undefined
  let newestBlock = 0n
  let wrongNode: unknown
  const isCurrent = (returned: Returned) => {
    const value = attempt(() => decode(returned))
    if (isUnreachable(value.error)) {
      wrongNode = value.error
      throw value.error // a node of another chain, or one that returned something else: the next one is queried
    }
    if (minBlock !== undefined && value.result && value.result.block.number < minBlock) {
      newestBlock = value.result.block.number
      return false
    }
    current ??= value.get
    return true
  }
  try {
    await rpc.read(request, isCurrent)
  } catch (error) {
    if (wrongNode !== undefined) throw wrongNode
    if (minBlock !== undefined && error instanceof Error && error.cause instanceof BehindNode)
      throw refuse('NODES_BEHIND', { minBlock, newestBlock }, { cause: error.cause })
    throw error
  }
  if (current === undefined) throw new Error('A read ended without a result')
  return noteBlock(rpc, current())
}

/** The newest block that was read, by the transport to the nodes. */
const newestRead = new WeakMap<object, bigint>()

function noteBlock<Value extends { block: Block }>(rpc: object, value: Value): Value {
  if (value.block.number > (newestRead.get(rpc) ?? 0n)) newestRead.set(rpc, value.block.number)
  return value
}

/** How far ahead of the newest block that is known here a client may have seen the chain through others. */
const MAX_BLOCKS_AHEAD = 64n

/** Throws MIN_BLOCK_AHEAD for a block that the chain cannot have reached yet. */
export async function assertReached({ rpc }: Chain, minBlock: bigint): Promise<void> {
  const reach = (block: bigint) => minBlock <= block + MAX_BLOCKS_AHEAD
  if (reach(newestRead.get(rpc) ?? 0n)) return
  const newestBlock = BigInt(await rpc.read(blockNumberRequest))
  if (!reach(newestBlock)) throw refuse('MIN_BLOCK_AHEAD', { minBlock, newestBlock })
}

/** Runs `work` now. `get` returns its result, or throws its error. */
function attempt<Result>(work: () => Result): { result?: Result; error?: unknown; get: () => Result } {
  try {
    const result = work()
    return { result, get: () => result }
  } catch (error) {
    return {
      error,
      get: () => {
        throw error
      },
    }
  }
}
