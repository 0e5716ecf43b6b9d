import {
  createExecutionContext,
  createScheduledController,
  evictDurableObject,
  waitOnExecutionContext,
} from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { workerVars } from '../../devnet/worker-vars.ts'
import { createChain, type TradingChain } from '../../src/chain/configured-chain.ts'
import { parseConfig } from '../../src/config/config.ts'
import { thinOldSamples } from '../../src/history/delete-old-rows.ts'
import { createEquitySampler, openSampleStore, readDueAgents } from '../../src/history/equity-sampler.ts'
import { lastSamplePerInterval } from '../../src/history/read-time-series.ts'
import { openIndexStore } from '../../src/history/store.ts'
import { CursorMoved, type IndexCursor, indexKeyOf } from '../../src/history/tables/cursor.ts'
import worker from '../../src/index.ts'
import { chain, newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { call, deployment } from '../support/surfaces.ts'

const QUARTER = 900
const HOUR = 3_600
const DAY = 24 * HOUR
const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)
const sample = () => indexer().sample()
const history = async (trader: Trader, input: Record<string, unknown> = {}): Promise<Body> => {
  const { status, body } = await call('getEquityHistory', { agentId: trader.agentId, ...input })
  expect({ status, body }).toMatchObject({ status: 200 })
  return body
}
const newest = async (trader: Trader): Promise<Body> => (await history(trader)).points.at(-1)
const riskOf = async ({ agentId }: Trader): Promise<Body> => (await call('getRiskState', { agentId })).body

/** Expects a point to equal the risk state. Nothing but time has passed between the two. */
function expectSameState(point: Body, { equity, pnl, derived, positions }: Body) {
  expect(point).toMatchObject({
    equityUsdc: equity.currentUsdc,
    realizedPnlUsdc: pnl.lifetimeRealizedUsdc,
    unrealizedPnlUsdc: derived.unrealizedPnlUsdc,
    drawdownBps: equity.currentDrawdownBps,
    openCount: positions.openCount,
  })
}

const config = parseConfig(workerVars(deployment))
if (config.chain === undefined) throw new Error('The deployment has no chain.')
const trading = createChain(config.chain, config.trading) as TradingChain
const store = openIndexStore(env.HISTORY, indexKeyOf(trading))

async function readCursor(): Promise<IndexCursor> {
  const cursor = await store.readCursor()
  if (cursor === undefined) throw new Error('The index is empty.')
  return cursor
}

/** Rolls the index back as the indexer would, from the current cursor if the indexer moves it first. */
async function rollBackTo(ancestor: IndexCursor): Promise<void> {
  for (let isDone = false; !isDone; ) {
    const { block: lost, ...from } = await readCursor()
    const reorg = { ancestor: ancestor.block, ancestorHash: ancestor.hash, lost, lostHash: from.hash, at: 0 }
    isDone = await store.rollback({ ...from, block: lost }, ancestor, reorg).then(
      () => true,
      error => {
        if (error instanceof CursorMoved) return false
        throw error
      },
    )
  }
}

it('of an agent that has just traded is not empty', async () => {
  const fresh = await newTrader()
  await openPosition(fresh, { symbol: 'AMZN', usdcAmount: '50' })
  const { points } = await history(fresh)
  expect(points.at(-1)).toMatchObject({ openCount: expect.any(Number) })
})

let trader: Trader
let price: number
beforeAll(async () => {
  price = Number((await call('getPrices', { symbols: 'NVDA' })).body.prices.NVDA.priceUsd)
  trader = await newTrader()
})

