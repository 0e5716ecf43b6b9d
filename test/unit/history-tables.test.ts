import { CapitalMode } from '@agent-trading-service/protocol/enums'
import type { Trade } from '@agent-trading-service/protocol/trade-events'
import type { Address, Hex } from 'viem'
import { beforeEach, describe, expect, it } from 'vitest'
import { createChain, type TradingChain } from '../../src/chain/configured-chain.ts'
import { learnDecimals } from '../../src/chain/token-decimals-cache.ts'
import { parseConfig } from '../../src/config/config.ts'
import { continueTrackRecords, readCapHistory, readPriceHistory } from '../../src/history/compute-track-records.ts'
import { deleteOldStandings, KEPT_LEADERBOARD_DAYS, thinOldPrices } from '../../src/history/delete-old-rows.ts'
import { openSampleStore, readDueAgents } from '../../src/history/equity-sampler.ts'
import { openIndexStore } from '../../src/history/store.ts'
import { rollUpCandles } from '../../src/history/tables/candles.ts'
import { commitAtCursor, type IndexCursor } from '../../src/history/tables/cursor.ts'
import { openedPositions, readOpenPositions } from '../../src/history/tables/positions.ts'
import { readIndexChanges } from '../../src/live/read-index-changes.ts'
import { createSqliteD1, type SqliteD1 } from '../support/sqlite-d1.ts'

// Queries of the history whose cost or size only shows with more rows than a chain of the tests has.

const HOUR = 3_600
const DAY = 24 * HOUR
const INDEX_KEY = 'test'
const addressOf = (id: number): Address => `0x${`${id}`.padStart(40, '0')}`
const hashOf = (block: number): Hex => `0x${`${block}`.padStart(64, '0')}`
const [vault, token] = [addressOf(101), addressOf(102)]
const CONTRACTS = [
  'AgentRegistry',
  'VaultTrackRegistry',
  'FeeManager',
  'TokenRegistry',
  'PriceOracle',
  'TradeRouter',
  'TradeRouterLens',
  'PositionManager',
  'AllocationManager',
]
const { chain: chainConfig, trading } = parseConfig({
  CHAIN_ID: '31337',
  RPC_URL: 'http://127.0.0.1:1',
  CONTRACTS: JSON.stringify(Object.fromEntries(CONTRACTS.map((name, index) => [name, addressOf(index + 1)]))),
})
if (chainConfig === undefined) throw new Error('The variables name no chain.')
const chain = createChain(chainConfig, trading) as TradingChain
learnDecimals(chain, [{ address: token, decimals: 18 }])

let d1: SqliteD1
let store: ReturnType<typeof openIndexStore>
beforeEach(async () => {
  d1 = createSqliteD1()
  store = openIndexStore(d1.db, INDEX_KEY)
  await store.migrate()
})

const cursorAt = (block: number, timestamp: number): IndexCursor => ({
  block,
  hash: hashOf(block),
  timestamp,
  head: block,
  final: block,
})
const noRows = { trades: [], positions: [], agents: [], prices: [], events: [], blocks: [] }
const select = (sql: string) => d1.sqlite.prepare(sql).all()

