import { evictDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { numberToHex } from 'viem'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { workerVars } from '../../devnet/worker-vars.ts'
import { parseConfig } from '../../src/config.ts'
import { createContext } from '../../src/context.ts'
import { CursorMoved } from '../../src/history/commit-at-cursor.ts'
import { openIndexStore } from '../../src/history/store.ts'
import { logLagOnSchedule } from '../../src/operations/scheduled-lag-alert.ts'
import { newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { appWith, call, deployment } from '../support/surfaces.ts'

// The index in the database. trades.test.ts and history-property.test.ts test what the API returns from it.

const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)
const select = async (sql: string, ...values: unknown[]): Promise<Body[]> =>
  (
    await env.HISTORY.prepare(sql)
      .bind(...values)
      .all()
  ).results

let trader: Trader
let positionId: string

beforeAll(async () => {
  trader = await newTrader()
  positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '100' })
  await submit(trader, 'submitReduceIntent', { positionId, exitBps: 2500 })
  await submit(trader, 'submitReduceIntent', { positionId, exitBps: 10000 })
})

describe('the index', () => {
  it('has the trades, the position and the owner of an agent', async () => {
    const { cursor = -1, head = -1 } = await indexer().catchUp()
    expect(cursor).toBeGreaterThan(head - 10)
    const rows = await select(
      'SELECT * FROM trades WHERE agent_id = ? ORDER BY block DESC, log_index DESC',
      Number(trader.agentId),
    )
    const { body } = await call('getTradeHistory', { agentId: trader.agentId })
    expect(rows.map(({ type, transaction_hash, log_index }) => [type, `${transaction_hash}-${log_index}`])).toEqual(
      body.trades.map(({ type, id }: Body) => [type, id]),
    )
    expect(await select('SELECT * FROM positions WHERE position_id = ?', Number(positionId))).toHaveLength(1)
    expect(await select('SELECT owner, until FROM agents WHERE agent_id = ?', Number(trader.agentId))).toEqual([
      { owner: trader.account.address, until: null },
    ])
  })

  it('resumes at the cursor after an eviction', async () => {
    const before = (await select('SELECT * FROM trades')).length
    await evictDurableObject(indexer())
    await openPosition(trader, { symbol: 'AAPL', usdcAmount: '100' })
    await indexer().catchUp()
    expect(await select('SELECT * FROM trades')).toHaveLength(before + 1)
  })

  it('takes nothing from the receipt of a transaction without trades', async () => {
    const { cursor = 0 } = await indexer().catchUp()
    const log = {
      address: deployment.contracts.PriceOracle,
      topics: [`0x${'00'.repeat(32)}`] as [`0x${string}`],
      data: '0x' as const,
      blockNumber: numberToHex(cursor + 1_000),
      blockHash: `0x${'11'.repeat(32)}` as const,
      transactionHash: `0x${'22'.repeat(32)}` as const,
      transactionIndex: '0x0' as const,
      logIndex: '0x0' as const,
      removed: false,
    }
    await expect(indexer().addRelayed([log])).resolves.toBeUndefined()
  })
})

it('rejects a writer with an outdated cursor, and keeps rows and cursor', async () => {
  await indexer().catchUp()
  const [cursor] = await select('SELECT * FROM cursor')
  const store = openIndexStore(env.HISTORY, cursor.scope)
  const block = cursor.block + 1_000_000
  const price = { token: deployment.contracts.USDC, block, logIndex: 0, price: 1n, observedAt: 0, timestamp: 0 }
  const rows = { trades: [], positions: [], agents: [], prices: [price], events: [], blocks: [] }
  const next = { ...cursor, block, hash: '0x01' as const }
  await expect(store.append({ ...cursor, hash: '0x02' }, next, rows)).rejects.toThrow(CursorMoved)
  expect(await select('SELECT * FROM prices WHERE block = ?', block)).toEqual([])
  expect((await select('SELECT block FROM cursor'))[0].block).toBeLessThan(block)
})

it('a log line tells of an index that is far behind, and of a chain that is', async () => {
  const context = createContext(parseConfig(workerVars(deployment)), env)
  const lines: string[] = []
  const spy = vi.spyOn(console, 'error').mockImplementation(line => void lines.push(String(line)))
  const events = () => lines.map(line => (JSON.parse(line) as { event: string }).event)
  await vi.waitFor(
    async () => {
      // The indexer moves the cursor back within a second.
      await env.HISTORY.prepare('UPDATE cursor SET timestamp = timestamp - 1000').run()
      await logLagOnSchedule(context)
      expect(events()).toContain('index lag')
    },
    { timeout: 30_000 },
  )
  await logLagOnSchedule(context, Date.now() + 365 * 86_400_000)
  spy.mockRestore()
  expect(events()).toContain('chain lag')
  await vi.waitFor(async () => void (await indexer().catchUp()), { timeout: 30_000 })
})

it('readiness reports how far the index is behind', async () => {
  const { cursor } = await indexer().catchUp()
  const { status, body } = await call('getReadiness')
  const { history } = body.details ?? body
  expect({ status, history }).toMatchObject({ status: 200, history: { headBlock: body.rpc.blockNumber } })
  expect(Number(history.cursor)).toBeGreaterThanOrEqual(cursor ?? 0)
  expect(history.lagBlocks).toBe(Math.max(0, Number(history.headBlock) - Number(history.cursor)))
})

describe('without an index of the same contracts', () => {
  const { contracts, accounts } = deployment
  const elsewhere = appWith({
    CONTRACTS: JSON.stringify({ ...contracts, TradeRouter: accounts.relayer.address }),
  })

  it('reads of the history are refused', async () => {
    const responses = [
      await call('getTradeHistory', { agentId: trader.agentId }, elsewhere),
      await call('listAgentsByOwner', { owner: trader.account.address }, elsewhere),
      await call('listClosedPositions', { agentId: trader.agentId, cursor: 'p9' }, elsewhere),
    ]
    for (const response of responses)
      expect(response).toMatchObject({ status: 503, body: { code: 'HISTORY_UNAVAILABLE', retryable: true } })
  })

  it('closed positions are found among the newest positions of all agents', async () => {
    const { body } = await call('listClosedPositions', { agentId: trader.agentId }, elsewhere)
    expect(body).toMatchObject({ positions: [{ positionId }], nextCursor: `p${positionId}`, window: 500, lagBlocks: 0 })
  })
})