describe('the equity history of an agent', () => {
  it('the equity history of an agent starts with its registration', async () => {
    await sample()
    const { points, opening } = await history(trader)
    expect({ count: points.length, opening }).toEqual({ count: 1, opening: null })
    expectSameState(points[0], await riskOf(trader))
  })

  it('the equity history of an agent has a sample after each trade', async () => {
    const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '100' })
    await sample()
    const opened = await newest(trader)
    expect(opened.openCount).toBe(1)
    expectSameState(opened, await riskOf(trader))
    await submit(trader, 'submitReduceIntent', { positionId, exitBps: 2500 })
    await sample()
    expectSameState(await newest(trader), await riskOf(trader))
  })

  it('the equity history of an agent has a sample in each quarter of an hour while a position is open', async () => {
    const before = await newest(trader)
    // First the price, because the indexer may sample on its own as soon as the quarter has begun.
    await chain.setPrice('NVDA', (price * 0.97).toFixed(2))
    await chain.increaseTime(QUARTER)
    await sample()
    const after = await newest(trader)
    expect(Number(after.timestamp)).toBeGreaterThanOrEqual(Number(before.timestamp) + QUARTER)
    expect(BigInt(after.equityUsdc)).toBeLessThan(BigInt(before.equityUsdc))
    expectSameState(after, await riskOf(trader))
  })

  it('the equity history of an agent gets samples from the cron trigger', async () => {
    const before = await newest(trader)
    await chain.increaseTime(QUARTER)
    const execution = createExecutionContext()
    await (worker as ExportedHandler<Env>).scheduled?.(createScheduledController(), env, execution)
    await waitOnExecutionContext(execution)
    expect(Number((await newest(trader)).blockNumber)).toBeGreaterThan(Number(before.blockNumber))
  })

  it('the equity history of an agent has one point for each hour or day with a sample, and none for the others', async () => {
    await chain.increaseTime(3 * HOUR)
    await sample()
    const { points } = await history(trader)
    const hours = points.map(({ timestamp }: Body) => Math.floor(Number(timestamp) / HOUR))
    expect(new Set(hours).size).toBe(hours.length)
    expect(hours.at(-1) - hours.at(-2)).toBeGreaterThanOrEqual(2)
    const days = (await history(trader, { interval: '1d' })).points
    expect(days.at(-1)).toEqual(points.at(-1))
    expect(days.length).toBe(new Set(points.map(({ timestamp }: Body) => Math.floor(Number(timestamp) / DAY))).size)
  })

  it('the equity history of an agent returns the last sample before the range as the opening', async () => {
    const { points } = await history(trader)
    const [first, second] = points.slice(-2)
    const part = await history(trader, { from: second.timestamp, to: second.timestamp })
    expect(part).toMatchObject({ points: [second], opening: first })
    const later = await history(trader, { from: Number(second.timestamp) + 1, to: Number(second.timestamp) + HOUR })
    expect(later).toMatchObject({ points: [], opening: second })
  })

  it('the equity history of an agent values a position with a stale price at the last known price, and marks the point', async () => {
    await chain.increaseTime(2 * 86_400)
    await sample()
    const point = await newest(trader)
    expect(point.priceStale).toBe(true)
    expectSameState(point, await riskOf(trader))
    await chain.refreshPrices()
    await chain.increaseTime(QUARTER)
    await sample()
    expect((await newest(trader)).priceStale).toBe(false)
    await chain.setPrice('NVDA', price)
  })

  it('the equity history of an agent has no new samples of an agent that has no positions and does nothing', async () => {
    const idle = await newTrader()
    await sample()
    const point = await newest(idle)
    await chain.increaseTime(QUARTER)
    await sample()
    expect(await newest(idle)).toEqual(point)
  })

  it.each([
    [{ from: '1000', to: '999' }, 'INVALID_REQUEST'],
    [{ from: '0', to: `${1_000 * HOUR}` }, 'TOO_MANY_POINTS'],
    [{ from: '1790000000000' }, 'INVALID_REQUEST'],
    [{ interval: '1w' }, 'INVALID_REQUEST'],
  ])('the equity history of an agent refuses %o', async (input, code) => {
    const { status, body } = await call('getEquityHistory', { agentId: trader.agentId, ...input })
    expect({ status, code: body.code }).toEqual({ status: 400, code })
  })

  it('the equity history of an agent may have a thousand points', async () => {
    const { status } = await call('getEquityHistory', { agentId: trader.agentId, from: '0', to: `${1_000 * HOUR - 1}` })
    expect(status).toBe(200)
  })

  it('the equity history of an agent reads the same number of rows per interval, however many samples there are', async () => {
    await env.HISTORY.prepare(
      `WITH RECURSIVE n (n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM n WHERE n < 40000)
      INSERT INTO equity (agent_id, timestamp, block, until, vault, cap, used, equity, realized, unrealized, drawdown_bps, open_count, stale)
      SELECT -1, n * 90, n, n + 1, '', '0', '0', n, '0', '0', 0, 0, 0 FROM n`,
    ).run()
    const { results, meta } = await env.HISTORY.prepare(lastSamplePerInterval('equity', 'agent_id'))
      .bind(-1, 0, HOUR, 0, 1_000 * HOUR - 1)
      .all<{ timestamp: number }>()
    expect(results.map(({ timestamp }) => timestamp)).toEqual(
      Array.from({ length: 1_000 }, (_, hour) => (hour + 1) * HOUR - 90),
    )
    expect(meta.rows_read).toBeLessThanOrEqual(5 * 1_000 + 1)
    await env.HISTORY.prepare('DELETE FROM equity WHERE agent_id = -1').run()
  })

  it('the equity history of an agent is refused for an unknown agent', async () => {
    const { status, body } = await call('getEquityHistory', { agentId: '999999' })
    expect({ status, code: body.code }).toEqual({ status: 404, code: 'AGENT_NOT_FOUND' })
  })
})

