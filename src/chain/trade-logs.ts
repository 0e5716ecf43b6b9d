import { BaseError, type Hex, hexToBigInt, hexToNumber, numberToHex } from 'viem'
import { type TradingChain, unreachable } from './client.ts'
import type { TradeLog } from './trade-events.ts'

/** A trade's log; the time is absent where the node does not tell it with the log. */
export type TimedLog = TradeLog & { blockTimestamp: bigint | undefined }

/** Most agents' newest page lies within this many blocks; a node that refuses as few is asked for fewer. */
const FIRST_RANGE = 5_000n
/** A range that does not fill the page is followed by a larger one. */
const GROWTH = 8n
/** A refusal of this few blocks is no matter of the range. */
const SMALLEST_RANGE = 16n
/** After so many requests a page ends where it is, with a cursor. */
const MOST_REQUESTS = 100

type RawLog = {
  topics: Hex[]
  data: Hex
  transactionHash: Hex
  blockNumber: Hex
  logIndex: Hex
  blockTimestamp?: Hex | null
}

/** Logs of router and position manager in ranges of blocks, newest range first. */
export async function* newestLogs(
  chain: TradingChain,
  topics: readonly unknown[],
  { fromBlock, toBlock }: { fromBlock: bigint; toBlock: bigint },
): AsyncGenerator<{ logs: TimedLog[]; fromBlock: bigint }> {
  let range = FIRST_RANGE
  let refused: bigint | undefined
  let last = toBlock
  for (let requests = 0; last >= fromBlock && requests < MOST_REQUESTS; requests++) {
    const first = last - range + 1n > fromBlock ? last - range + 1n : fromBlock
    const page = await askLogs(chain, { topics, fromBlock: numberToHex(first), toBlock: numberToHex(last) })
    if (page instanceof Error) {
      if (range <= SMALLEST_RANGE) throw unreachable(page)
      refused = range
      range /= 2n
      continue
    }
    yield { logs: page.map(toLog), fromBlock: first }
    last = first - 1n
    if (refused === undefined || range * GROWTH < refused) range *= GROWTH
  }
}

async function askLogs({ client, trading }: TradingChain, filter: Record<string, unknown>): Promise<RawLog[] | Error> {
  try {
    const address = [trading.TradeRouter, trading.PositionManager]
    const request = { method: 'eth_getLogs', params: [{ address, ...filter }] }
    // A range that is too large does not become smaller by asking again.
    return await (client.request as (...args: unknown[]) => Promise<RawLog[]>)(request, { retryCount: 0 })
  } catch (error) {
    return error instanceof BaseError ? error : new Error('eth_getLogs failed', { cause: error })
  }
}

const toLog = ({ topics, data, transactionHash, blockNumber, logIndex, blockTimestamp }: RawLog): TimedLog => ({
  topics,
  data,
  transactionHash,
  blockNumber: hexToBigInt(blockNumber),
  logIndex: hexToNumber(logIndex),
  blockTimestamp: blockTimestamp ? hexToBigInt(blockTimestamp) : undefined,
})
