import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { zeroHash } from 'viem'
import { expect, it } from 'vitest'
import { createChain, type TradingChain } from '../../src/chain/configured-chain.ts'
import { parseConfig } from '../../src/config/config.ts'
import { migrations } from '../../src/generated/migrations.ts'
import { openedPositions, positionsTable } from '../../src/history/tables/positions.ts'
import { type TradeRow, toTrade, tradesTable } from '../../src/history/tables/trades.ts'
import { createOpenPositions } from '../../src/live/alerts.ts'
import { createAgentVaults, createIndexPublisher } from '../../src/live/index-publisher.ts'
import { readIndexChanges } from '../../src/live/read-index-changes.ts'
import { openEventLog } from '../../src/live/store.ts'
import { deployment } from '../support/surfaces.ts'

// What the event log reads from the index, each test with tables of its own in the storage of a Durable Object.

const vault = deployment.vaults.genesis as `0x${string}`
const NVDA = deployment.tokens.NVDA as `0x${string}`
const AAPL = deployment.tokens.AAPL as `0x${string}`

type Index = { db: D1Database; sql: SqlStorage; add: (...trades: ReturnType<typeof trade>[]) => Promise<void> }

/** Runs a test on an empty index. `rowsRead` is the number of rows that the last statement read. */
function withIndex(name: string, test: (index: Index & { rowsRead: () => number }) => Promise<void>): Promise<void> {
  return runInDurableObject(env.EVENT_STREAMS.getByName(name), async (_, { storage: { sql } }) => {
    for (const { statements } of migrations) for (const statement of statements) sql.exec(statement)
    let rowsRead = 0
    const prepare = (query: string, values: SqlStorageValue[] = []) => ({
      bind: (...bound: SqlStorageValue[]) => prepare(query, bound),
      async all() {
        const cursor = sql.exec(query, ...values)
        const results = cursor.toArray()
        rowsRead = cursor.rowsRead
        return { results }
      },
    })
    const batch = (statements: ReturnType<typeof prepare>[]) => Promise.all(statements.map(({ all }) => all()))
    const session = { prepare: (query: string) => prepare(query), batch }
    const db = { ...session, withSession: () => session } as unknown as D1Database
    await test({
      db,
      sql,
      rowsRead: () => rowsRead,
      async add(...trades) {
        await db.batch([...tradesTable.insert(db, trades), ...positionsTable.insert(db, openedPositions(trades))])
      },
    })
  })
}

function trade(block: number, logIndex: number, facts: Partial<TradeRow>) {
  return toTrade({
    agent_id: 1,
    block,
    log_index: logIndex,
    position_id: logIndex,
    type: 'PositionOpened',
    source: 'intent',
    token: NVDA,
    vault,
    usdc_amount: null,
    token_amount: null,
    price_usdc: null,
    realized_pnl_usdc: null,
    exit_bps: null,
    rule_index: null,
    trigger_type: null,
    trigger_bps: null,
    transaction_hash: zeroHash,
    timestamp: 0,
    capital_mode: null,
    ...facts,
  })
}

it('a read of many changes ends with a block, so that no event of a log follows one without', () =>
  withIndex('changes', async ({ db, sql, add }) => {
    await add(
      ...Array.from({ length: 499 }, (_, logIndex) => trade(11, logIndex, {})),
      ...Array.from({ length: 3 }, (_, logIndex) => trade(12, logIndex, { position_id: 500 + logIndex })),
      trade(13, 0, { position_id: 600 }),
      trade(15, 0, { position_id: 601 }),
    )
    sql.exec("INSERT INTO cursor VALUES (1, 'scope', 14, '0x14', 0, 14, 0, -1)")
    const position = { block: 10, hash: undefined, reorg: 0, branch: 0, highestLost: -1, start: 0 }
    const readAfter = async (block: number) => {
      const changes = await readIndexChanges(db, 'scope', { ...position, block })
      if (changes?.kind !== 'events') throw new Error(changes?.kind)
      const { trades, ...rest } = changes
      return { ...rest, count: trades.length, last: Number(trades.at(-1)?.blockNumber) }
    }
    expect(await readAfter(10)).toMatchObject({ block: 12, hash: undefined, isComplete: false, count: 502, last: 12 })
    expect(await readAfter(12)).toMatchObject({ block: 14, hash: '0x14', isComplete: true, count: 1, last: 13 })
  }))

it('after a reorg only the open positions of agents whose trades it withdrew are read', () =>
  withIndex('positions', async ({ db, sql, rowsRead, add }) => {
    await add(
      ...Array.from({ length: 1_000 }, (_, position_id) => trade(11, position_id, { position_id, agent_id: 2 })),
      trade(12, 0, { position_id: 2_000 }),
      trade(12, 1, { position_id: 2_001, token: AAPL }),
      trade(13, 0, { position_id: 2_000, type: 'PositionClosed' }),
      // The index is ahead of the log.
      trade(15, 0, { position_id: 2_002 }),
    )
    const positions = createOpenPositions(db)
    const held = async (through: number) =>
      (await positions.markets(through)).map(({ token, agents }) => [token, agents.size])
    expect(await held(14)).toEqual([
      [NVDA, 1_000],
      [AAPL, 1],
    ])
    positions.applyTrades([
      trade(15, 0, { position_id: 2_002 }),
      trade(15, 1, { position_id: 2_001, type: 'PositionClosed' }),
    ])
    expect(await held(15)).toEqual([[NVDA, 1_001]])
    for (const table of ['trades', 'positions']) sql.exec(`DELETE FROM ${table} WHERE block > 12`)
    positions.forget([1])
    expect(await held(12)).toEqual([
      [NVDA, 1_001],
      [AAPL, 1],
    ])
    expect(rowsRead()).toBeLessThan(20)
    const nvda = (await positions.markets(12)).find(({ token }) => token === NVDA)
    expect(nvda?.agents.get(2_000n)).toBe(1)
    expect(nvda?.agents.has(2_002n)).toBe(false)
    positions.forget('all')
    expect(await held(11)).toEqual([[NVDA, 1_000]])
  }))

it('after a reorg below the start of the event log all open positions are read', () =>
  withIndex('a late start', async ({ db, sql, add }) => {
    await add(trade(11, 0, { position_id: 1 }))
    sql.exec("INSERT INTO cursor VALUES (1, 'scope', 12, '0x12', 0, 12, 0, -1)")
    const config = parseConfig({ ...env })
    if (config.chain === undefined || config.trading === undefined) throw new Error('no trading contracts')
    const positions = createOpenPositions(db)
    const { publishChanges } = createIndexPublisher({
      chain: createChain(config.chain, config.trading) as TradingChain,
      db,
      indexKey: 'scope',
      eventLog: openEventLog(sql),
      publish: () => {},
      alerts: {
        applyTrades: positions.applyTrades,
        forgetPositions: positions.forget,
        evaluate: async () => ({ events: [], commit: () => {} }),
      },
      agentVaults: createAgentVaults(),
      onAgentsChanged: () => {},
    })
    await publishChanges()
    expect(await positions.markets(12)).toHaveLength(1)
    for (const table of ['trades', 'positions']) sql.exec(`DELETE FROM ${table}`)
    sql.exec("INSERT INTO reorgs VALUES (1, 10, '0x10', 12, '0x12', 0)")
    await publishChanges()
    expect(await positions.markets(12)).toEqual([])
  }))
