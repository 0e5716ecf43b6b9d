import { type Address, type Hex, numberToHex } from 'viem'
import type { Block, TradingChain } from '../chain/chain.ts'
import type { TradedPosition } from '../chain/trade-details.ts'
import {
  compareLogPositions,
  type LogPosition,
  TRADE_TOPICS,
  type Trade,
  type TradeType,
} from '../protocol/trade-events.ts'
import { readBlockTimes } from '../rpc/block-times.ts'
import { blockRequest, type LogFilter } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import type { View, Viewer } from './consistent-read.ts'
import { toTrades } from './index-rows.ts'
import { type TradeRow, toTrade } from './tables/trades.ts'

export type TradeQuery = {
  agentId: bigint
  limit: number
  /** Only what is older than this. */
  before?: LogPosition | undefined
  type?: TradeType | undefined
  token?: Address | undefined
  positionId?: bigint | undefined
}

/** Ids of agents and positions are counted by the contracts: none that SQLite could not hold was ever given. */
export const isIndexable = (id: bigint | undefined): boolean => id === undefined || id <= Number.MAX_SAFE_INTEGER

/** The topics of an agent's trades, or of one position's. */
export const tradeTopics = (agentId: bigint, positionId?: bigint): LogFilter['topics'] => [
  TRADE_TOPICS,
  positionId === undefined ? null : numberToHex(positionId, { size: 32 }),
  numberToHex(agentId, { size: 32 }),
]

export const tradeAddresses = ({ trading }: TradingChain) => [trading.TradeRouter, trading.PositionManager]

/**
 * A page of an agent's trades, newest first, complete to `asOf`; `next` is the place before which there are more. `head`
 * is the node's newest block. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readTrades(
  { viewer, chain, db }: { viewer: Viewer; chain: TradingChain; db: D1Database },
  query: TradeQuery,
  head: Promise<Block>,
): Promise<{ trades: Trade[]; next: LogPosition | undefined; asOf: Block; lagBlocks: number }> {
  const { agentId, limit, before, positionId } = query
  const isAsked = isIndexable(agentId) && isIndexable(positionId)
  const view = await viewer.view({
    queries: session => (isAsked ? [pageOf(session, query), relayedOf(session, agentId)] : []),
    head,
    filter: { address: tradeAddresses(chain), topics: tradeTopics(agentId, positionId) },
    until: before?.blockNumber,
  })
  const recent = view.lagBlocks > 0 ? await relayedTrades(chain.rpc, view) : await recentTrades({ chain, db }, view)
  const page = [
    ...recent.filter(trade => isWanted(trade, query)).reverse(),
    ...(view.results[0]?.results ?? []).map(row => toTrade(row as TradeRow)),
  ]
  const trades = page.slice(0, limit)
  return { trades, next: page.length > limit ? trades.at(-1) : undefined, asOf: view.asOf, lagBlocks: view.lagBlocks }
}

/** The trades of a view's logs, oldest first. */
export async function recentTrades(
  { chain, db }: { chain: TradingChain; db: D1Database },
  { logs }: View,
): Promise<Trade[]> {
  if (logs.length === 0) return []
  return toTrades(chain, logs, await readBlockTimes(chain.rpc, logs), ids => positionsOf(db, ids))
}

/** Trades of the service's own above the cursor: where the chain is not asked for all of them, those are known. */
const relayedOf = (db: Pick<D1Database, 'prepare'>, agentId: bigint) =>
  db
    .prepare('SELECT block, block_hash, trade FROM relayed WHERE agent_id = ? ORDER BY block DESC LIMIT ?')
    .bind(Number(agentId), MOST_RELAYED)
const MOST_RELAYED = 100

/** The relayed trades whose blocks the chain still has, oldest first. */
async function relayedTrades(rpc: RpcTransport, { results, cursor }: View): Promise<Trade[]> {
  const rows = (results[1]?.results ?? []) as { block: number; block_hash: Hex; trade: string }[]
  const newer = rows.filter(({ block }) => block > cursor.block)
  const blocks = [...new Set(newer.map(({ block }) => block))]
  if (blocks.length === 0) return []
  const answers = await rpc.batch(blocks.map(block => blockRequest(block)))
  const hashes = new Map(blocks.map((block, index) => [block, answers[index]?.result?.hash]))
  return newer
    .filter(({ block, block_hash }) => hashes.get(block) === block_hash)
    .map(({ trade }) => toTrade(JSON.parse(trade) as TradeRow))
    .sort(compareLogPositions)
}

/** What the index knows of positions; those that it does not know are left out. */
export async function positionsOf(
  db: Pick<D1Database, 'prepare'>,
  ids: readonly bigint[],
): Promise<Map<bigint, TradedPosition>> {
  const { results } = await db
    .prepare('SELECT position_id, token, vault FROM positions WHERE position_id IN (SELECT value FROM json_each(?1))')
    .bind(JSON.stringify(ids.map(Number)))
    .all<TradedPosition & { position_id: number }>()
  return new Map(results.map(({ position_id, token, vault }) => [BigInt(position_id), { token, vault }]))
}

/** One more than the page, so that it is known whether there is another; each filter has its index. */
export function pageOf(db: Pick<D1Database, 'prepare'>, query: TradeQuery): D1PreparedStatement {
  const { agentId, limit, before, type, token, positionId } = query
  const filters: [sql: string, value: string | number][] = [['agent_id = ?', Number(agentId)]]
  if (positionId !== undefined) filters.push(['position_id = ?', Number(positionId)])
  if (token !== undefined) filters.push(['token = ?', token])
  if (type !== undefined) filters.push(['type = ?', type])
  const place = before ? ` AND (block, log_index) < (?, ?)` : ''
  return db
    .prepare(
      `SELECT * FROM trades ${indexFor(query)} WHERE ${filters.map(([sql]) => sql).join(' AND ')}${place}
      ORDER BY block DESC, log_index DESC LIMIT ?`,
    )
    .bind(
      ...filters.map(([, value]) => value),
      ...(before ? [Number(before.blockNumber), before.logIndex] : []),
      limit + 1,
    )
}

/** A planner without statistics would have to guess. */
function indexFor({ type, token, positionId }: TradeQuery): string {
  if (positionId !== undefined) return 'INDEXED BY trades_position'
  if (token !== undefined) return type === undefined ? 'INDEXED BY trades_token' : 'INDEXED BY trades_token_type'
  return type === undefined ? '' : 'INDEXED BY trades_type'
}

function isWanted(trade: Trade, { before, type, token, positionId }: TradeQuery): boolean {
  if (before !== undefined && compareLogPositions(trade, before) >= 0) return false
  if (type !== undefined && trade.type !== type) return false
  return (token === undefined || trade.token === token) && (positionId === undefined || trade.positionId === positionId)
}
