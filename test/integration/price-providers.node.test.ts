import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { freePort } from '../../devnet/anvil.ts'
import { controls } from '../../devnet/controls.ts'
import { startWorker, type Worker } from '../../devnet/worker.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { createChain } from '../../src/chain/configured-chain.ts'
import { type HttpPriceProviderConfig, parseConfig } from '../../src/config/config.ts'
import type { Refusal } from '../../src/errors/refusal.ts'
import { createPriceProvider } from '../../src/price-providers/create-price-provider.ts'

// The provider is a small HTTP server here; the service is a separate Worker that is configured to use it.

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

const { chain: chainConfig } = parseConfig(workerVars(inject('deployment')))
if (chainConfig === undefined) throw new Error('the deployment has no chain')
const unusedChain = createChain(chainConfig, undefined)
const provider = (config: Partial<HttpPriceProviderConfig>) =>
  createPriceProvider({ kind: 'http', url, key: undefined, ids: {}, multipliers: {}, ...config }, unusedChain)

describe('CoinGecko', () => {
  const body =
    '{"bitcoin":{"usd":67187.3358936566,"last_updated_at":1711356300},"tiny":{"usd":1.5e-7,"last_updated_at":1711356300},"old":{"usd":3}}'
  const observe = (symbols: string[], config: Partial<HttpPriceProviderConfig> = {}) =>
    provider({ kind: 'coingecko', ids: { BTC: 'bitcoin' }, ...config }).observe(symbols)

  it('a token that stands for several shares after a split is priced as several', async () => {
    reply = () => ({ body })
    const multipliers = {
      BTC: { numerator: 2n, denominator: 1n },
      TINY: { numerator: 1n, denominator: 100n },
    }
    expect(await observe(['BTC', 'TINY', 'OLD'], { multipliers })).toEqual([
      { symbol: 'BTC', price: 13_437_467_178_730n, observedAt: 1_711_356_300n },
      { symbol: 'TINY', reason: 'invalidPrice' },
      { symbol: 'OLD', reason: 'noTime' },
    ])
  })

  it('CoinGecko is queried for all coins in one request, and its digits are not rounded', async () => {
    reply = () => ({ body })
    expect(await observe(['BTC', 'TINY', 'OLD', 'NONE'], { key: 'k' })).toEqual([
      { symbol: 'BTC', price: 6_718_733_589_365n, observedAt: 1_711_356_300n },
      { symbol: 'TINY', price: 15n, observedAt: 1_711_356_300n },
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
      { symbol: 'AAPL', price: 18_263_000_000n, observedAt: 1_704_067_200n },
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
      { symbol: 'AAPL', price: 18_263_000_000n, observedAt: 1_704_067_200n },
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
    expect(await observe(price)).toEqual([{ symbol: 'A', price: value, observedAt: 1_790_000_000n }])
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

describe('POST /prices/refresh', () => {
  const deployment = inject('deployment')
  const chain = controls(deployment)
  const SECRET = 'a refresh secret'.replaceAll(' ', '-')
  let worker: Worker
  /** The provider's quotes in USD by symbol; the default time is now. */
  let market: Record<string, { price: string; time?: number }>
  let now: number

  beforeAll(async () => {
    worker = await startWorker({
      port: await freePort(),
      vars: {
        ...workerVars(deployment),
        // Another service runs on this chain, and each key is for one of them.
        ORACLE_UPDATER_PRIVATE_KEY: deployment.accounts.priceSetter.privateKey,
        KEEPER_ENABLED: 'false',
        PRICE_PROVIDER: 'http',
        PRICE_PROVIDER_URL: url,
        PRICE_REFRESH_SECRET: SECRET,
      },
    })
  })
  afterAll(async () => {
    await worker.stop()
    await chain.refreshPrices()
  })
  beforeEach(async () => {
    now = await chain.increaseTime(2)
    market = {}
    reply = () => ({
      body: JSON.stringify(
        Object.fromEntries(Object.entries(market).map(([name, quote]) => [name, { time: now, ...quote }])),
      ),
    })
  })

  const refresh = async (body?: object, authorization = `Bearer ${SECRET}`) => {
    const response = await fetch(`${worker.url}/prices/refresh`, {
      method: 'POST',
      headers: { authorization, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: the tests check the fields they read
    return { status: response.status, headers: response.headers, body: (await response.json()) as any }
  }
  const priceOf = async (symbol: string) => {
    const response = await fetch(`${worker.url}/prices?symbols=${symbol}`)
    const { prices } = (await response.json()) as { prices: Record<string, { priceUsd: string; updatedAt: string }> }
    return prices[symbol]
  }

  it('POST /prices/refresh posts the quotes of the provider, with their time, in one transaction', async () => {
    market = { NVDA: { price: '181.07' }, AAPL: { price: '231.5' } }
    const { status, body } = await refresh({ symbols: ['NVDA', 'AAPL'] })
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { updated: expect.arrayContaining(['NVDA', 'AAPL']), skipped: [], provider: 'http' },
    })
    expect(body.prices.NVDA).toMatchObject({ priceUsd: '181.07', updatedAt: `${now}` })
    expect(await priceOf('AAPL')).toMatchObject({ priceUsd: '231.5', updatedAt: `${now}` })
    const transaction = await fetch(`${worker.url}/transactions/${body.transactionHash}`)
    expect(await transaction.json()).toMatchObject({
      status: 'success',
      from: deployment.accounts.priceSetter.address,
    })
  })

  it('POST /prices/refresh without a body refreshes every token, and names the skipped ones', async () => {
    const { priceUsd = '0' } = (await priceOf('MSFT')) ?? {}
    market = {
      NVDA: { price: '182' },
      MSFT: { price: `${Number(priceUsd) * 3}` },
      TSLA: { price: '0' },
      META: { price: '600', time: 1_700_000_000 },
      AMZN: { price: '240', time: now + 3600 },
    }
    const { status, body } = await refresh()
    expect(status).toBe(200)
    expect(body.updated).toEqual(['NVDA'])
    const reasons = Object.fromEntries(
      body.skipped.map(({ symbol, reason }: { symbol: string; reason: string }) => [symbol, reason]),
    )
    expect(reasons).toMatchObject({
      MSFT: 'deviationTooLarge',
      TSLA: 'invalidPrice',
      META: 'notNewer',
      AMZN: 'fromFuture',
      AAPL: 'notKnown',
    })
    expect(await priceOf('MSFT')).toMatchObject({ priceUsd })
  })

  it('POST /prices/refresh posts an unchanged price again only when forced, or when the oracle holds an old one', async () => {
    market = { NVDA: { price: '183' } }
    expect((await refresh({ symbols: ['NVDA'] })).body.updated).toEqual(['NVDA'])
    now = await chain.increaseTime(2)
    const unmoved = await refresh({ symbols: ['NVDA'] })
    expect(unmoved.body).toMatchObject({ updated: [], skipped: [{ symbol: 'NVDA', reason: 'unchanged' }] })
    expect(unmoved.body).not.toHaveProperty('transactionHash')
    expect((await refresh({ symbols: ['NVDA'], force: true })).body.updated).toEqual(['NVDA'])
    now = await chain.increaseTime(61)
    expect((await refresh({ symbols: ['NVDA'] })).body.updated).toEqual(['NVDA'])
  })

  it.each([
    ['no secret', ''],
    ['another secret', 'Bearer another'],
    ['a longer secret', `Bearer ${SECRET}x`],
    ['another scheme', `Basic ${SECRET}`],
  ])('POST /prices/refresh with %s returns 401', async (_, authorization) => {
    const { status, headers, body } = await refresh({}, authorization)
    expect({ status, body }).toMatchObject({ status: 401, body: { code: 'UNAUTHORIZED' } })
    expect([headers.get('www-authenticate'), headers.get('cache-control')]).toEqual(['Bearer', 'no-store'])
    expect(seen).toHaveLength(0)
  })

  it('POST /prices/refresh rejects an unknown symbol and an unknown field', async () => {
    expect(await refresh({ symbols: ['NOPE'] })).toMatchObject({ status: 400, body: { code: 'UNKNOWN_SYMBOL' } })
    expect(await refresh({ all: true })).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } })
  })

  it('POST /prices/refresh returns 502 when the provider is down or none of its quotes is usable', async () => {
    expect(await refresh({ symbols: ['NVDA'] })).toMatchObject({
      status: 502,
      body: { code: 'PRICE_PROVIDER_FAILED', details: { skipped: [{ symbol: 'NVDA', reason: 'notKnown' }] } },
    })
    reply = () => 'hang'
    expect(await refresh()).toMatchObject({ status: 502, body: { code: 'PRICE_PROVIDER_FAILED', retryable: true } })
  })
})
