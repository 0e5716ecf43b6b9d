import { evictDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it } from 'vitest'
import { CursorMoved, openStore } from '../../src/history/store.ts'
import { newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { appWith, call, deployment } from '../support/surfaces.ts'

// The index itself, in the database; what the service answers from it is in trades.test.ts and history-property.test.ts.

const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)
const all = async (sql: string, ...values: unknown[]): Promise<Body[]> =>
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
  it('has what the agent did', async () => {
    const { cursor = -1, head = -1 } = await indexer().catchUp()
    expect(cursor).toBeGreaterThan(head - 10)
    const rows = await all(
      'SELECT * FROM trades WHERE agent_id = ? ORDER BY block DESC, log_index DESC',
      Number(trader.agentId),
    )
    const { body } = await call('getTradeHistory', { agentId: trader.agentId })
    expect(rows.map(({ type, transaction_hash, log_index }) => [type, `${transaction_hash}-${log_index}`])).toEqual(
      body.trades.map(({ type, id }: Body) => [type, id]),
    )
    expect(await all('SELECT * FROM positions WHERE position_id = ?', Number(positionId))).toHaveLength(1)
    expect(await all('SELECT owner, until FROM agents WHERE agent_id = ?', Number(trader.agentId))).toEqual([
      { owner: trader.account.address, until: null },
    ])
  })

  it('goes on where it was after an eviction', async () => {
    const before = (await all('SELECT * FROM trades')).length
    await evictDurableObject(indexer())
    await openPosition(trader, { symbol: 'AAPL', usdcAmount: '100' })
    await indexer().catchUp()
    expect(await all('SELECT * FROM trades')).toHaveLength(before + 1)
  })
})

it('a writer that is behind writes nothing, and moves nothing', async () => {
  await indexer().catchUp()
  const [cursor] = await all('SELECT * FROM cursor')
  const store = openStore(env.HISTORY, cursor.scope)
  const place = { block: cursor.block + 1_000_000, logIndex: 0, timestamp: 0 }
  const price = { token: deployment.contracts.USDC, price: 1n, observedAt: 0, ...place }
  const rows = { trades: [], positions: [], agents: [], prices: [price], events: [], blocks: [] }
  const next = { ...cursor, block: place.block, hash: '0x01' as const }
  await expect(store.append({ ...cursor, hash: '0x02' }, next, rows)).rejects.toThrow(CursorMoved)
  expect(await all('SELECT * FROM prices WHERE block = ?', place.block)).toEqual([])
  expect((await all('SELECT block FROM cursor'))[0].block).toBeLessThan(place.block)
})

it('readiness tells how far the index is', async () => {
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

  it('there is no history', async () => {
    const answers = [
      await call('getTradeHistory', { agentId: trader.agentId }, elsewhere),
      await call('listAgentsByOwner', { owner: trader.account.address }, elsewhere),
      await call('listClosedPositions', { agentId: trader.agentId, cursor: 'p9' }, elsewhere),
    ]
    for (const answer of answers)
      expect(answer).toMatchObject({ status: 503, body: { code: 'HISTORY_UNAVAILABLE', retryable: true } })
  })

  it('the newest positions of all agents are looked at for closed ones', async () => {
    const { body } = await call('listClosedPositions', { agentId: trader.agentId }, elsewhere)
    expect(body).toMatchObject({ positions: [{ positionId }], nextCursor: `p${positionId}`, window: 500, lagBlocks: 0 })
  })
})
