import { env } from 'cloudflare:workers'
import { addHour, figuresOf, openScore, type Score } from '@agent-trading-service/protocol/leaderboard-formulas'
import { periodEnd, periodStart } from '@agent-trading-service/protocol/leaderboard-period'
import { csvParse } from 'd3-dsv'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chain, FRONTIER, newTrader, openPosition, registrationOf, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { createScene } from '../support/scene.ts'
import { call, deployment, type Input, request } from '../support/surfaces.ts'

const fold = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).fold()
let onPaper: Trader
let sibling: Trader
let funded: Trader
let siblingPosition: string

beforeAll(async () => {
  // Early in an hour: a track record is extended when one begins.
  const { asOf } = (await call('getPrices')).body
  await chain.increaseTime(3_660 - (Number(asOf.blockTimestamp) % 3_600))
  await chain.refreshPrices()
  onPaper = await newTrader({ name: 'on paper' })
  const { body } = await call('registerAgent', await registrationOf(onPaper.account))
  sibling = { agentId: body.agentId, account: onPaper.account }
  funded = await newTrader({ vault: FRONTIER })
  const positionId = await openPosition(onPaper, { symbol: 'NVDA', usdcAmount: '250' })
  await submit(onPaper, 'submitReduceIntent', { positionId, exitBps: 10_000 })
  siblingPosition = await openPosition(sibling, { symbol: 'AAPL', usdcAmount: '100' })
  await openPosition(funded, { symbol: 'NVDA', usdcAmount: '250' })
  await fold()
})
afterAll(() => chain.refreshPrices())

/** Indexes up to the head before it reads, so that both surfaces show one block. */
async function leaderboard(input: Input = {}): Promise<Body> {
  await fold()
  const { status, body } = await call('getLeaderboard', { limit: 100, ...input })
  expect({ status, body }).toMatchObject({ status: 200 })
  return body
}
const entryOf = ({ entries }: Body, { agentId }: Trader): Body =>
  entries.find((entry: Body) => entry.agentId === agentId)

