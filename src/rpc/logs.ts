import type { Address, Hex } from 'viem'
import { BaseError, numberToHex } from 'viem'
import { type Chain, unreachable } from '../chain/client.ts'

export type EventLog = { topics: readonly Hex[]; data: Hex; blockNumber: bigint; transactionHash: Hex }

export type LogFilter = {
  address: Address
  /** Indexed topics by position; a list is any of them, null is anything. */
  topics: readonly (Hex | readonly Hex[] | null)[]
  fromBlock: bigint
  toBlock: bigint
}

/** What a query may ask the node before it gives up: more blocks than this many pages want an index. */
const MOST_REQUESTS = 400
/** A refusal of this few blocks is no matter of the range. */
const SMALLEST_RANGE = 16n

type RawLog = { topics: Hex[]; data: Hex; blockNumber: Hex; transactionHash: Hex }

/**
 * Reads logs in pages of blocks, oldest first: the whole range first, half of it whenever the node refuses, and more
 * again as long as that stays below what it refused. Throws CHAIN_UNREACHABLE when the node gives no logs at all.
 */
export async function getLogs(chain: Chain, { address, topics, fromBlock, toBlock }: LogFilter): Promise<EventLog[]> {
  const logs: EventLog[] = []
  let range = toBlock - fromBlock + 1n
  let refused = range + 1n
  let from = fromBlock
  for (let requests = 1; from <= toBlock; requests++) {
    if (requests > MOST_REQUESTS) throw unreachable(new Error('the range wants too many pages of logs'))
    const last = from + range - 1n < toBlock ? from + range - 1n : toBlock
    const page = await ask(chain, { address, topics, fromBlock: numberToHex(from), toBlock: numberToHex(last) })
    if (page instanceof Error) {
      if (range <= SMALLEST_RANGE) throw unreachable(page)
      refused = range
      range /= 2n
      continue
    }
    for (const { topics, data, blockNumber, transactionHash } of page)
      logs.push({ topics, data, blockNumber: BigInt(blockNumber), transactionHash })
    from = last + 1n
    if (range * 2n < refused) range *= 2n
  }
  return logs
}

async function ask({ client }: Chain, filter: Record<string, unknown>): Promise<RawLog[] | Error> {
  try {
    const request = { method: 'eth_getLogs', params: [filter] }
    // A range that is too large does not become smaller by asking again.
    return await (client.request as (...args: unknown[]) => Promise<RawLog[]>)(request, { retryCount: 0 })
  } catch (error) {
    return error instanceof BaseError ? error : new Error('eth_getLogs failed', { cause: error })
  }
}
