import { beforeAll, describe, expect, it } from 'vitest'
import { GENESIS, newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { listToken } from '../support/list-token.ts'
import { appWith, call, deployment, request } from '../support/surfaces.ts'

// Symbols as they are: with a dot, and of one letter. Every operation that takes or returns one, over both surfaces.

const SYMBOLS = ['BRK.B', 'F']
const prices: Record<string, string> = { 'BRK.B': '512.3', F: '13.4' }
let trader: Trader

beforeAll(async () => {
  for (const symbol of SYMBOLS)
    await listToken(deployment, {
      symbol,
      name: `${symbol} • Robinhood Token`,
      price: prices[symbol] ?? '',
      vault: GENESIS,
    })
  trader = await newTrader()
})

const ok = async (id: Parameters<typeof call>[0], input: Body = {}): Promise<Body> => {
  const { status, body } = await call(id, input)
  expect({ id, status, body }).toMatchObject({ id, status: 200 })
  return body
}

describe.each(SYMBOLS)('the symbol %s', symbol => {
  it(`the symbol ${symbol} works in every read`, async () => {
    const { tokens } = await ok('listTokens')
    expect(tokens.find((token: Body) => token.symbol === symbol)).toMatchObject({ name: `${symbol} • Robinhood Token` })
    const { tokens: inVault } = await ok('listVaultTokens', { id: 'genesis' })
    expect(inVault.map((token: Body) => token.symbol)).toContain(symbol)
    for (const symbols of [symbol, symbol.toLowerCase(), SYMBOLS.join()])
      expect(Object.keys((await ok('getPrices', { symbols })).prices)).toContain(symbol)
    expect(await ok('getCandles', { symbol, interval: '1h' })).toMatchObject({ symbol })
    expect(await ok('getDepth', { symbol, usdcAmount: '100' })).toMatchObject({ symbol })
    expect(await ok('listCorporateActions', { symbol })).toMatchObject({ symbol })
    expect((await call('refreshPrices', { symbols: [symbol] })).body.prices[symbol]).toMatchObject({ symbol })
    const misspelt = await call('getDepth', { symbol: `${symbol}X`, usdcAmount: '100' })
    expect(misspelt).toMatchObject({ status: 400, body: { code: 'UNKNOWN_SYMBOL' } })
  })

  it(`the symbol ${symbol} works from the quote to the trade and its filters`, async () => {
    const { agentId } = trader
    const quote = await ok('getTradeIntentQuote', { agentId, symbol, usdcAmount: '20' })
    expect(quote.allowedSymbols).toContain(symbol)
    const positionId = await openPosition(trader, { symbol, usdcAmount: '20', exits: '-800:10000' })
    const { positions } = await ok('listPositions', { agentId })
    expect(positions.find((position: Body) => position.positionId === positionId)).toMatchObject({ symbol })
    expect(await ok('getPositionAutomation', { agentId, positionId })).toMatchObject({ symbol })
    const { trades } = await ok('getTradeHistory', { agentId, symbol })
    expect(trades.map((trade: Body) => trade.symbol)).toEqual([symbol])
    const order = await ok('getOrderQuote', {
      agentId,
      type: 'limit',
      symbol,
      usdcAmount: '10',
      price: '1',
      exits: '-800:10000',
    })
    expect(JSON.stringify(order)).toContain(symbol)
    const tried = await ok('whatIf', { agentId, prices: { [symbol]: '10' } })
    expect(JSON.stringify(tried)).toContain(symbol)
    expect(await ok('getMandateQuote', { agentId, mode: 'trade', allowedTokens: symbol })).toMatchObject({ agentId })
    const { body } = await call('getRiskState', { agentId })
    expect(body.positions.openCount).toBeGreaterThan(0)
    expect(await submit(trader, 'submitReduceIntent', { positionId, exitBps: '10000' })).toMatchObject({ status: 201 })
  })

  it(`the symbol ${symbol} works in files, streams and pages`, async () => {
    const csv = await request(`/prices/${symbol}/candles?interval=1h`, { headers: { accept: 'text/csv' } })
    expect([csv.status, csv.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/csv')])
    const abort = new AbortController()
    const stream = await request(`/events?symbols=${symbol}`, { signal: abort.signal })
    expect([stream.status, stream.headers.get('content-type')]).toEqual([
      200,
      expect.stringContaining('text/event-stream'),
    ])
    await stream.body?.cancel()
    abort.abort()
    const requested: string[] = []
    const pages = appWith(
      {},
      {
        ASSETS: {
          fetch: async ({ url }: Request) => {
            requested.push(new URL(url).pathname)
            return new Response('<html></html>', { headers: { 'content-type': 'text/html' } })
          },
        } as unknown as Env['ASSETS'],
      },
    )
    const page = await request(`/app/tokens/${symbol}`, { headers: { accept: 'text/html' } }, pages)
    expect(page.status).toBe(200)
    expect(requested).toEqual(['/app/'])
  })
})