describe('the leaderboard', () => {
  it('the leaderboard has the result of each agent, and marks agents of one owner', async () => {
    const board = await leaderboard()
    expect(board).toMatchObject({ period: 'week', sort: 'return', minTrades: 1 })
    expect(Number(board.periodEnd) - Number(board.periodStart)).toBe(604_800)
    const entry = entryOf(board, onPaper)
    const { body } = await call('getTradeHistory', { agentId: onPaper.agentId })
    const sale = body.trades.find(({ type }: Body) => type === 'PositionReduced')
    expect(entry).toMatchObject({
      name: 'on paper',
      owner: onPaper.account.address,
      agentsOfOwner: 2,
      capital: 'simulated',
      trackName: 'CHALLENGE',
      trades: 2,
      pnlUsdc: sale.realizedPnlUsdc,
      lastSample: sale.timestamp,
    })
    expect(entryOf(board, funded)).toMatchObject({ capital: 'real', agentsOfOwner: 1, trades: 1 })
    expect(board.entries.map(({ rank }: Body) => rank)).toEqual(
      board.entries.map((_: Body, index: number) => index + 1),
    )
  })

  it('the leaderboard filters by capital, vault, track and minTrades', async () => {
    for (const [filter, listed, left] of [
      [{ capital: 'real' }, funded, onPaper],
      [{ capital: 'simulated' }, onPaper, funded],
      [{ vault: 'frontier' }, funded, onPaper],
      [{ minTrades: 2 }, onPaper, funded],
      [{ track: 'challenge' }, onPaper, undefined],
    ] as const) {
      const board = await leaderboard(filter)
      expect(entryOf(board, listed)).toBeDefined()
      if (left) expect(entryOf(board, left)).toBeUndefined()
    }
    expect((await leaderboard({ track: 'prime' })).entries).toEqual([])
    expect((await leaderboard({ at: '1000000000' })).entries).toEqual([])
  })

  it.each(['return', 'drawdown', 'calmar', 'sharpe'])(
    'the leaderboard sorted by %s is the same in pages as in one list',
    async sort => {
      const { entries } = await leaderboard({ sort })
      const limit = Math.ceil(entries.length / 4) // the agents of other files are listed too
      const pages: Body[] = []
      let cursor: string | undefined
      do {
        const page = await leaderboard({ sort, limit, ...(cursor && { cursor }) })
        pages.push(...page.entries)
        cursor = page.nextCursor ?? undefined
        // What changes while the pages are read does not change them.
        if (pages.length > limit) continue
        await submit(sibling, 'submitReduceIntent', { positionId: siblingPosition, exitBps: 1_000 })
        await fold()
      } while (cursor !== undefined)
      // Blocks follow while the list and the first page are read.
      const resultsOf = (list: Body[]) => list.map(({ sampleBlock: _, lastSample: __, ...result }) => result)
      expect(resultsOf(pages)).toEqual(resultsOf(entries))
      expect(new Set(pages.map(({ sampleBlock }) => sampleBlock)).size).toBe(1)
    },
  )

  it('the leaderboard has the last 90 days, and refuses days before', async () => {
    const now = Number((await leaderboard()).asOf.blockTimestamp)
    const newest = await leaderboard({ period: 'day', at: now - 89 * 86_400 })
    expect(newest.entries).toEqual([])
    const { status, body } = await call('getLeaderboard', { period: 'day', at: now - 92 * 86_400 })
    expect({ status, body }).toMatchObject({
      status: 400,
      body: { code: 'INVALID_REQUEST', details: { problems: [{ path: 'at' }] } },
    })
    expect(await leaderboard({ period: 'week', at: now - 92 * 86_400 })).toMatchObject({ entries: [] })
  })

  it('the leaderboard names the hours without a price', async () => {
    const before = entryOf(await leaderboard({ period: 'all' }), funded)
    await chain.increaseTime(3 * 3_600)
    await fold()
    const entry = entryOf(await leaderboard({ period: 'all' }), funded)
    expect(entry.gapHours).toBeGreaterThanOrEqual(before.gapHours + 2)
    const [from, to] = entry.gaps.at(-1).split('/').map(Number)
    expect(to - from).toBeGreaterThanOrEqual(2 * 3_600)
    await chain.refreshPrices()
  })

  it('the leaderboard is CSV with the fields of the JSON', async () => {
    const response = await request('/leaderboard?format=csv&limit=2&period=all')
    const rows = csvParse(await response.text())
    const { entries } = await leaderboard({ limit: 2, period: 'all' })
    expect(rows.columns).toEqual(Object.keys(entries[0]))
    expect(rows.map(({ agentId, returnPpm }) => ({ agentId, returnPpm }))).toEqual(
      entries.map(({ agentId, returnPpm }: Body) => ({ agentId, returnPpm: `${returnPpm}` })),
    )
    expect(response.headers.get('link')).toMatch(/cursor=l\.[\d.-]+.*; rel="next"/)
  })

  it.each([
    { cursor: 'l.1.2' },
    { cursor: 'l.0.0.0.0.0.0.0.0' },
    { minTrades: -1 },
    { period: 'year' },
    { capital: 'x' },
  ])('the leaderboard refuses %o', async input => {
    expect(await call('getLeaderboard', input)).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } })
  })
})

