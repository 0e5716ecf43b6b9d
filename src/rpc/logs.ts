import { type Hex, hexToNumber } from 'viem'
import { batchesOf } from '../concurrency.ts'
import { isRefusedForNow, mayBeTruncated, REFUSED_SENDS } from './log-range-size.ts'
import { unreachable } from './node-errors.ts'
import { blockRequest, type LogFilter, logsRequest, type NodeLog } from './requests.ts'
import type { RpcTransport } from './transport.ts'

export type EventLog = Omit<NodeLog, 'blockNumber' | 'logIndex'> & { blockNumber: bigint; logIndex: bigint }

const MAX_HEADERS_PER_BATCH = 100
/** A query that needs more requests than this needs an index instead. */
const MAX_REQUESTS = 400
/** If a node rejects a range this small, the cause is not the size of the range: the smallest plans allow 5 blocks. */
const MIN_BLOCKS_TO_SPLIT = 4n

/**
 * Returns the logs of an inclusive range of blocks, oldest first. It requests the whole range, halves it whenever the
 * node rejects it or may have returned only its first logs, and doubles it again while that stays below the rejected
 * size. Throws CHAIN_UNREACHABLE when the node returns no logs even for small ranges, or after 400 requests.
 */
export async function getLogs(
  rpc: RpcTransport,
  filter: LogFilter,
  { fromBlock, toBlock }: { fromBlock: bigint; toBlock: bigint },
): Promise<EventLog[]> {
  const logs: EventLog[] = []
  let blocks = toBlock - fromBlock + 1n
  let rejected = blocks + 1n
  let from = fromBlock
  for (let requests = 1; from <= toBlock; requests++) {
    if (requests > MAX_REQUESTS) throw unreachable(`the range needs more than ${MAX_REQUESTS} requests for logs`)
    const to = from + blocks - 1n < toBlock ? from + blocks - 1n : toBlock
    const page = await requestLogs(rpc, filter, { fromBlock: from, toBlock: to })
    if (page === undefined && blocks <= MIN_BLOCKS_TO_SPLIT)
      throw unreachable(`the node returns no logs of ${blocks} blocks`)
    if (page === undefined || (to > from && mayBeTruncated(page.length))) {
      rejected = blocks
      blocks /= 2n
      continue
    }
    for (const { blockNumber, logIndex, ...log } of page)
      logs.push({ ...log, blockNumber: BigInt(blockNumber), logIndex: BigInt(logIndex) })
    from = to + 1n
    if (blocks * 2n < rejected) blocks *= 2n
  }
  return logs
}

/** Returns the logs of a range; undefined for any failure, because large responses also show as dropped connections. */
async function requestLogs(
  rpc: RpcTransport,
  filter: LogFilter,
  range: { fromBlock: bigint; toBlock: bigint },
): Promise<NodeLog[] | undefined> {
  for (let sends = 1; ; sends++) {
    const response = await rpc.call(logsRequest(filter, range)).catch(() => undefined)
    if (sends >= REFUSED_SENDS || !isRefusedForNow(response?.error)) return response?.result
  }
}

/**
 * Returns a function from a log to the timestamp of its block (Unix seconds). Timestamps come from the logs, or from
 * the block headers if the node omits them in logs. Throws CHAIN_UNREACHABLE when the node has a log but not its block.
 */
export async function readBlockTimes(rpc: RpcTransport, logs: readonly NodeLog[]): Promise<(log: NodeLog) => number> {
  const times = new Map<Hex, Hex | null | undefined>()
  for (const { blockNumber, blockTimestamp } of logs) times.set(blockNumber, blockTimestamp)
  const missing = [...times].flatMap(([number, time]) => (time ? [] : [number]))
  for (const page of batchesOf(missing, MAX_HEADERS_PER_BATCH)) {
    const responses = await rpc.batch(page.map(number => blockRequest(hexToNumber(number))))
    for (const [index, number] of page.entries()) times.set(number, responses[index]?.result?.timestamp)
  }
  return ({ blockNumber }) => {
    const time = times.get(blockNumber)
    if (!time) throw unreachable(`the node has logs of block ${hexToNumber(blockNumber)}, but not the block`)
    return hexToNumber(time)
  }
}
