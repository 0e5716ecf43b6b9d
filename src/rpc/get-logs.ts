import type { Address, Hex } from 'viem'
import { unreachable } from './node-errors.ts'
import { type LogFilter, logsRequest, type NodeLog } from './requests.ts'
import type { RpcTransport } from './transport.ts'

export type EventLog = {
  address: Address
  topics: readonly Hex[]
  data: Hex
  blockNumber: bigint
  blockHash: Hex
  transactionHash: Hex
  logIndex: bigint
}

/** A query that needs more requests than this needs an index instead. */
const MAX_REQUESTS = 400
/** If a node rejects a range this small, the cause is not the size of the range. */
const MIN_BLOCKS_TO_SPLIT = 16n

/**
 * Returns the logs of an inclusive range of blocks, oldest first. It requests the whole range, halves it whenever the
 * node rejects it, and doubles it again while that stays below the rejected size. Throws CHAIN_UNREACHABLE when the node
 * returns no logs even for small ranges, or after 400 requests.
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
    if (page === undefined) {
      if (blocks <= MIN_BLOCKS_TO_SPLIT) throw unreachable(`the node returns no logs of ${blocks} blocks`)
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
  const response = await rpc.call(logsRequest(filter, range)).catch(() => undefined)
  return response?.result
}
