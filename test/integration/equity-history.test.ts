import { evictDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { chain, FRONTIER, newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { equityAt, lensEquityAt, worthAt } from '../support/chain-past.ts'
import { node } from '../support/history-oracle.ts'
import { call, deployment } from '../support/surfaces.ts'

const HOUR = 3_600
const DAY = 24 * HOUR
const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)
const history = async (trader: Trader, input: Record<string, unknown> = {}): Promise<Body> => {
  const { status, body } = await call('getEquityHistory', { agentId: trader.agentId, ...input })
  expect({ status, body }).toMatchObject({ status: 200, body: { lagBlocks: 0 } })
  return body
}
const newest = async (trader: Trader): Promise<Body> => (await history(trader)).points.at(-1)
const riskOf = async ({ agentId }: Trader): Promise<Body> => (await call('getRiskState', { agentId })).body

/** Expects a point to equal a risk state. Nothing but time has passed between the two. */
function expectSameState(point: Body, { equity, pnl, derived, positions }: Body) {
  expect(point).toMatchObject({
    equityUsdc: equity.currentUsdc,
    realizedPnlUsdc: pnl.lifetimeRealizedUsdc,
    unrealizedPnlUsdc: derived.unrealizedPnlUsdc,
    drawdownBps: equity.currentDrawdownBps,
    openCount: positions.openCount,
  })
}

/** Expects every point but the last to equal what the contracts said at its time. */
async function expectExact({ agentId }: Trader, points: readonly Body[]) {
  for (const { timestamp, blockNumber: _, priceStale: __, ...figures } of points.slice(0, -1))
    expect({ timestamp, ...figures }).toEqual({ timestamp, ...(await equityAt(agentId, Number(timestamp))) })
}

let trader: Trader
let price: number
let positionId: string
beforeAll(async () => {
  price = Number((await call('getPrices', { symbols: 'NVDA' })).body.prices.NVDA.priceUsd)
  trader = await newTrader({ vault: FRONTIER })
})

describe('the equity history of an agent', () => {
  it('the equity history of an agent starts with its registration', async () => {
    const { points, opening } = await history(trader)
    expect({ count: points.length, opening }).toEqual({ count: 1, opening: null })
    expectSameState(points[0], await riskOf(trader))
  })

  it('the equity history of an agent ends with the risk state of the same block, after each trade at once', async () => {
    positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '100' })
    expectSameState(await newest(trader), await riskOf(trader))
    await submit(trader, 'submitReduceIntent', { positionId, exitBps: 2500 })
    expectSameState(await newest(trader), await riskOf(trader))
  })

  it('the equity history of an agent has a point at the end of each interval, exact to the unit', async () => {
    await openPosition(trader, { symbol: 'META', usdcAmount: '50' })
    for (const ratio of [0.98, 0.99, 1.01]) {
      await chain.setPrice('NVDA', (price * ratio).toFixed(2))
      await chain.increaseTime(2 * HOUR)
      await submit(trader, 'submitReduceIntent', { positionId, exitBps: 1_000 })
    }
    const { points } = await history(trader)
    const hours = points.map(({ timestamp }: Body) => Math.floor(Number(timestamp) / HOUR))
    expect(hours).toEqual(hours.map((_: number, index: number) => hours[0] + index))
    expect(points.slice(0, -1).every(({ timestamp }: Body) => Number(timestamp) % HOUR === HOUR - 1)).toBe(true)
    await expectExact(trader, points)
    const fresh = points.findLast(({ priceStale, timestamp }: Body) => !priceStale && Number(timestamp) % HOUR !== 0)
    expect(BigInt(fresh.equityUsdc)).toBe(await lensEquityAt(trader.agentId, Number(fresh.timestamp)))
    const days = (await history(trader, { interval: '1d' })).points
    expect(days.length).toBe(new Set(points.map(({ timestamp }: Body) => Math.floor(Number(timestamp) / DAY))).size)
    expectSameState(days.at(-1), await riskOf(trader))
    const minutes = (await history(trader, { interval: '5m' })).points.slice(-30)
    expect(minutes.slice(0, -1).every(({ timestamp }: Body) => Number(timestamp) % 300 === 299)).toBe(true)
    await expectExact(trader, minutes)
  })

  it('the equity history of an agent is the same once its hours are final, and its posts are in the candles', async () => {
    const to = Number((await newest(trader)).timestamp) - HOUR
    const before = await history(trader, { to })
    await chain.increaseTime(2 * HOUR)
    await node.request({ method: 'anvil_mine', params: ['0x80', '0x1'] } as never)
    await indexer().wake() // only an object that runs can be evicted, and a new one asks for finality at once
    await evictDurableObject(indexer())
    const foldedTo = () => env.HISTORY.prepare('SELECT max(hour) AS hour FROM track_records').first<number>('hour')
    await vi.waitFor(
      async () => {
        await indexer().fold() // takes several calls on a busy machine
        expect(((await foldedTo()) ?? 0) * HOUR).toBeGreaterThan(to)
      },
      { timeout: 120_000 },
    )
    expect((await history(trader, { to })).points).toEqual(before.points)
    // As if the posts had been deleted; the audit of the index, which knows posts by their place, would add deleted
    // ones again.
    const nobody = '0x000000000000000000000000000000000000dEaD'
    const expire = [
      `CREATE TABLE expired AS SELECT block, log_index, token FROM prices WHERE timestamp <= ${to}`,
      `UPDATE prices SET token = '${nobody}' WHERE timestamp <= ${to}`,
    ]
    await env.HISTORY.batch(expire.map(sql => env.HISTORY.prepare(sql)))
    expect((await history(trader, { to })).points).toEqual(before.points)
    const restore = [
      `UPDATE prices SET token = expired.token FROM expired
        WHERE prices.block = expired.block AND prices.log_index = expired.log_index AND prices.token = '${nobody}'`,
      'DROP TABLE expired',
    ]
    await env.HISTORY.batch(restore.map(sql => env.HISTORY.prepare(sql)))
  })

  it('the equity history of an agent returns the point before the range as the opening', async () => {
    await chain.refreshPrices()
    const [first, second] = (await history(trader)).points.slice(-3)
    const part = await history(trader, { from: second.timestamp, to: second.timestamp })
    expect(part).toMatchObject({ points: [second], opening: first })
    const later = await history(trader, { from: Number(second.timestamp) + 1, to: Number(second.timestamp) + 2 })
    expect(later).toMatchObject({ points: [], opening: second })
  })

  it('the equity history of an agent values a position with a stale price at the last known price, and marks the point', async () => {
    await chain.increaseTime(2 * DAY)
    const points = (await history(trader, { interval: '1d' })).points
    expect(points.slice(-2).map(({ priceStale }: Body) => priceStale)).toEqual([true, true])
    expectSameState(points.at(-1), await riskOf(trader))
    await expectExact(trader, points)
    await chain.refreshPrices()
    expect((await newest(trader)).priceStale).toBe(false)
    await chain.setPrice('NVDA', price)
  })

  it('the equity history of an agent reads as many rows for an interval, however many trades are in it', async () => {
    const agentId = Number(trader.agentId)
    const { points } = await history(trader)
    const time = Number(points[0].timestamp) - HOUR * 20
    await env.HISTORY.prepare(
      `WITH RECURSIVE n (n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM n WHERE n < 20000)
      INSERT INTO trades (agent_id, block, log_index, position_id, type, source, token, vault, transaction_hash, timestamp, book)
      SELECT ?1, 0, n, -1, 'ExitLadderUpdated', 'intent', '', '', '', ?2 + n / 1000, '["0","0","0"]' FROM n`,
    )
      .bind(agentId, time)
      .run()
    const { results, meta } = await env.HISTORY.prepare(
      `SELECT 1 FROM json_each(?2) AS asked CROSS JOIN trades
      ON agent_id = ?1 AND (block, log_index) = (
        SELECT block, log_index FROM trades INDEXED BY trades_time WHERE agent_id = ?1 AND timestamp <= asked.value
        ORDER BY timestamp DESC, block DESC, log_index DESC LIMIT 1)`,
    )
      .bind(agentId, JSON.stringify(Array.from({ length: 168 }, (_, hour) => time + hour * HOUR)))
      .all()
    expect(results).toHaveLength(168)
    expect(meta.rows_read).toBeLessThanOrEqual(5 * 168)
    await env.HISTORY.prepare('DELETE FROM trades WHERE position_id = -1').run()
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

  it('the equity history of an agent is refused for an unknown agent', async () => {
    const { status, body } = await call('getEquityHistory', { agentId: '999999' })
    expect({ status, code: body.code }).toEqual({ status: 404, code: 'AGENT_NOT_FOUND' })
  })
})

describe('the share prices of a vault', () => {
  it.each(['genesis', 'frontier'])('the share prices of %s are exact at the end of each hour', async id => {
    const { body } = await call('getVaultStats', { id })
    expect(body.sharePrices.length).toBeGreaterThan(50)
    for (const { timestamp, blockNumber: _, ...worth } of body.sharePrices.slice(0, -1).slice(-20))
      expect({ timestamp, ...worth }).toEqual({
        timestamp,
        ...(await worthAt(deployment.vaults[id] as `0x${string}`, Number(timestamp))),
      })
    const newest = body.sharePrices.at(-1)
    // `asOf` is the oldest block that was read, and one may have come in between.
    expect(Number(newest.blockNumber)).toBeGreaterThanOrEqual(Number(body.asOf.blockNumber))
    expect(newest).toMatchObject({
      sharePriceUsdc: body.sharePriceUsdc,
      totalAssets: body.totalAssets,
      totalShares: body.totalShares,
    })
  })
})
