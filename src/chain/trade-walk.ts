import { type Address, type Hex, hexToBigInt, numberToHex } from 'viem'
import { getHttpRpcClient } from 'viem/utils'
import { refuse } from '../errors.ts'
import { type Block, read, type TradingChain, unreachable } from './client.ts'
import { agentCalls, toAgent } from './registry.ts'
import { comparePlaces, type Place, TRADE_TOPICS, type Trade, type TradeType, toTradeEvents } from './trade-events.ts'
import { newestLogs, type TimedLog } from './trade-logs.ts'
import { completeTrades, type TradedPosition } from './trades.ts'

export type TradeQuery = {
  agentId: bigint
  limit: number
  /** Only what is older than this. */
  before?: Place | undefined
  type?: TradeType | undefined
  token?: Address | undefined
  positionId?: bigint | undefined
}

/**
 * Reads an agent's trades, newest first, at most `limit`, complete to the block that is answered. `next` is the place
 * before which there may be more; a page can be short of its limit and have one, where the node gives few blocks at a
 * time. Throws AGENT_NOT_FOUND or CHAIN_UNREACHABLE.
 */
export async function getTrades(
  chain: TradingChain,
  { agentId, limit, before, type, token, positionId }: TradeQuery,
): Promise<{ block: Block; trades: Trade[]; next: Place | undefined }> {
  const { block, results } = await read(chain, agentCalls(chain, agentId))
  if (toAgent(results[0], results[1]) === undefined) throw refuse('AGENT_NOT_FOUND', { agentId: `${agentId}` })
  const positions = new Map<bigint, TradedPosition>()
  const topics = [
    TRADE_TOPICS,
    positionId === undefined ? null : numberToHex(positionId, { size: 32 }),
    numberToHex(agentId, { size: 32 }),
  ]
  const newest = before === undefined ? block.number : before.blockNumber - (before.logIndex === 0 ? 1n : 0n)
  const toBlock = newest < block.number ? newest : block.number
  let readFrom = toBlock + 1n
  const trades: Trade[] = []
  for await (const { logs, fromBlock } of newestLogs(chain, topics, { fromBlock: chain.startBlock, toBlock })) {
    const events = toTradeEvents(logs)
      .reverse()
      .filter(event => (type === undefined || event.type === type) && (!before || comparePlaces(event.log, before) < 0))
    const needed = token === undefined ? events.slice(0, limit + 1 - trades.length) : events
    const timeOf = await timesOf(
      chain,
      needed.map(({ log }) => log),
    )
    const found = await completeTrades(chain, needed, positions, timeOf)
    trades.push(...found.filter(trade => token === undefined || trade.token === token))
    readFrom = fromBlock
    if (trades.length >= limit) break
  }
  if (trades.length > limit) return { block, trades: trades.slice(0, limit), next: trades[limit - 1] }
  return { block, trades, next: readFrom > chain.startBlock ? { blockNumber: readFrom, logIndex: 0 } : undefined }
}

/** Times of the logs' blocks: from the logs, or else from the blocks in one batch, where a node's logs have none. */
async function timesOf({ client }: TradingChain, logs: readonly TimedLog[]): Promise<(log: TimedLog) => bigint> {
  const times = new Map(logs.map(log => [log.blockNumber, log.blockTimestamp]))
  const missing = [...times].filter(([, time]) => time === undefined).map(([block]) => numberToHex(block))
  const body = missing.map((block, id) => ({ id, method: 'eth_getBlockByNumber', params: [block, false] }))
  let failure: unknown
  for (const url of missing.length > 0 ? (client.chain?.rpcUrls.default.http ?? []) : []) {
    try {
      const answers = await getHttpRpcClient(url).request({ body })
      for (const { result } of answers as { result: { number: Hex; timestamp: Hex } }[])
        times.set(hexToBigInt(result.number), hexToBigInt(result.timestamp))
      break
    } catch (error) {
      failure = error
    }
  }
  if ([...times.values()].includes(undefined)) throw unreachable(failure)
  return ({ blockNumber }) => times.get(blockNumber) ?? 0n
}
