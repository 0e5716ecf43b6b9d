import type { Address, Hex } from 'viem'
import { BaseError, numberToHex } from 'viem'
import { type Chain, unreachable } from './client.ts'

export type EventLog = { topics: readonly Hex[]; data: Hex; blockNumber: bigint }

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

type RawLog = { topics: Hex[]; data: Hex; blockNumber: Hex }

/**
 * Reads logs in pages of blocks, oldest first: the whole range first, half of it whenever the node refuses, twice as
 * much after each page that it gives. Throws CHAIN_UNREACHABLE when the node gives no logs at all.
 */
export async function getLogs(chain: Chain, { address, topics, fromBlock, toBlock }: LogFilter): Promise<EventLog[]> {
  const logs: EventLog[] = []
  let range = toBlock - fromBlock + 1n
  let from = fromBlock
  for (let requests = 1; from <= toBlock; requests++) {
    const last = from + range - 1n < toBlock ? from + range - 1n : toBlock
    const page = await ask(chain, { address, topics, fromBlock: numberToHex(from), toBlock: numberToHex(last) })
    if (page instanceof Error) {
      if (range <= SMALLEST_RANGE || requests >= MOST_REQUESTS) throw unreachable(page)
      range /= 2n
      continue
    }
    if (requests >= MOST_REQUESTS && last < toBlock) throw unreachable(new Error('the range wants too many pages'))
    for (const { topics, data, blockNumber } of page) logs.push({ topics, data, blockNumber: BigInt(blockNumber) })
    from = last + 1n
    range *= 2n
  }
  return logs
}

async function ask({ client }: Chain, filter: Record<string, unknown>): Promise<RawLog[] | Error> {
  try {
    return await (client.request as (args: unknown) => Promise<RawLog[]>)({ method: 'eth_getLogs', params: [filter] })
  } catch (error) {
    return error instanceof BaseError ? error : new Error('eth_getLogs failed', { cause: error })
  }
}
