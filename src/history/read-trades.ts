import {
  compareLogPositions,
  type LogPosition,
  TRADE_TOPICS,
  type Trade,
  type TradeType,
} from '@agent-trading-service/protocol/trade-events'
import { type Address, numberToHex } from 'viem'
import type { Block, TradingChain } from '../chain/configured-chain.ts'
import { readBlockTimes } from '../rpc/logs.ts'
import { blockRequest, type LogFilter } from '../rpc/requests.ts'
import { toTrades } from './index-rows.ts'
import type { Snapshot, SnapshotReader } from './read-index-to-head.ts'
import { readTradedPositions } from './tables/positions.ts'
import { selectRelayedTrades, toRelayedTrade } from './tables/relayed-trades.ts'
import { type TradeRow, toTrade } from './tables/trades.ts'

/** The dependencies of a read of trades or positions. */
export type TradeSources = { snapshots: SnapshotReader; chain: TradingChain; db: D1Database }

/** Selects an agent's trades, newest first. */
export type TradeQuery = {
  agentId: bigint
  limit: number
  /** Selects trades older than this position. */
  before?: LogPosition | undefined
  type?: TradeType | undefined
  token?: Address | undefined
  positionId?: bigint | undefined
}

/** Returns whether SQLite can hold an id. Contracts count ids from 1, so no larger id exists. */
export const isIndexable = (id: bigint | undefined): boolean => id === undefined || id <= Number.MAX_SAFE_INTEGER

/** Returns the filter for the logs of an agent's trades, or of one of its positions. */
export const tradeLogFilter = ({ trading }: TradingChain, agentId: bigint, positionId?: bigint): LogFilter => ({
  address: [trading.TradeRouter, trading.PositionManager],
  topics: [
    TRADE_TOPICS,
    positionId === undefined ? null : numberToHex(positionId, { size: 32 }),
    numberToHex(agentId, { size: 32 }),
  ],
})

/**
 * Reads a page of an agent's trades, newest first, complete up to `asOf`. `next` is the position before which there are
 * more. `head` is the node's newest block. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readTrades(
  { snapshots, chain, db }: TradeSources,
  query: TradeQuery,
  head: Promise<Block>,
): Promise<{ trades: Trade[]; next: LogPosition | undefined; asOf: Block; lagBlocks: number }> {
  const { agentId, limit, before, positionId } = query
  const canExist = isIndexable(agentId) && isIndexable(positionId)
  const snapshot = await snapshots.readSnapshot({
    queries: session => (canExist ? [selectTradePage(session, query), selectRelayedTrades(session, agentId)] : []),
    head,
    filter: tradeLogFilter(chain, agentId, positionId),
    until: before?.blockNumber,
  })
  const { results, asOf, lagBlocks } = snapshot
  const newer = lagBlocks > 0 ? await readRelayedTrades(chain, snapshot) : await decodeTrades({ chain, db }, snapshot)
  const page = [
    ...newer.filter(trade => matches(trade, query)).reverse(),
    ...(results[0]?.results ?? []).map(row => toTrade(row as TradeRow)),
  ]
  const trades = page.slice(0, limit)
  return { trades, next: page.length > limit ? trades.at(-1) : undefined, asOf, lagBlocks }
}

/** Decodes the trades of a snapshot's logs, oldest first. */
export async function decodeTrades(
  { chain, db }: Pick<TradeSources, 'chain' | 'db'>,
  { logs }: Snapshot,
): Promise<Trade[]> {
  if (logs.length === 0) return []
  return toTrades(chain, logs, await readBlockTimes(chain.rpc, logs), ids => readTradedPositions(db, ids))
}

/**
 * Returns the service's own trades above the cursor whose blocks the chain still has, oldest first. They complete a
 * snapshot that is too far behind to read all logs up to the head.
 */
async function readRelayedTrades(chain: TradingChain, { results, cursor }: Snapshot): Promise<Trade[]> {
  const relayed = (results[1]?.results ?? [])
    .map(toRelayedTrade)
    .filter(({ trade }) => trade.blockNumber > BigInt(cursor.block))
  const blocks = [...new Set(relayed.map(({ trade }) => trade.blockNumber))]
  if (blocks.length === 0) return []
  const responses = await chain.rpc.batch(blocks.map(block => blockRequest(block)))
  const hashes = new Map(blocks.map((block, index) => [block, responses[index]?.result?.hash]))
  return relayed
    .filter(({ trade, blockHash }) => hashes.get(trade.blockNumber) === blockHash)
    .map(({ trade }) => trade)
    .sort(compareLogPositions)
}

/** Returns the query for a page and one more row, which shows whether another page follows. */
export function selectTradePage(db: Pick<D1Database, 'prepare'>, query: TradeQuery): D1PreparedStatement {
  const { agentId, limit, before, type, token, positionId } = query
  const conditions = ['agent_id = ?']
  const values: (string | number)[] = [Number(agentId)]
  const filterBy = (condition: string, ...bindings: (string | number)[]) => {
    conditions.push(condition)
    values.push(...bindings)
  }
  if (positionId !== undefined) filterBy('position_id = ?', Number(positionId))
  if (token !== undefined) filterBy('token = ?', token)
  if (type !== undefined) filterBy('type = ?', type)
  if (before !== undefined) filterBy('(block, log_index) < (?, ?)', Number(before.blockNumber), before.logIndex)
  return db
    .prepare(
      `SELECT * FROM trades ${indexFor(query)} WHERE ${conditions.join(' AND ')}
      ORDER BY block DESC, log_index DESC LIMIT ?`,
    )
    .bind(...values, limit + 1)
}

/** Names the index for a set of filters, because the planner has no statistics and would guess. */
function indexFor({ type, token, positionId }: TradeQuery): string {
  if (positionId !== undefined) return 'INDEXED BY trades_position'
  if (token !== undefined) return type === undefined ? 'INDEXED BY trades_token' : 'INDEXED BY trades_token_type'
  return type === undefined ? '' : 'INDEXED BY trades_type'
}

function matches(trade: Trade, { before, type, token, positionId }: TradeQuery): boolean {
  if (before !== undefined && compareLogPositions(trade, before) >= 0) return false
  if (type !== undefined && trade.type !== type) return false
  return (token === undefined || trade.token === token) && (positionId === undefined || trade.positionId === positionId)
}
