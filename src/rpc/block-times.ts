import { type Hex, hexToNumber } from 'viem'
import { unreachable } from './node-errors.ts'
import { blockRequest, type NodeLog } from './requests.ts'
import type { RpcTransport } from './transport.ts'

const MAX_HEADERS_PER_BATCH = 100

/**
 * Returns a function from a log to the timestamp of its block (Unix seconds). Timestamps come from the logs, or from the
 * block headers if the node omits them in logs. Throws CHAIN_UNREACHABLE when the node has a log but not its block.
 */
export async function readBlockTimes(rpc: RpcTransport, logs: readonly NodeLog[]): Promise<(log: NodeLog) => number> {
  const times = new Map<Hex, Hex | null | undefined>()
  for (const { blockNumber, blockTimestamp } of logs) times.set(blockNumber, blockTimestamp)
  const missing = [...times].flatMap(([number, time]) => (time ? [] : [number]))
  for (let from = 0; from < missing.length; from += MAX_HEADERS_PER_BATCH) {
    const page = missing.slice(from, from + MAX_HEADERS_PER_BATCH)
    const responses = await rpc.batch(page.map(number => blockRequest(hexToNumber(number))))
    for (const [index, number] of page.entries()) times.set(number, responses[index]?.result?.timestamp)
  }
  return ({ blockNumber }) => {
    const time = times.get(blockNumber)
    if (!time) throw unreachable(`the node has logs of block ${hexToNumber(blockNumber)}, but not the block`)
    return hexToNumber(time)
  }
}