describe('sampling', () => {
  it('sampling includes the newest trade for each of several concurrent callers', async () => {
    const positionId = await openPosition(trader, { symbol: 'GOOGL', usdcAmount: '20' })
    for (let round = 0; round < 3; round++) {
      await submit(trader, 'submitReduceIntent', { positionId, exitBps: 1000 })
      const sampled = [sample(), indexer().catchUp(), sample(), indexer().catchUp()].map(async call => {
        await call
        return newest(trader)
      })
      const [first, , third] = await Promise.all(sampled)
      const state = await riskOf(trader)
      expectSameState(first, state)
      expectSameState(third, state)
    }
  })

  it('sampling looks again for what is due if a reorg happens meanwhile', async () => {
    const samples = openSampleStore(env.HISTORY, trading)
    const finish = vi.fn(samples.finish)
    const startPass = vi.fn(async (...query: Parameters<typeof samples.startPass>) => {
      const pass = await samples.startPass(...query)
      if (startPass.mock.calls.length === 1) sampler.onReorg()
      return pass
    })
    const sampler = createEquitySampler({
      chain: trading,
      samples: { ...samples, startPass, finish },
      vaults: () => [],
    })
    const cursor = await readCursor()
    expect(await sampler.sampleRound(cursor, async () => undefined)).toBe(true)
    expect({ lookups: startPass.mock.calls.length, finished: finish.mock.calls.length }).toEqual({
      lookups: 1,
      finished: 0,
    })
    await sampler.sampleRound(cursor, async () => undefined)
    expect(startPass).toHaveBeenCalledTimes(2)
  })

  it('sampling leaves an agent that cannot be sampled to the next pass, and samples the others', async () => {
    const ids = [1n, 2n, 3n, 4n, 5n].map(index => BigInt(9e14) + index)
    const failing = ids[2] as bigint
    const samples = openSampleStore(env.HISTORY, trading)
    let page: bigint[] = []
    const sampled: bigint[] = []
    const finish = vi.fn(async () => {})
    const sampler = createEquitySampler({
      chain: trading,
      samples: {
        ...samples,
        finish,
        async readDueAgents(_, { after, limit }) {
          page = ids.filter(id => id > after).slice(0, limit)
          return page
        },
        async write() {
          if (page.includes(failing)) throw new Error('the statement took too long')
          sampled.push(...page)
        },
      },
      vaults: () => [],
    })
    const cursor = await readCursor()
    let failures = 0
    for (let rounds = 0; finish.mock.calls.length === 0 && rounds < 20; rounds++)
      await sampler.sampleRound(cursor, async () => cursor).catch(() => failures++)
    expect(sampled).toEqual(ids.filter(id => id !== failing))
    expect(finish).toHaveBeenCalledExactlyOnceWith(cursor, expect.anything(), [failing])
    expect(failures).toBeLessThan(6)
  })
})

/** Adds samples of agents that do not exist: `at` times, each at a block of its own, with an open position. */
const addSamples = (agentIds: readonly number[], times: readonly number[], isNewest: boolean) =>
  env.HISTORY.prepare(
    `INSERT INTO equity (agent_id, timestamp, block, until, vault, cap, used, equity, realized, unrealized, drawdown_bps, open_count, stale)
    SELECT agent.value, time.value, time.key, ${isNewest ? 'NULL' : 'time.key + 1'}, 'none', '0', '0', '0', '0', '0', 0, 1, 0
    FROM json_each(?1) AS agent CROSS JOIN json_each(?2) AS time`,
  )
    .bind(JSON.stringify(agentIds), JSON.stringify(times))
    .run()
