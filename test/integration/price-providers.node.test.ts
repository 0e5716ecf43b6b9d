import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { freePort } from '../../devnet/anvil.ts'
import { controls } from '../../devnet/controls.ts'
import { startWorker, type Worker } from '../../devnet/worker.ts'
import { workerVars } from '../../devnet/worker-vars.ts'

// The provider is a small HTTP server here; the service is a separate Worker that is configured to use it.

/** The body of the provider's response, or undefined if it closes the connection. */
let reply: () => string | undefined
let requests = 0
const server: Server = createServer((request, response) => {
  requests++
  const body = reply()
  if (body === undefined) return request.socket.destroy()
  response.writeHead(200, { 'content-type': 'application/json' }).end(body)
})
let url: string

beforeAll(async () => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => new Promise(resolve => server.close(resolve)))
beforeEach(() => {
  requests = 0
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
    reply = () =>
      JSON.stringify(Object.fromEntries(Object.entries(market).map(([name, quote]) => [name, { time: now, ...quote }])))
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
    expect(requests).toBe(0)
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
    reply = () => undefined
    expect(await refresh()).toMatchObject({ status: 502, body: { code: 'PRICE_PROVIDER_FAILED', retryable: true } })
  })
})
