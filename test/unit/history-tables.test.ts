import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { type Order, OrderCondition, OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import type { Trade } from '@agent-trading-service/protocol/trade-events'
import { type Address, type Hex, numberToHex } from 'viem'
import { beforeEach, describe, expect, it } from 'vitest'
import { createChain, type TradingChain } from '../../src/chain/configured-chain.ts'
import { parseConfig } from '../../src/config/config.ts'
import { selectPassRows } from '../../src/history/continue-records.ts'
import { deleteOldPosts, deleteOldStandings, KEPT_LEADERBOARD_DAYS } from '../../src/history/delete-old-rows.ts'
import { foldHours } from '../../src/history/fold-hours.ts'
import { readHadAgentBefore, selectAgentPage } from '../../src/history/read-agents.ts'
import { openIndexStore } from '../../src/history/store.ts'
import { agentsTable } from '../../src/history/tables/agents.ts'
import { readPricesAt, rollUpCandles } from '../../src/history/tables/candles.ts'
import { CursorMoved, type IndexCursor } from '../../src/history/tables/cursor.ts'
import { readOpenOrders } from '../../src/history/tables/orders.ts'
import { openedPositions, readOpenPositions } from '../../src/history/tables/positions.ts'
import { insertStandings, toStandings } from '../../src/history/tables/track-records.ts'
import { withNotes } from '../../src/history/tables/trades.ts'
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
/** A chain whose only request is that for the final block. */
const chainAt = (timestamp: number): TradingChain => ({
  ...chain,
  rpc: { read: async () => ({ timestamp: `0x${timestamp.toString(16)}` }) } as never,
})
const chain = createChain(chainConfig, trading) as TradingChain
chain.memory.decimals.set(token, 18)

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
const noRows = {
  trades: [],
  positions: [],
  agents: [],
  names: [],
  prices: [],
  orders: [],
  events: [],
  changes: {},
  blocks: [],
}
const select = (sql: string) => d1.sqlite.prepare(sql).all()

it('a writer with an outdated cursor is rejected, and rows and cursor stay', async () => {
  await store.append(undefined, cursorAt(1, 1), noRows)
  const price = { token, block: 2, logIndex: 0, price: 1n, observedAt: 0, timestamp: 2 }
  const outdated = { ...cursorAt(1, 1), hash: hashOf(7) }
  const written = store.append(outdated, cursorAt(2, 2), { ...noRows, prices: [price] })
  await expect(written).rejects.toThrow(CursorMoved)
  expect(select('SELECT * FROM prices')).toEqual([])
  expect(await store.readCursor()).toEqual(cursorAt(1, 1))
})

describe('the index of orders', () => {
  const order: Order = {
    agentId: 7n,
    side: OrderSide.Reduce,
    token,
    positionId: 3n,
    usdcAmount: 0n,
    exitBps: 10_000,
    exits: [],
    maxSlippageBps: 0,
    condition: OrderCondition.None,
    price: 0n,
    trailBps: 0,
    validAfter: 0n,
    validUntil: 1_000n,
    parts: 1,
    interval: 0n,
    key: 0n,
    deadline: 10n,
    nonce: 0n,
  }
  const placedAt = (block: number) => ({
    orderId: hashOf(1_000 + block),
    order,
    block,
    logIndex: 0,
    transactionHash: hashOf(block),
    timestamp: block,
  })
  const eventAt = (block: number, logIndex: number, name: string, args: Record<string, unknown>) => ({
    block,
    logIndex,
    contract: vault,
    name,
    agentId: null,
    args,
    transactionHash: hashOf(block),
    timestamp: block,
  })
  const openIds = async () => (await readOpenOrders(d1.db, { after: undefined, limit: 10 })).map(({ block }) => block)

  it('a new order book ends the orders of the one before, and a reorg opens those again that had not ended', async () => {
    const end = eventAt(3, 0, 'OrderEnded', { orderId: placedAt(1).orderId, reason: '0' })
    const replaced = eventAt(4, 0, 'OrderBookUpdated', { previous: token, current: vault })
    await store.append(undefined, cursorAt(3, 3), { ...noRows, orders: [placedAt(1), placedAt(2)], events: [end] })
    expect(await openIds()).toEqual([2])
    const rows = { ...noRows, orders: [placedAt(5)], events: [replaced] }
    await store.append(cursorAt(3, 3), cursorAt(5, 5), rows)
    expect(await openIds()).toEqual([5])
    const reorg = { ancestor: 3, ancestorHash: hashOf(3), lost: 5, lostHash: hashOf(5), at: 5 }
    await store.rollback(cursorAt(5, 5), cursorAt(3, 3), reorg)
    expect(await openIds()).toEqual([2])
  })

  it('a trade of an order has the note of the order, also when its transaction executes several', async () => {
    const orders = [placedAt(1), placedAt(2)]
    const executed = orders.map(({ orderId }, index) =>
      eventAt(9, 2 * index + 1, 'OrderExecuted', { orderId, part: '1' }),
    )
    const trades = [0, 2].map(logIndex => ({
      ...({ agentId: 7n, positionId: 3n, token, vault, source: 'order', type: 'PositionReduced' } as const),
      ...{ blockNumber: 9n, logIndex, transactionHash: hashOf(9), timestamp: 9n },
    }))
    await store.append(undefined, cursorAt(9, 9), { ...noRows, orders, trades, events: executed })
    const notes = orders.map(({ transactionHash }, index) => `('${transactionHash}', 'note ${index}')`)
    d1.sqlite.exec(`INSERT INTO notes (transaction_hash, note) VALUES ${notes}, ('${hashOf(9)}', 'of nobody')`)
    const rows = select(`${withNotes('SELECT * FROM trades')} ORDER BY log_index`) as { note: string }[]
    expect(rows.map(({ note }) => note)).toEqual(['note 0', 'note 1'])
  })
})

describe('the track record of an agent', () => {
  const agentId = 1
  const agent = { agentId, block: 1, logIndex: 0, owner: vault, vault, track: 0, status: 1, given: 0, timestamp: 0 }
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

  /**
   * Adds trades, one block per second, and folds the hours that are over. Returns how many trades were read for that.
   */
  async function foldWith(from: IndexCursor | undefined, trades: Trade[], block: number): Promise<number> {
    const to = cursorAt(block, block)
    await store.append(from, to, { ...noRows, trades, agents: from === undefined ? [agent] : [] })
    d1.ran.length = 0
    while (await foldHours(d1.db, { ...chainAt(block), contracts: chain.contracts }, to)) {}
    return d1.ran
      .filter(({ sql }) => /^SELECT agent_id.* FROM trades/s.test(sql))
      .reduce((sum, { rows }) => sum + rows, 0)
  }

  it('the track record of an agent reads each trade once, also after the agent was promoted, and ends with its periods', async () => {
    const { Simulated, Real } = CapitalMode
    chain.memory.decimals.set(token, 18)
    expect(await foldWith(undefined, roundTrip(10, Simulated), 2 * HOUR)).toBe(2)
    expect(await foldWith(cursorAt(2 * HOUR, 2 * HOUR), roundTrip(2 * HOUR + 10, Real), 2 * HOUR + 20)).toBe(0)
    expect(await foldWith(cursorAt(2 * HOUR + 20, 2 * HOUR + 20), [], 4 * HOUR)).toBe(2)
    expect(await foldWith(cursorAt(4 * HOUR, 4 * HOUR), roundTrip(4 * HOUR + 10, Real), 6 * HOUR)).toBe(2)
    expect(await foldWith(cursorAt(6 * HOUR, 6 * HOUR), [], DAY + HOUR)).toBe(0)
    const days = select(`SELECT content FROM standings WHERE period = 'day' ORDER BY part`)
    expect(toStandings(days).map(({ capitalMode, figures }) => [capitalMode, figures.trades])).toEqual([
      [Simulated, 2],
      [Real, 4],
    ])
    expect(select('SELECT DISTINCT period, start FROM standings')).toEqual([{ period: 'day', start: 0 }])
    expect(select('SELECT hour FROM track_records ORDER BY hour DESC LIMIT 1')).toEqual([{ hour: 25 }])
  })
})

const opening: Trade = {
  ...{ agentId: 1n, positionId: 1n, token, vault, source: 'intent', type: 'PositionOpened', logIndex: 0 },
  ...{ blockNumber: 1n, transactionHash: hashOf(1), timestamp: 1n, usdcAmount: 1n, tokenAmount: 1n },
}

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
    const closing = (id: number, block: number): Trade => ({
      ...trade(id, block, 'PositionReduced'),
      positionPnlUsdc: 0n,
    })
    const closedAtOnce = closing(3, 2)
    const rows = { ...noRows, trades: [...opened, closedAtOnce], positions: openedPositions(opened) }
    await store.append(undefined, first, rows)
    expect(await openIds(2)).toEqual([1, 2])
    await store.append(first, second, { ...noRows, trades: [closing(1, 3)] })
    expect(await openIds(4)).toEqual([2])
    await store.append(second, third, { ...noRows, trades: [closing(2, 5)] })
    expect(await openIds(6)).toEqual([])
    expect(await openIds(2)).toEqual([1, 2])
    const reorg = { ancestor: 2, ancestorHash: first.hash, lost: 6, lostHash: third.hash, at: 0 }
    await store.rollback(third, first, reorg)
    expect(await openIds(2)).toEqual([1, 2])
  })
})