const removeSamples = () => env.HISTORY.prepare("DELETE FROM equity WHERE vault = 'none'").run()

describe('a pass of samples', () => {
  const ids = [1, 2, 3, 4, 5].map(index => 9e14 + index)
  const [first, second, third, fourth, fifth] = ids.map(BigInt)
  const quarter = 4
  const pass = { vaults: [], previous: { changedTo: 1e9, quarter: 3 }, progress: { changedTo: 1e9, quarter } }
  const dueAfter = (after: bigint) => readDueAgents(env.HISTORY, pass, { after, limit: 2 })

  it('a pass of samples reads its agents in pages, and goes on where it was interrupted', async () => {
    const before = BigInt(9e14)
    await addSamples(ids, [quarter * QUARTER - 1], true)
    expect(await dueAfter(before)).toEqual([first, second])
    expect(await dueAfter(second as bigint)).toEqual([third, fourth])
    expect(await dueAfter(fourth as bigint)).toEqual([fifth])
    expect(await dueAfter(fifth as bigint)).toEqual([])
    // Sampled in this quarter of an hour, and no longer due.
    await env.HISTORY.prepare('UPDATE equity SET timestamp = ?1 WHERE agent_id <= ?2 AND agent_id > 9e14')
      .bind(quarter * QUARTER, Number(third))
      .run()
    expect(await dueAfter(before)).toEqual([fourth, fifth])
    await removeSamples()
  })
})

describe('old samples', () => {
  it('old samples are thinned to the last one of each day', async () => {
    const agentId = 9e14
    const times = Array.from({ length: 3 * 24 }, (_, hour) => hour * HOUR)
    await addSamples([agentId], times, false)
    const readTimes = async () => {
      const query = env.HISTORY.prepare('SELECT timestamp FROM equity WHERE agent_id = ?1 ORDER BY timestamp')
      return (await query.bind(agentId).raw<[number]>()).map(([time]) => time)
    }
    const thinAt = async (timestamp: number) => {
      const statements = await thinOldSamples(env.HISTORY, { ...(await readCursor()), timestamp })
      if (statements.length > 0) await env.HISTORY.batch(statements)
    }
    await thinAt(90 * DAY + DAY - 1)
    expect(await readTimes()).toEqual(times)
    await thinAt(92 * DAY)
    expect(await readTimes()).toEqual([23 * HOUR, 47 * HOUR, ...times.slice(48)])
    await thinAt(93 * DAY)
    expect(await readTimes()).toEqual([23 * HOUR, 47 * HOUR, 71 * HOUR])
    await env.HISTORY.prepare('UPDATE sampling SET thinned_to = -1').run()
    await removeSamples()
  })
})

describe('a reorg', () => {
  it('a reorg deletes the samples of its blocks, and what they showed is sampled again', async () => {
    await submit(trader, 'submitTradeIntent', { symbol: 'AAPL', usdcAmount: '50' })
    await sample()
    const kept = await newest(trader)
    const cursor = await readCursor()
    await submit(trader, 'submitTradeIntent', { symbol: 'MSFT', usdcAmount: '50' })
    await sample()
    const lost = await newest(trader)
    expect(Number(lost.blockNumber)).toBeGreaterThan(cursor.block)

    await rollBackTo(cursor)
    const [keptBlock, lostBlock] = [Number(kept.blockNumber), Number(lost.blockNumber)]
    const { results } = await env.HISTORY.prepare(
      'SELECT block FROM equity WHERE agent_id = ?1 AND block IN (?2, ?3) AND until IS NOT ?3',
    )
      .bind(Number(trader.agentId), keptBlock, lostBlock)
      .all()
    expect(results).toEqual([{ block: keptBlock }])

    await evictDurableObject(indexer())
    await sample()
    const again = await newest(trader)
    expect(again.openCount).toBe(lost.openCount)
    expect(Number(again.blockNumber)).toBeGreaterThanOrEqual(Number(lost.blockNumber))
  })
})