describe('the formulas', () => {
  const hourly = (pnls: readonly bigint[], cap = 1_000_000n): Score => {
    const samples = pnls.map((pnl, hour) => ({
      hour,
      from: hour * 3_600,
      at: hour,
      pnl,
      value: cap / 2n,
      cap,
      trades: 1,
      isGap: hour % 3 === 0,
    }))
    const [first] = samples
    if (first === undefined) throw new Error('There is no hour.')
    return samples.reduce(addHour, openScore(0, first))
  }

  it('the formulas add the hourly returns up, and measure the fall from the peak', () => {
    // 1 %, -2 %, 0.5 %: from 1.01 down to 0.99.
    expect(figuresOf(hourly([10_000n, -20_000n, 5_000n]))).toEqual({
      returnPpm: -5_000,
      drawdownPpm: 19_801,
      calmarMilli: -252,
      sharpeMilli: null,
    })
  })

  it('the formulas annualize the ratio of mean and deviation of at least twelve hours', () => {
    const pnls = Array.from({ length: 12 }, (_, hour) => (hour % 2 === 0 ? 2_000n : -1_000n))
    const returns = pnls.map(pnl => Number(pnl) / 1e6)
    const mean = returns.reduce((sum, value) => sum + value, 0) / 12
    const deviation = Math.sqrt(returns.reduce((sum, value) => sum + (value - mean) ** 2, 0) / 11)
    const expected = Math.floor((mean / deviation) * Math.sqrt(8_760) * 1_000)
    expect(figuresOf(hourly(pnls)).sharpeMilli).toBe(expected)
    expect(figuresOf(hourly(pnls.map(pnl => -pnl))).sharpeMilli).toBe(-expected)
  })

  it('the formulas give no ratio without a drawdown or a deviation', () => {
    expect(figuresOf(hourly(Array.from({ length: 20 }, () => 1_000n)))).toMatchObject({
      drawdownPpm: 0,
      calmarMilli: null,
      sharpeMilli: null,
    })
    expect(figuresOf(hourly([5n], 0n))).toMatchObject({ returnPpm: 0 })
  })

  it('the formulas name gaps as ranges of hours', () => {
    expect(hourly([0n, 0n, 0n, 0n])).toMatchObject({
      gapHours: 2,
      gaps: [
        [0, 0],
        [3, 3],
      ],
    })
  })

  it('the formulas bound periods in UTC', () => {
    const time = Date.UTC(2026, 1, 28, 23, 59, 59) / 1_000 // a Saturday
    expect(periodStart('day', time)).toBe(Date.UTC(2026, 1, 28) / 1_000)
    expect(periodStart('week', time)).toBe(Date.UTC(2026, 1, 23) / 1_000)
    expect(periodEnd('month', periodStart('month', time))).toBe(Date.UTC(2026, 2, 1) / 1_000)
    expect(periodEnd('all', periodStart('all', time))).toBeUndefined()
  })
})

describe('a shared link to an agent or a vault', () => {
  const titleOf = async (path: string, headers: Record<string, string> = {}) => {
    const html = await (await request(path, { headers: { accept: 'text/html', ...headers } })).text()
    return /<meta property="og:title" content="([^"]*)">/.exec(html)?.[1]
  }

  it('a shared link shows the name, escaped and cut, and the return, and browsers do not wait for it', async () => {
    const name = `"><script>alert(1)</script>${'n'.repeat(60)}`
    const hostile = await createScene('http://127.0.0.1', deployment).register(0, name) // without the API's rules for names
    await openPosition(hostile, { symbol: 'NVDA', usdcAmount: '25' })
    await fold()
    const path = `/app/agents/${hostile.agentId}`
    expect(await titleOf(path, { 'sec-fetch-dest': 'document' })).toBe(`Agent ${hostile.agentId}`)
    const title = await titleOf(path)
    expect(title).toMatch(/^&quot;>&lt;script>alert\(1\)&lt;\/script>n{12}…: -?[\d.]+ % · Agent \d+$/)
    expect(await titleOf('/app/vaults/frontier')).toMatch(/^Frontier(: [+-]?[\d.]+ %)? · Vault frontier$/)
  })

  it('a page without figures has the title of its path', async () => {
    expect(await titleOf('/app/agents/999999')).toBe('Agent 999999')
    expect(await titleOf('/app/status')).toBe('Status')
  })
})