describe('what the indexer and the event log read', () => {
  /** Small tables, and tables with one row read per parameter. */
  const SMALL = /^SCAN (\(subquery|CONSTANT|json_each|asked|cursor|track_records)/

  it('what the indexer and the event log read is found by an index, whatever else the tables have', async () => {
    const cursor = cursorAt(2 * HOUR, 2 * HOUR)
    d1.ran.length = 0
    const trades = [{ ...opening, timestamp: 5n }]
    await store.append(undefined, cursor, { ...noRows, trades, positions: openedPositions(trades) })
    await foldHours(d1.db, { ...chainAt(2 * HOUR), contracts: chain.contracts }, cursor)
    await d1.db.batch(selectPassRows(d1.db, { recordsAt: 5, block: 5, time: 5 }))
    await readPricesAt(d1.db, [{ token, time: 5 }])
    await store.readAgents([1])
    await store.readPositions([1n])
    await readIndexChanges(d1.db, INDEX_KEY, {
      block: 3,
      known: { block: 3, hash: hashOf(3) },
      reorg: 0,
      branch: 0,
      highestLost: -1,
      start: 0,
    })
    await store.rollback({ ...cursor, final: 3 }, cursorAt(4, 4), {
      ...{ ancestor: 4, ancestorHash: hashOf(4), lost: 5, lostHash: hashOf(5), at: 1 },
    })
    const statements = [...new Set(d1.ran.map(({ sql }) => sql))].filter(sql => !sql.includes('the cursor moved'))
    expect(statements.length).toBeGreaterThan(30)
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
  it('rows that are kept for a time are posted prices, for 90 days; the price at the end of an hour is known for ever', async () => {
    const minutes = Array.from({ length: 3 * 60 }, (_, minute) => minute * 60)
    const prices = minutes.map(timestamp => ({
      ...{ token, block: 1 + timestamp, logIndex: 0, price: BigInt(timestamp + 1), observedAt: timestamp, timestamp },
    }))
    const times = () => select('SELECT timestamp FROM prices ORDER BY block').map(({ timestamp }) => timestamp)
    await store.append(undefined, cursorAt(3 * HOUR, 3 * HOUR), { ...noRows, prices })
    const moments = [1, 2, 3].map(hour => ({ token, time: hour * HOUR - 1 }))
    const pricesAt = async () => {
      const priceAt = await readPricesAt(d1.db, moments)
      return moments.map(({ time }) => priceAt(token, time))
    }
    const before = await pricesAt()
    expect(before.map(found => found?.observedAt)).toEqual([HOUR - 60, 2 * HOUR - 60, 3 * HOUR - 60])
    const deleteAt = (timestamp: number) => d1.db.batch([deleteOldPosts(d1.db, { timestamp })])
    await deleteAt(92 * DAY)
    expect(times()).toEqual(minutes) // not before they are in the candles
    await d1.db.batch(await rollUpCandles(d1.db, { final: 2 * HOUR }))
    await deleteAt(91 * DAY - 1)
    expect(times()).toEqual(minutes)
    await deleteAt(92 * DAY)
    expect(times()).toEqual(minutes.slice(120))
    expect(await pricesAt()).toEqual(before)
    await d1.db.batch(await rollUpCandles(d1.db, { final: 3 * HOUR }))
    await deleteAt(92 * DAY)
    expect(times()).toEqual([])
    expect(await pricesAt()).toEqual(before)
    expect(select('SELECT DISTINCT seconds, start, posts FROM candles ORDER BY seconds, start')).toEqual([
      { seconds: HOUR, start: 0, posts: 60 },
      { seconds: HOUR, start: HOUR, posts: 60 },
      { seconds: HOUR, start: 2 * HOUR, posts: 60 },
      { seconds: DAY, start: 0, posts: 180 },
    ])
  })

  it('rows that are kept for a time are made again if the index lacked some of the final posts', async () => {
    const post = (timestamp: number, price: bigint) => ({
      ...{ token, block: 1 + timestamp, logIndex: 0, price, observedAt: timestamp, timestamp },
    })
    const posts = [post(10, 1n), post(DAY + 10, 2n), post(DAY + 20, 3n)]
    const [to, ancestor] = [cursorAt(DAY + 100, DAY + 100), cursorAt(DAY + 15, DAY + 15)]
    await store.append(undefined, to, { ...noRows, prices: posts })
    await d1.db.batch(await rollUpCandles(d1.db, { final: to.block }))
    await store.rollback(to, ancestor, {
      ...{ ancestor: ancestor.block, ancestorHash: ancestor.hash, lost: to.block, lostHash: to.hash, at: 0 },
    })
    const again = [post(DAY + 15, 9n), post(DAY + 20, 3n)]
    await store.append(ancestor, to, { ...noRows, prices: again })
    await d1.db.batch(await rollUpCandles(d1.db, { final: to.block }))
    expect(select('SELECT start, high, posts FROM candles WHERE seconds = 86400 ORDER BY start')).toEqual([
      { start: 0, high: '1', posts: 1 },
      { start: DAY, high: '9', posts: 3 },
    ])
  })

  it('rows that are kept for a time are the leaderboards of 90 past days, and of all weeks', async () => {
    const at = { hour: 0, block: 0 }
    for (const start of [0, DAY, 2 * DAY]) await d1.db.batch(insertStandings(d1.db, { period: 'day', start }, [], at))
    await d1.db.batch(insertStandings(d1.db, { period: 'week', start: 0 }, [], at))
    const kept = () =>
      select('SELECT period, start FROM standings ORDER BY period, start').map(row => Object.values(row))
    await d1.db.batch([deleteOldStandings(d1.db, { timestamp: (KEPT_LEADERBOARD_DAYS + 2) * DAY + 100 })])
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

  /** Adds a row to every table, and more candles than one page has. */
  function fill() {
    for (const table of tables()) {
      const columns = select(`SELECT name FROM pragma_table_info('${table}')`)
      d1.sqlite.exec(`INSERT OR IGNORE INTO ${table} VALUES (${columns.map(() => 1).join()})`)
    }
    d1.sqlite.exec(`WITH RECURSIVE n (n) AS (VALUES (2) UNION ALL SELECT n + 1 FROM n WHERE n < 12000)
      INSERT INTO candles SELECT 'a', 3600, n, '1', '1', '1', '1', 1, 1, 1 FROM n`)
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

  it('an index that is discarded keeps files of results and notes if only its cursor is dropped', async () => {
    fill()
    await store.dropCursor()
    expect(await deleteAll()).toBe(3)
    expect(filled().sort()).toEqual(['feedback', 'notes'])
  })
})

it('an owner had an agent before if it still has one that it registered or accepted by then', async () => {
  const owners = ['old', 'young', 'given', 'accepted'].map((_, index) => numberToHex(index + 1, { size: 20 }))
  const [old, young, given, accepted] = owners as [Hex, Hex, Hex, Hex]
  const version = (agentId: number, owner: Hex, timestamp: number, isGiven = 0) => ({
    ...{ agentId, block: timestamp, logIndex: 0, owner, vault: owner, track: 0, status: 1 },
    ...{ given: isGiven, timestamp },
  })
  const versions = [
    version(101, old, 100),
    version(101, old, 900),
    version(102, young, 600),
    version(103, given, 100, 1),
    version(104, accepted, 100, 1),
    version(104, accepted, 200, 0),
  ]
  await d1.db.batch(agentsTable.insert(d1.db, versions))
  expect(await Promise.all(owners.map(owner => readHadAgentBefore(d1.db, owner, 500)))).toEqual([
    true,
    false,
    false,
    true,
  ])
})

it('the list of agents reads only the rows of the page, whatever the filter', async () => {
  const choices = [{}, { vault }, { track: 0 }, { status: 1 }]
  const filters = choices.flatMap(one => choices.flatMap(two => choices.map(three => ({ ...one, ...two, ...three }))))
  for (const filter of filters) {
    d1.ran.length = 0
    await selectAgentPage(d1.db, { ...filter, limit: 1 }).all()
    const [{ sql = '' } = {}] = d1.ran
    const plan = d1.sqlite
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map(({ detail }) => `${detail}`)
    expect(plan).toHaveLength(1) // a second step would sort
    expect(plan[0]).toMatch(/^(SEARCH|SCAN) agents USING (COVERING )?INDEX agents_/)
    for (const column of Object.keys(filter)) expect(plan[0]).toContain(`${column}=?`)
  }
})
