import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Chain } from '../../src/chain/configured-chain.ts'
import type { HttpPriceProviderConfig } from '../../src/config/config.ts'
import { parseConfig } from '../../src/config/config.ts'
import type { Refusal } from '../../src/errors/refusal.ts'
import { createPriceProvider } from '../../src/price-providers/create-price-provider.ts'

type Reply = { status?: number; body: string; headers?: Record<string, string> }
let reply: (request: IncomingMessage) => Reply | 'hang'
const seen: IncomingMessage[] = []
const server: Server = createServer((request: IncomingMessage, response: ServerResponse) => {
  seen.push(request)
  const answer = reply(request)
  if (answer === 'hang') return request.socket.destroy()
  response.writeHead(answer.status ?? 200, { 'content-type': 'application/json', ...answer.headers }).end(answer.body)
})
let url: string

beforeAll(async () => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => new Promise(resolve => server.close(resolve)))
beforeEach(() => {
  seen.length = 0
})

/** An HTTP provider reads no chain. */
const noChain = {} as Chain
const provider = (config: Partial<HttpPriceProviderConfig>) =>
  createPriceProvider({ kind: 'http', url, key: undefined, ids: {}, ...config }, noChain)

it('a Worker that still sets the removed multipliers has no provider, and says so', () => {
  const { priceProvider, problems } = parseConfig({
    PRICE_PROVIDER: 'finnhub',
    PRICE_PROVIDER_MULTIPLIERS: '{"NVDA":"4/1"}',
  })
  expect(priceProvider).toBeUndefined()
  expect(problems).toContainEqual(expect.stringMatching(/^PRICE_PROVIDER_MULTIPLIERS: was removed, .*unset it/))
  expect(parseConfig({ PRICE_PROVIDER: 'finnhub' }).priceProvider).toMatchObject({ kind: 'finnhub' })
})

describe('CoinGecko', () => {
  const body =
    '{"bitcoin":{"usd":67187.3358936566,"last_updated_at":1711356300},"tiny":{"usd":1.5e-7,"last_updated_at":1711356300},"old":{"usd":3}}'
  const observe = (symbols: string[], config: Partial<HttpPriceProviderConfig> = {}) =>
    provider({ kind: 'coingecko', ids: { BTC: 'bitcoin' }, ...config }).observe(symbols)

  it('CoinGecko is queried for all coins in one request, and its digits are not rounded', async () => {
    reply = () => ({ body })
    expect(await observe(['BTC', 'TINY', 'OLD', 'NONE'], { key: 'k' })).toEqual([
      { symbol: 'BTC', basis: 'share', price: 6_718_733_589_365n, observedAt: 1_711_356_300n },
      { symbol: 'TINY', basis: 'share', price: 15n, observedAt: 1_711_356_300n },
      { symbol: 'OLD', reason: 'noTime' },
      { symbol: 'NONE', reason: 'notKnown' },
    ])
    expect(seen).toHaveLength(1)
    expect(seen[0]?.headers['x-cg-demo-api-key']).toBe('k')
    const asked = new URL(seen[0]?.url ?? '', url)
    expect(asked.pathname).toBe('/simple/price')
    expect(Object.fromEntries(asked.searchParams)).toEqual({
      ids: 'bitcoin,tiny,old,none',
      vs_currencies: 'usd',
      include_last_updated_at: 'true',
      precision: 'full',
    })
  })
})

describe('Finnhub', () => {
  it('Finnhub is queried once per symbol, and zeros mean an unknown symbol', async () => {
    reply = ({ url: path = '' }) => ({
      body: path.includes('AAPL')
        ? '{"c":182.63,"d":1.85,"dp":1.0239,"h":183.12,"l":180.97,"o":181.05,"pc":180.78,"t":1704067200}'
        : '{"c":0,"d":null,"dp":null,"h":0,"l":0,"o":0,"pc":0,"t":0}',
    })
    expect(await provider({ kind: 'finnhub', key: 'secret' }).observe(['AAPL', 'NOPE'])).toEqual([
      { symbol: 'AAPL', basis: 'share', price: 18_263_000_000n, observedAt: 1_704_067_200n },
      { symbol: 'NOPE', reason: 'invalidPrice' },
    ])
    expect(seen.map(request => [request.url, request.headers['x-finnhub-token']])).toEqual([
      ['/quote?symbol=AAPL', 'secret'],
      ['/quote?symbol=NOPE', 'secret'],
    ])
  })
})