describe('the track record of an agent', () => {
  const agentId = 1
  const agent = { agentId, block: 1, logIndex: 0, owner: vault, vault, track: 0, status: 1, timestamp: 0 }
  const tradeAt = (block: number, type: Trade['type'], capitalMode: number): Trade => ({
    agentId: BigInt(agentId),
    positionId: 1n,
    token,
    vault,
    capitalMode,
    source: 'intent',
    type,
    blockNumber: BigInt(block),
    logIndex: 0,
    transactionHash: hashOf(block),
    timestamp: BigInt(block),
    usdcAmount: 1_000_000n,
    tokenAmount: 10n ** 18n,
  })
  /** Returns a purchase and its sale, one block after the other. */
  const roundTrip = (block: number, mode: number) => [
    tradeAt(block, 'PositionOpened', mode),
    tradeAt(block + 1, 'PositionReduced', mode),
  ]

  it('the track record of an agent reads only trades that no record has, also after the agent was promoted', async () => {
    const { Simulated, Real } = CapitalMode
    let from: IndexCursor | undefined
    /** Adds trades, one block per second, and returns how many rows were read to continue the records. */
    async function continueWith(trades: Trade[], block: number): Promise<number> {
      const to = cursorAt(block, block)
      await store.append(from, to, { ...noRows, trades, agents: from === undefined ? [agent] : [] })
      from = to
      d1.ran.length = 0
      await commitAtCursor(d1.db, to.hash, await continueTrackRecords(d1.db, chain, [agentId], to))
      return d1.ran.filter(({ sql }) => sql.includes('trades.*')).reduce((sum, { rows }) => sum + rows, 0)
    }
    expect(await continueWith(roundTrip(10, Simulated), 2 * HOUR)).toBe(2)
    expect(await continueWith(roundTrip(2 * HOUR + 10, Real), 2 * HOUR + 20)).toBe(2)
    expect(await continueWith([], 4 * HOUR)).toBe(2)
    expect(await continueWith(roundTrip(4 * HOUR + 10, Real), 6 * HOUR)).toBe(2)
    expect(await continueWith(roundTrip(6 * HOUR + 10, Real), 8 * HOUR)).toBe(2)
    expect(await continueWith(roundTrip(8 * HOUR + 10, Simulated), 10 * HOUR)).toBe(2)
    const current = `SELECT capital_mode AS mode, trades FROM standings WHERE period = 'all' AND until IS NULL ORDER BY 1`
    expect(select(current).map(({ mode, trades }) => [mode, trades])).toEqual(
      [
        [Simulated, 4],
        [Real, 6],
      ].sort(([a = 0], [b = 0]) => a - b),
    )
  })
})

describe('positions', () => {
  const trade = (positionId: number, block: number, type: Trade['type']): Trade => ({
    agentId: 1n,
    positionId: BigInt(positionId),
    token,
    vault,
    source: 'intent',
    type,
    blockNumber: BigInt(block),
    logIndex: positionId,
    transactionHash: hashOf(block),
    timestamp: BigInt(block),
  })
  const openIds = async (block: number) => {
    const ids = (await readOpenPositions(d1.db, block)).map(({ positionId }) => Number(positionId)).sort()
    const ofAgent = (await readOpenPositions(d1.db, block, [1])).map(({ positionId }) => Number(positionId)).sort()
    expect(ids).toEqual(ofAgent)
    return ids
  }

  it('positions are open until they are closed, and again if a reorg withdraws that', async () => {
    const [first, second, third] = [cursorAt(2, 2), cursorAt(4, 4), cursorAt(6, 6)]
    const opened = [1, 2, 3].map(id => trade(id, 1, 'PositionOpened'))
    const closedAtOnce = trade(3, 2, 'PositionClosed')
    const rows = { ...noRows, trades: [...opened, closedAtOnce], positions: openedPositions(opened) }
    await store.append(undefined, first, rows)
    expect(await openIds(2)).toEqual([1, 2])
    await store.append(first, second, { ...noRows, trades: [trade(1, 3, 'PositionClosed')] })
    expect(await openIds(4)).toEqual([2])
    await store.append(second, third, { ...noRows, trades: [trade(2, 5, 'PositionClosed')] })
    expect(await openIds(6)).toEqual([])
    expect(await openIds(2)).toEqual([1, 2])
    const reorg = { ancestor: 2, ancestorHash: first.hash, lost: 6, lostHash: third.hash, at: 0 }
    await store.rollback(third, first, reorg)
    expect(await openIds(2)).toEqual([1, 2])
  })
})

