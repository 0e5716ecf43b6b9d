import { EMPTY_BOOK } from '@agent-trading-service/protocol/agent-book'
import { numberToHex, zeroHash } from 'viem'
import { expect, it } from 'vitest'
import { createChain, type TradingChain } from '../../src/chain/configured-chain.ts'
import { parseConfig } from '../../src/config/config.ts'
import { openIndexStore } from '../../src/history/store.ts'
import { openedPositions, positionsTable } from '../../src/history/tables/positions.ts'
import { type TradeRow, toTrade, tradesTable } from '../../src/history/tables/trades.ts'
import { createOpenPositions } from '../../src/live/alerts.ts'
import { createAgentVaults, createIndexPublisher } from '../../src/live/index-publisher.ts'
import { readIndexChanges } from '../../src/live/read-index-changes.ts'
import { openEventLog } from '../../src/live/store.ts'
import { createSqliteD1 } from '../support/sqlite-d1.ts'
import { createSqlStorage } from '../support/sqlite-storage.ts'

// What the event log reads from the index, each test with tables of its own.

const addressOf = (id: number) => numberToHex(id, { size: 20 })
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
const [vault, NVDA, AAPL] = [addressOf(101), addressOf(102), addressOf(103)]

/** Creates an empty index. `rowsRead` is the number of rows that the last statement read. */
async function newIndex() {
  const { db, sqlite, ran } = createSqliteD1()
  await openIndexStore(db, 'scope').migrate()
  return {
    db,
    sqlite,
    rowsRead: () => ran.at(-1)?.rows,
    async add(...trades: ReturnType<typeof trade>[]) {
      await db.batch([
        ...tradesTable.insert(
          db,
          trades.map(trade => ({ ...trade, book: EMPTY_BOOK })),
        ),
        ...positionsTable.insert(db, openedPositions(trades)),
      ])
    },
  }
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
    position_pnl_usdc: null,
    oracle_value_usdc: null,
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

it('a read of many changes ends with a block, so that no event of a log follows one without', async () => {
  const { db, sqlite, add } = await newIndex()
  await add(
    ...Array.from({ length: 499 }, (_, logIndex) => trade(11, logIndex, {})),
    ...Array.from({ length: 3 }, (_, logIndex) => trade(12, logIndex, { position_id: 500 + logIndex })),
    trade(13, 0, { position_id: 600 }),
    trade(15, 0, { position_id: 601 }),
  )
  sqlite.exec("INSERT INTO cursor VALUES (1, 'scope', 14, '0x14', 0, 14, 0, '[]', -1)")
  const position = { block: 10, known: undefined, reorg: 0, branch: 0, highestLost: -1, start: 0 }
  const readAfter = async (block: number) => {
    const changes = await readIndexChanges(db, 'scope', { ...position, block })
    if (changes?.kind !== 'events') throw new Error(changes?.kind)
    const { trades, ...rest } = changes
    return { ...rest, count: trades.length, last: Number(trades.at(-1)?.blockNumber) }
  }
  expect(await readAfter(10)).toMatchObject({ block: 12, hash: undefined, isComplete: false, count: 502, last: 12 })
  expect(await readAfter(12)).toMatchObject({ block: 14, hash: '0x14', isComplete: true, count: 1, last: 13 })
})

it('after a reorg only the open positions of agents whose trades it withdrew are read', async () => {
  const { db, sqlite, rowsRead, add } = await newIndex()
  await add(
    ...Array.from({ length: 1_000 }, (_, position_id) => trade(11, position_id, { position_id, agent_id: 2 })),
    trade(12, 0, { position_id: 2_000 }),
    trade(12, 1, { position_id: 2_001, token: AAPL }),
    trade(13, 0, { position_id: 2_000, type: 'PositionReduced', position_pnl_usdc: '0' }),
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
    trade(15, 1, { position_id: 2_001, type: 'PositionReduced', position_pnl_usdc: '0' }),
  ])
  expect(await held(15)).toEqual([[NVDA, 1_001]])
  for (const table of ['trades', 'positions']) sqlite.exec(`DELETE FROM ${table} WHERE block > 12`)
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
})

it('after a reorg below the start of the event log all open positions are read', async () => {
  const { db, sqlite, add } = await newIndex()
  await add(trade(11, 0, { position_id: 1 }))
  sqlite.exec("INSERT INTO cursor VALUES (1, 'scope', 12, '0x12', 0, 12, 0, '[]', -1)")
  const { chain, trading } = parseConfig({
    CHAIN_ID: '31337',
    RPC_URL: 'http://127.0.0.1:1',
    CONTRACTS: JSON.stringify(Object.fromEntries(CONTRACTS.map((name, index) => [name, addressOf(index + 1)]))),
  })
  if (chain === undefined) throw new Error('The variables name no chain.')
  const positions = createOpenPositions(db)
  const { publishChanges } = createIndexPublisher({
    chain: createChain(chain, trading) as TradingChain,
    db,
    indexKey: 'scope',
    eventLog: openEventLog(createSqlStorage()),
    publish: () => {},
    alerts: {
      applyTrades: positions.applyTrades,
      noteAnnouncements: () => {},
      forgetPositions: positions.forget,
      evaluate: async () => ({ events: [], commit: () => {} }),
    },
    agentVaults: createAgentVaults(),
    onAgentsChanged: () => {},
  })
  await publishChanges()
  expect(await positions.markets(12)).toHaveLength(1)
  for (const table of ['trades', 'positions']) sqlite.exec(`DELETE FROM ${table}`)
  sqlite.exec("INSERT INTO reorgs VALUES (1, 10, '0x10', 12, '0x12', 0)")
  await publishChanges()
  expect(await positions.markets(12)).toEqual([])
})