describe('Finnhub without access to a symbol', () => {
  const observe = (symbols: string[]) => provider({ kind: 'finnhub' }).observe(symbols)
  const refusal = { status: 403, body: '{"error":"You don\'t have access to this resource."}' }

  it('Finnhub without access to a symbol skips that symbol and returns the others', async () => {
    reply = ({ url: path = '' }) => (path.includes('NESN') ? refusal : { body: '{"c":182.63,"t":1704067200}' })
    expect(await observe(['AAPL', 'NESN'])).toEqual([
      { symbol: 'AAPL', basis: 'share', price: 18_263_000_000n, observedAt: 1_704_067_200n },
      { symbol: 'NESN', reason: 'notKnown' },
    ])
  })

  it('Finnhub without access to a symbol fails if it fails otherwise for one symbol, which may well be known', async () => {
    reply = ({ url: path = '' }) => (path.includes('NESN') ? { status: 429, body: '{}' } : { body: '{"c":1,"t":1}' })
    await expect(observe(['AAPL', 'NESN'])).rejects.toMatchObject({ body: { code: 'PRICE_PROVIDER_FAILED' } })
  })

  it('Finnhub without access to a symbol fails if every symbol is refused', async () => {
    reply = () => refusal
    await expect(observe(['AAPL', 'NESN'])).rejects.toMatchObject({ body: { code: 'PRICE_PROVIDER_FAILED' } })
  })
})

describe('an HTTP provider', () => {
  const observe = (price: string, time = '1790000000') => {
    reply = () => ({ body: `{"A":{"price":${price},"time":${time}}}` })
    return provider({}).observe(['A'])
  }

  it.each([
    ['182.63', 18_263_000_000n],
    ['"182.63"', 18_263_000_000n],
    ['0.00000001', 1n],
    ['0.1', 10_000_000n],
    ['123456789012345678901234.5', 12_345_678_901_234_567_890_123_450_000_000n],
    ['9007199254740993', 900_719_925_474_099_300_000_000n],
    ['1E2', 10_000_000_000n],
    ['2.123456789', 212_345_678n],
  ])('an HTTP provider reads the price %s without a float', async (price, value) => {
    expect(await observe(price)).toEqual([{ symbol: 'A', basis: 'share', price: value, observedAt: 1_790_000_000n }])
  })

  it.each([
    ['a price of zero', '0', '1790000000', 'invalidPrice'],
    ['a price that rounds to zero', '0.000000001', '1790000000', 'invalidPrice'],
    ['a negative price', '-1', '1790000000', 'invalidPrice'],
    ['a price that is not a number', '"free"', '1790000000', 'invalidPrice'],
    ['a huge exponent', '1e999', '1790000000', 'invalidPrice'],
    ['a price in an object', '{"usd":1}', '1790000000', 'invalidPrice'],
    ['no price', 'null', '1790000000', 'notKnown'],
    ['no time', '1', 'null', 'noTime'],
    ['a time in milliseconds', '1', '1790000000000', 'noTime'],
    ['a time with a fraction', '1', '1790000000.5', 'noTime'],
  ])('an HTTP provider with %s yields no price', async (_, price, time, reason) => {
    expect(await observe(price, time)).toEqual([{ symbol: 'A', reason }])
  })

  it.each([
    ['closes the connection', () => 'hang' as const],
    ['returns an error', () => ({ status: 500, body: '{"key":"secret"}' })],
    ['rejects the key', () => ({ status: 401, body: '{}' })],
    ['redirects', () => ({ status: 302, body: '', headers: { location: 'http://127.0.0.1:1/' } })],
    ['returns text that is not JSON', () => ({ body: '<html>' })],
  ])('an HTTP provider that %s causes a refusal without its URL and key', async (_, answer) => {
    reply = answer
    const refusal = await provider({ key: 'secret' })
      .observe(['A'])
      .then(
        () => undefined,
        (error: Refusal) => error,
      )
    expect(refusal).toMatchObject({ status: 502, body: { code: 'PRICE_PROVIDER_FAILED', retryable: true } })
    expect(JSON.stringify(refusal?.body)).not.toMatch(/secret|127\.0\.0\.1/)
  })

  it.each([
    ['null', 'null'],
    ['an array', '[]'],
    ['a text', '"A"'],
    ['prototype members', '{"__proto__":{"price":1}}'],
  ])('an HTTP provider that returns %s knows no symbol', async (_, body) => {
    reply = () => ({ body })
    expect(await provider({}).observe(['A', 'constructor'])).toEqual([
      { symbol: 'A', reason: 'notKnown' },
      { symbol: 'constructor', reason: 'notKnown' },
    ])
  })
})
