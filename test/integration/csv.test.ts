import { csvParseRows } from 'd3-dsv'
import { beforeAll, describe, expect, it } from 'vitest'
import { newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { call, request } from '../support/surfaces.ts'

let trader: Trader
beforeAll(async () => {
  trader = await newTrader()
  const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '100' })
  await submit(trader, 'submitReduceIntent', { positionId, exitBps: 2500 })
  await submit(trader, 'submitReduceIntent', { positionId, exitBps: 10000 })
})

const trades = (query: string, headers: Record<string, string> = {}) =>
  request(`/agents/${trader.agentId}/trades${query}`, { headers })

describe('CSV', () => {
  it('CSV has the fields of the JSON as columns, with the same digits', async () => {
    const response = await trades('?format=csv')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(response.headers.get('x-lag-blocks')).toBe('0')
    expect(response.headers.get('link')).toBeNull()
    const [names = [], ...rows] = csvParseRows(await response.text())
    const { body } = await call('getTradeHistory', { agentId: trader.agentId })
    expect(names).toEqual(Object.keys(body.trades[0]))
    expect(rows).toEqual(body.trades.map((trade: Body) => names.map(name => `${trade[name] ?? ''}`)))
    expect(rows.flat().some(cell => /^-\d+$/.test(cell))).toBe(true)
  })

  it('CSV names the next page in the Link header', async () => {
    const rows: string[][] = []
    for (let path: string | undefined = '?format=csv&limit=2'; path; ) {
      const response = await trades(path)
      const [, ...page] = csvParseRows(await response.text())
      expect(page.length).toBeLessThanOrEqual(2)
      rows.push(...page)
      path = /^<[^?]*(\?[^>]*)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1]
    }
    const { body } = await call('getTradeHistory', { agentId: trader.agentId })
    expect(rows.map(([id]) => id)).toEqual(body.trades.map(({ id }: Body) => id))
  })

  it('CSV is returned if the Accept header prefers it; the default is JSON', async () => {
    const typeOf = async (accept: string) => (await trades('', { accept })).headers.get('content-type')
    expect(await typeOf('text/csv')).toMatch(/^text\/csv/)
    expect(await typeOf('application/json, text/csv;q=0.5')).toMatch(/^application\/json/)
    expect(await typeOf('*/*')).toMatch(/^application\/json/)
    expect((await trades('')).headers.get('vary')).toMatch(/Accept/)
  })

  it.each(['?format=md', '?format=xml', '?format=csv&format=csv'])('CSV is refused for the query %s', async query => {
    const response = await trades(query)
    expect({ status: response.status, code: ((await response.json()) as Body).code }).toEqual({
      status: 400,
      code: 'INVALID_REQUEST',
    })
  })

  it('CSV exists for the equity history, with a header row even if there are no points', async () => {
    const response = await request(`/agents/${trader.agentId}/equity-history?format=csv&from=1&to=2`)
    expect(await response.text()).toBe(
      'timestamp,blockNumber,equityUsdc,realizedPnlUsdc,unrealizedPnlUsdc,drawdownBps,openCount,priceStale\r\n',
    )
  })
})