describe('what the indexer, the samples and the event log read', () => {
  /** Small tables, and tables with one row read per parameter. */
  const SMALL = /^SCAN (\(subquery|CONSTANT|json_each|cursor|sampling|unsampled)/

  it('what the indexer, the samples and the event log read is found by an index, whatever else the tables have', async () => {
    const cursor = cursorAt(5, 5)
    const samples = openSampleStore(d1.db, chain)
    d1.ran.length = 0
    await store.append(undefined, cursor, noRows)
    for (const previous of [undefined, { changedTo: 1, quarter: 0 }]) {
      const pass = { vaults: [], previous, progress: { changedTo: 5, quarter: 1 } }
      await readDueAgents(d1.db, pass, { after: 0n, limit: 3 })
      await samples.finish(cursor, pass, [])
    }
    await samples.startPass(cursor, [])
    await continueTrackRecords(d1.db, chain, [1], cursor)
    await samples.write(cursor, {
      block: { number: 5n, timestamp: 5n, hash: hashOf(5) },
      equities: new Map(),
      worths: new Map(),
      remainingAgents: [],
    })
    await samples.prune(cursor)
    await readCapHistory(d1.db, [1], 5)
    await readPriceHistory(d1.db, [token], { from: 1, to: 5 })
    await store.readAgents([1])
    await store.readPositions([1n])
    await readIndexChanges(d1.db, INDEX_KEY, {
      block: 3,
      hash: hashOf(3),
      reorg: 0,
      branch: 0,
      highestLost: -1,
      start: 0,
    })
    await store.rollback(cursor, cursorAt(4, 4), {
      ...{ ancestor: 4, ancestorHash: hashOf(4), lost: 5, lostHash: hashOf(5), at: 1 },
    })
    const statements = [...new Set(d1.ran.map(({ sql }) => sql))].filter(sql => !sql.includes('the cursor moved'))
    expect(statements.length).toBeGreaterThan(40)
    const scans = statements.flatMap(sql => {
      const plan = select(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => `${detail}`)
      // Not a scan by name, but it reads the events of all agents.
      const isScan = (step: string) =>
        (step.startsWith('SCAN') && !SMALL.test(step)) || /events.*\(agent_id>\?\)/.test(step)
      return plan.filter(isScan).map(step => [sql, step])
    })
    expect(scans).toEqual([])
  })
})

describe('rows that are kept for a time', () => {
  it('rows that are kept for a time are of each hour the last price of a token, once it is older than 90 days', async () => {
    const other = addressOf(103)
    const minutes = Array.from({ length: 3 * 60 }, (_, minute) => minute * 60)
    const prices = minutes.flatMap(timestamp =>
      [token, other].map((token, logIndex) => ({
        ...{ token, block: 1 + timestamp, logIndex, price: 1n, observedAt: timestamp, timestamp },
      })),
    )
    const timesOf = (token: Address) =>
      select(`SELECT timestamp FROM prices WHERE token = '${token}' ORDER BY block`).map(({ timestamp }) => timestamp)
    await store.append(undefined, cursorAt(3 * HOUR, 3 * HOUR), { ...noRows, prices })
    d1.sqlite.exec('INSERT INTO sampling (id, changed_to, quarter) VALUES (1, 0, 0)')
    const run = async (statements: Promise<D1PreparedStatement[]>) => {
      const due = await statements
      if (due.length > 0) await d1.db.batch(due)
    }
    const thinAt = async (timestamp: number, final: number) => {
      await run(thinOldPrices(d1.db, { timestamp, final }))
      expect(timesOf(token)).toContain(final - 60) // not before they are in the candles
      await run(rollUpCandles(d1.db, { final }))
      await run(thinOldPrices(d1.db, { timestamp, final }))
    }
    await thinAt(90 * DAY + DAY - 1, 3 * HOUR)
    expect(timesOf(token)).toEqual(minutes)
    await thinAt(92 * DAY, 2 * HOUR)
    expect(timesOf(token)).toEqual([HOUR - 60, 2 * HOUR - 60, ...minutes.slice(120)])
    await thinAt(92 * DAY, 3 * HOUR)
    expect(timesOf(token)).toEqual([HOUR - 60, 2 * HOUR - 60, 3 * HOUR - 60])
    expect(timesOf(other)).toEqual(timesOf(token))
    expect(select('SELECT DISTINCT seconds, start, posts FROM candles ORDER BY seconds, start')).toEqual([
      { seconds: HOUR, start: 0, posts: 60 },
      { seconds: HOUR, start: HOUR, posts: 60 },
      { seconds: HOUR, start: 2 * HOUR, posts: 60 },
      { seconds: DAY, start: 0, posts: 180 },
    ])
  })

  it('rows that are kept for a time are the leaderboards of 90 past days, and of all weeks', async () => {
    const insert = d1.sqlite.prepare(
      `INSERT INTO standings (agent_id, capital_mode, period, start, block, vault, track, trades,
        by_return, by_drawdown, by_calmar, by_sharpe, figures) VALUES (1, 0, ?, ?, ?, '', 0, 1, 0, 0, 0, 0, '{}')`,
    )
    for (const start of [0, DAY, 2 * DAY]) insert.run('day', start, start + 1)
    insert.run('week', 0, 1)
    const deleteAt = (timestamp: number, final: number) => d1.db.batch(deleteOldStandings(d1.db, { timestamp, final }))
    const kept = () =>
      select('SELECT period, start FROM standings ORDER BY period, start').map(row => Object.values(row))
    const now = (KEPT_LEADERBOARD_DAYS + 2) * DAY + 100
    await deleteAt(now, DAY)
    expect(kept()).toEqual([
      ['day', DAY],
      ['day', 2 * DAY],
      ['week', 0],
    ])
    await deleteAt(now, now)
    expect(kept()).toEqual([
      ['day', 2 * DAY],
      ['week', 0],
    ])
  })
})

describe('an index that is discarded', () => {
  const tables = () =>
    select(`SELECT name FROM sqlite_master WHERE type = 'table'`)
      .map(({ name }) => `${name}`)
      .filter(name => !['reorgs', 'd1_migrations', 'sqlite_sequence'].includes(name))
  const filled = () => tables().filter(name => select(`SELECT 1 FROM ${name} LIMIT 1`).length > 0)

  /** Adds a row to every table, and more samples than one page has. */
  function fill() {
    for (const table of tables()) {
      const columns = select(`SELECT name FROM pragma_table_info('${table}')`)
      d1.sqlite.exec(`INSERT OR IGNORE INTO ${table} VALUES (${columns.map(() => 1).join()})`)
    }
    d1.sqlite.exec(`WITH RECURSIVE n (n) AS (VALUES (2) UNION ALL SELECT n + 1 FROM n WHERE n < 12000)
      INSERT INTO equity SELECT n, n, n, NULL, 'a', '1', '1', '1', '1', '1', 0, 1, 0 FROM n`)
    d1.sqlite.exec(`UPDATE cursor SET scope = '${INDEX_KEY}'`)
  }
  /** Deletes pages until none is left, and returns their number. The object may be evicted between any two. */
  async function deleteAll(): Promise<number> {
    for (let pages = 1; ; pages++) {
      if (!(await openIndexStore(d1.db, INDEX_KEY).deleteObsolete())) return pages
      expect(await store.readCursor()).toBeUndefined()
    }
  }

  it('an index that is discarded is not read any more, and is deleted in pages until nothing is left', async () => {
    fill()
    expect(filled()).toEqual(tables())
    expect(await store.readCursor()).toBeDefined()
    expect(await store.deleteObsolete()).toBe(false)
    expect(filled()).toEqual(tables())
    await store.discard()
    expect(await store.readCursor()).toBeUndefined()
    expect(await deleteAll()).toBe(3)
    expect(filled()).toEqual([])
    await store.append(undefined, cursorAt(5, 5), noRows)
    expect(await store.readCursor()).toMatchObject({ block: 5 })
  })

  it('an index that is discarded is one of other contracts too', async () => {
    fill()
    d1.sqlite.exec(`UPDATE cursor SET scope = 'other contracts'`)
    await deleteAll()
    expect(filled()).toEqual([])
  })

  it('an index that is discarded keeps what was sampled if only its cursor is dropped', async () => {
    fill()
    await store.dropCursor()
    expect(await deleteAll()).toBe(1)
    expect(filled().sort()).toEqual([
      ...['equity', 'feedback', 'sampling', 'standings', 'track_records', 'unsampled', 'vault_use', 'vault_worth'],
    ])
  })
})
