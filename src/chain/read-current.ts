import { refuse } from '../errors/refuse.ts'
import { BehindNode, isUnreachable, unreachable } from '../rpc/node-errors.ts'
import { blockRequest, type NodeBlock, type RpcRequest, readsNewest, replacesTime } from '../rpc/requests.ts'
import type { Block, Chain } from './configured-chain.ts'
import { newest } from './min-blocks.ts'

/**
 * How many answers from older blocks make a read ask whether a reorg has removed the block. Most nodes catch up before.
 */
const MAX_LAGGING_ANSWERS = 3

/**
 * Reads and decodes what a node returns about its newest block. A node of another chain is passed over, and one that
 * has not reached the chain's `minBlock`: behind a load balancer, one replica may lack the block that another has
 * shown. If a reorg has removed that block, no node will reach it soon, and blocks from the common ancestor on are
 * current. Throws NODES_BEHIND, CHAIN_UNREACHABLE and what `decode` throws.
 */
export async function readCurrent<Returned, Value extends { block: Block }>(
  { rpc, minBlock, ancestorOf }: Chain,
  request: RpcRequest<Returned>,
  decode: (returned: Returned) => Value,
): Promise<Value> {
  /** What the nodes returned, decoded. */
  const decoded = new Map<Returned, Attempt<Value>>()
  let newestBlock = 0n
  let laggingAnswers = 0
  let reachable = minBlock
  const findAncestor = async (removed: bigint) => {
    reachable = (await ancestorOf?.(removed)) ?? removed
  }
  let wrongNode: unknown
  const isCurrent = (returned: Returned) => {
    const attempt = attemptOf(() => decode(returned))
    if (isUnreachable(attempt.error)) {
      wrongNode = attempt.error
      throw wrongNode // a node of another chain, or one that returned something else: the next one is queried
    }
    decoded.set(returned, attempt)
    if (attempt.value === undefined) return true
    newestBlock = attempt.value.block.number
    if (reachable === undefined || newestBlock >= reachable) return true
    if (++laggingAnswers === MAX_LAGGING_ANSWERS) void findAncestor(reachable)
    return false
  }
  const headOf = (returned: Returned) => {
    const { number, timestamp } = decoded.get(returned)?.value?.block ?? {}
    return number === undefined ? undefined : { number: Number(number), timestamp: Number(timestamp) }
  }
  const sent = readsNewest(request) && !replacesTime(request) ? { ...request, headOf } : request
  const returned = await rpc.read(sent, isCurrent).catch((error: Error) => {
    if (wrongNode !== undefined) throw wrongNode
    if (!(error.cause instanceof BehindNode)) throw error
    const known = BigInt(rpc.heads.newest()?.number ?? 0)
    throw refuse('NODES_BEHIND', { minBlock: newest(minBlock, known) ?? known, newestBlock }, { cause: error.cause })
  })
  const { value, error } = decoded.get(returned) ?? {}
  if (value === undefined) throw error
  return value
}

/**
 * For how many seconds the chain may have grown that a client saw through others. A replica is seldom further behind.
 */
const MAX_SECONDS_AHEAD = 10
/** The blocks of which the time shows how fast the chain grows, and the least seconds per block that count. */
const PACE_BLOCKS = 100n
const MIN_SECONDS_PER_BLOCK = 0.1

/** Whether a block was read that is not older. */
export const hasReached = ({ rpc }: Chain, block: bigint): boolean => block <= BigInt(rpc.heads.newest()?.number ?? 0)

/**
 * Waits until a node has reached a block, unless a reorg has removed it. Throws MIN_BLOCK_AHEAD for one that the chain
 * cannot have reached yet, NODES_BEHIND if no node reaches it in time, CHAIN_UNREACHABLE.
 */
export async function untilReached(chain: Chain, minBlock: bigint): Promise<void> {
  const { heads } = chain.rpc
  const known = BigInt(heads.newest()?.number ?? 0)
  if (minBlock > known + maxBlocksAhead(heads.secondsPerBlock())) {
    const { number, secondsPerBlock } = await readPace(chain)
    if (minBlock > number + maxBlocksAhead(secondsPerBlock))
      throw refuse('MIN_BLOCK_AHEAD', { minBlock, newestBlock: number })
  }
  await readCurrent({ ...chain, minBlock }, blockRequest('latest'), toRead)
}

/** Returns how many blocks a client may be ahead, at least the next one; until the pace is known, only that. */
const maxBlocksAhead = (secondsPerBlock = Number.POSITIVE_INFINITY): bigint =>
  BigInt(Math.ceil(MAX_SECONDS_AHEAD / Math.max(secondsPerBlock, MIN_SECONDS_PER_BLOCK))) + 1n

/** Reads the newest block and how fast the chain has grown up to it, or ever has as far as the nodes have shown. */
async function readPace({ rpc }: Chain): Promise<{ number: bigint; secondsPerBlock: number }> {
  const { number, timestamp } = toRead(await rpc.read(blockRequest('latest'))).block
  const first = number > PACE_BLOCKS ? number - PACE_BLOCKS : 0n
  const { block } = toRead(await rpc.read(blockRequest(first)))
  const average = Number(timestamp - block.timestamp) / Math.max(1, Number(number - first))
  return { number, secondsPerBlock: Math.min(average, rpc.heads.secondsPerBlock() ?? average) }
}

function toRead(block: NodeBlock | null) {
  if (block === null) throw unreachable('the node lacks a block')
  return { block: { number: BigInt(block.number), timestamp: BigInt(block.timestamp) } }
}

type Attempt<Value> = { value: Value; error?: undefined } | { value?: undefined; error: unknown }

function attemptOf<Value>(work: () => Value): Attempt<Value> {
  try {
    return { value: work() }
  } catch (error) {
    return { error }
  }
}
