import {
  type AgentBook,
  EMPTY_BOOK,
  equityOf,
  parseBook,
  promoteBook,
} from '@agent-trading-service/protocol/agent-book'
import { strictestMaxAge } from '@agent-trading-service/protocol/oracle-price'
import type { Address } from 'viem'
import type { Block, TradingChain } from '../chain/configured-chain.ts'
import type { Equity } from '../chain/equity-and-worth.ts'
import { type PriceAt, readHeldPrices } from './tables/candles.ts'
import { type ContractEvent, toContractEvents } from './tables/events.ts'
import { readBatch } from './tables/table.ts'

/** An agent's equity at a time, in USDC base units. Times are Unix seconds. */
export type EquityPoint = {
  timestamp: bigint
  /** The last block that changed it. */
  blockNumber: bigint
  equity: bigint
  realized: bigint
  unrealized: bigint
  drawdownBps: number
  openCount: number
  /** Whether a position was valued at a stale price. */
  isStale: boolean
}

/** The last trade of an agent at or before each time (?2, a JSON array). */
const BOOKS = `SELECT asked.value AS time, book, block, log_index, vault FROM json_each(?2) AS asked CROSS JOIN trades
  ON agent_id = ?1 AND (block, log_index) = (
    SELECT block, log_index FROM trades INDEXED BY trades_time WHERE agent_id = ?1 AND timestamp <= asked.value
    ORDER BY timestamp DESC, block DESC, log_index DESC LIMIT 1)`
const ALLOCATION_EVENTS = `SELECT * FROM events INDEXED BY events_caps
  WHERE agent_id = ?1 AND name IN ('AllocationCreated', 'AllocationCapUpdated', 'AgentPromoted') ORDER BY block, log_index`
const ORACLES = `FROM events INDEXED BY events_contract WHERE contract = ?3 AND name = 'PriceOracleUpdated'`
/**
 * What decides when a price is stale: settings of the oracles, the configured one (?1) and those that the token
 * registry (?3) names, and of the vault of an agent (?2).
 */
const AGE_EVENTS = `SELECT * FROM (
    SELECT * ${ORACLES}
    UNION ALL SELECT * FROM events INDEXED BY events_contract
      WHERE contract IN (SELECT ?1 UNION SELECT args ->> 'current' ${ORACLES}) AND name = 'AssetConfigUpdated'
    UNION ALL SELECT * FROM events INDEXED BY events_contract
      WHERE contract = (SELECT vault FROM agents WHERE agent_id = ?2 LIMIT 1) AND name = 'MaxPriceAgeUpdated')
  ORDER BY block, log_index`

type BookRow = { time: number; book: string; block: number; log_index: number; vault: Address }

/** Returns the point of the chain's own figures at a block. */
export const equityPointAt = (equity: Equity, { number, timestamp }: Block): EquityPoint => ({
  timestamp,
  blockNumber: number,
  equity: equity.current,
  realized: equity.realized,
  unrealized: equity.unrealized,
  drawdownBps: Number(equity.drawdownBps),
  openCount: equity.openCount,
  isStale: equity.staleTokens.length > 0,
})

/** Reads the equity at times at or before the cursor, oldest first. Times before the registration are left out. */
export async function readEquityPoints(
  { db, chain }: { db: D1Database; chain: TradingChain },
  agentId: bigint,
  times: readonly number[],
): Promise<EquityPoint[]> {
  if (times.length === 0 || agentId > Number.MAX_SAFE_INTEGER) return []
  const id = Number(agentId)
  const [bookRows, allocationRows, ageRows] = await readBatch(db, [
    db.prepare(BOOKS).bind(id, JSON.stringify(times)),
    db.prepare(ALLOCATION_EVENTS).bind(id),
    db.prepare(AGE_EVENTS).bind(chain.contracts.PriceOracle, id, chain.contracts.TokenRegistry),
  ])
  const rows = new Map(((bookRows ?? []) as BookRow[]).map(row => [row.time, row]))
  const allocations = toContractEvents(allocationRows)
  const ages = toContractEvents(ageRows)
  const states = times.flatMap(time => stateAt(time, rows.get(time), allocations))
  const { priceAt, decimalsOf } = await readHeldPrices(db, chain, states)
  return states.map(({ time, book, cap, block }) => {
    const prices = new Map((Object.keys(book.holdings) as Address[]).map(token => [token, priceAt(token, time)]))
    const priceOf = (token: Address) => prices.get(token)?.price
    const { equity, unrealized, drawdownBps, openCount } = equityOf(book, cap, { priceOf, decimalsOf })
    const blocks = [...prices.values()].map(price => price?.block ?? 0)
    return {
      timestamp: BigInt(time),
      blockNumber: BigInt(Math.max(block, ...blocks)),
      equity,
      realized: book.realized,
      unrealized,
      drawdownBps,
      openCount,
      isStale: [...prices].some(([token, price]) => isStaleAt(time, token, price, ages, chain.contracts.PriceOracle)),
    }
  })
}

type BookState = { time: number; book: AgentBook; cap: bigint; block: number }

/** Returns what an agent had at a time; none before its allocation. */
function stateAt(time: number, row: BookRow | undefined, allocations: readonly ContractEvent[]): BookState[] {
  const known = allocations.filter(({ timestamp }) => timestamp <= time)
  const last = known.at(-1)
  if (last === undefined) return []
  const { args } = known.findLast(({ name }) => name !== 'AgentPromoted') ?? last
  const promotion = known.findLast(({ name }) => name === 'AgentPromoted')
  const isAfterTrade =
    promotion !== undefined &&
    row !== undefined &&
    (promotion.block > row.block || (promotion.block === row.block && promotion.logIndex > row.log_index))
  const book = row === undefined ? EMPTY_BOOK : parseBook(row.book)
  return [
    {
      time,
      book: isAfterTrade ? promoteBook(book) : book,
      cap: BigInt((args.newCap ?? args.cap ?? 0) as string),
      block: Math.max(row?.block ?? 0, last.block),
    },
  ]
}

/** Returns whether a price was too old at a time, under the settings of oracle and vault of that time. */
function isStaleAt(
  time: number,
  token: Address,
  price: PriceAt | undefined,
  ages: readonly ContractEvent[],
  configured: Address,
): boolean {
  if (price === undefined) return true
  const known = ages.filter(({ timestamp }) => timestamp <= time)
  const oracle = known.findLast(({ name }) => name === 'PriceOracleUpdated')?.args.current ?? configured
  const own = known.findLast(
    ({ name, contract, args }) => name === 'AssetConfigUpdated' && contract === oracle && args.asset === token,
  )
  const ofVault = known.findLast(({ name }) => name === 'MaxPriceAgeUpdated')
  const limits = [own?.args.maxAge, ofVault?.args.newMaxPriceAge].map(age => BigInt((age ?? 0) as string | number))
  const maxAge = Number(strictestMaxAge(limits))
  return maxAge > 0 && time > price.observedAt + maxAge
}
