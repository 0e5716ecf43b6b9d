import { createExecutionContext, createScheduledController, waitOnExecutionContext } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { isMarketOpen } from '@agent-trading-service/protocol/market-hours'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { workerVars } from '../../devnet/worker-vars.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createContext } from '../../src/context.ts'
import worker from '../../src/index.ts'
import { refreshPrices } from '../../src/scheduled/scheduled.ts'
import { chain } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { appWith, call, callOverHttp, deployment } from '../support/surfaces.ts'

const A_DAY_AND_MORE = 90_000
const prices = async (): Promise<Body> => (await call('getPrices')).body
const staleOf = ({ prices }: Body) => Object.values<Body>(prices).filter(({ stale }) => stale)

/** Fires the Worker's cron trigger and waits until its work is done. */
async function fireCron() {
  const execution = createExecutionContext()
  await (worker as ExportedHandler<Env>).scheduled?.(createScheduledController(), env, execution)
  await waitOnExecutionContext(execution)
}

const PROVIDER = 'http://provider.test/prices'
const outside = globalThis.fetch.bind(globalThis)
/** Replaces the provider; other requests are sent as usual. */
function mockProvider(answer: (symbols: string[]) => Response) {
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const request = new Request(input as RequestInfo, init as RequestInit)
    const { origin, pathname, searchParams } = new URL(request.url)
    if (`${origin}${pathname}` !== PROVIDER) return outside(request)
    return answer(searchParams.get('symbols')?.split(',') ?? [])
  })
}
const contextWith = (changes: Record<string, string>) =>
  createContext(
    parseConfig({ ...workerVars(deployment), PRICE_PROVIDER: 'http', PRICE_PROVIDER_URL: PROVIDER, ...changes }),
    env,
  )
afterEach(() => vi.restoreAllMocks())

describe('the local provider', () => {
  it("the local provider renews the oracle's prices without changing them", async () => {
    const before = await prices()
    await chain.increaseTime(A_DAY_AND_MORE)
    expect(staleOf(await prices())).toHaveLength(before.total)
    const { status, body } = await call('refreshPrices')
    expect({ status, body }).toMatchObject({ status: 200, body: { provider: 'local', skipped: [] } })
    expect(body.updated).toHaveLength(before.total)
    const after = await prices()
    expect(staleOf(after)).toEqual([])
    for (const [symbol, { priceUsd }] of Object.entries<Body>(before.prices))
      expect(after.prices[symbol].priceUsd).toBe(priceUsd)
  })

  it('the local provider keeps a price that someone else has posted', async () => {
    const { NVDA } = (await prices()).prices
    const moved = (Number(NVDA.priceUsd) * 1.01).toFixed(2)
    await chain.setPrice('NVDA', moved)
    await call('refreshPrices')
    expect(Number((await prices()).prices.NVDA.priceUsd)).toBe(Number(moved))
    await chain.setPrice('NVDA', NVDA.priceUsd)
  })

  it('the local provider is rejected on chains with real money', () => {
    const vars = { ...workerVars(deployment), DEVELOPMENT_CHAIN: 'false', CHAIN_ID: '42161' }
    const { priceProvider, problems } = parseConfig(vars)
    expect({ priceProvider, problems }).toEqual({
      priceProvider: undefined,
      problems: ['PRICE_PROVIDER: must not be local on a chain with real money'],
    })
  })
})

it('a chain is one for development only if it is known to have no real money', () => {
  const parse = (CHAIN_ID: string) => parseConfig({ ...workerVars(deployment), CHAIN_ID, PRICE_PROVIDER: undefined })
  for (const id of ['42161', '1', '999999'])
    expect(parse(id)).toMatchObject({
      chain: { isDevelopment: false },
      problems: [`DEVELOPMENT_CHAIN: must not be true on chain ${id}, which is no known chain without real money`],
    })
  for (const id of ['31337', '421614', '46630'])
    expect(parse(id)).toMatchObject({ chain: { isDevelopment: true }, problems: [] })
})

describe('a refresh without a secret', () => {
  it('a refresh without a secret is one transaction and one provider request per interval for everybody', async () => {
    let requests = 0
    mockProvider(symbols => {
      requests++
      const time = Math.floor(Date.now() / 1000) + 2 * A_DAY_AND_MORE
      return Response.json({ prices: symbols.map(symbol => ({ symbol, price: '100', time })) })
    })
    const app = appWith({
      PRICE_PROVIDER: 'http',
      PRICE_PROVIDER_URL: PROVIDER,
      PRICE_REFRESH_INTERVAL_SECONDS: '3600',
    })
    const replies = await Promise.all(Array.from({ length: 32 }, () => callOverHttp('refreshPrices', {}, app)))
    expect(requests).toBeLessThanOrEqual(1)
    const late = replies.filter(({ status }) => status === 200)
    expect(late.length).toBeGreaterThanOrEqual(31)
    const isRecent = ({ reason }: Body) => reason === 'refreshedRecently'
    const unrefreshed = late.filter(({ body }) => body.skipped.some(isRecent))
    expect(unrefreshed.length).toBeGreaterThanOrEqual(31)
    for (const { body } of unrefreshed) {
      expect(body.transactionHash).toBeUndefined()
      expect(body.skipped.every(isRecent)).toBe(true)
      expect(Object.keys(body.prices).length).toBeGreaterThan(0)
    }
  })

  it('a refresh without a secret is not used up by a request for an unknown symbol', async () => {
    let taken = 0
    const lane = {
      takePriceRefresh: async () => {
        taken++
        return false
      },
    }
    const namespace = { idFromName: () => ({}), get: () => lane }
    const app = appWith({}, { EXECUTOR_LANE: namespace as unknown as Env['EXECUTOR_LANE'] })
    expect(await callOverHttp('refreshPrices', { symbols: ['NVDA', 'NOTHING'] }, app)).toMatchObject({
      status: 400,
      body: { code: 'UNKNOWN_SYMBOL' },
    })
    expect(taken).toBe(0)
    expect(await callOverHttp('refreshPrices', { symbols: ['NVDA'] }, app)).toMatchObject({
      status: 200,
      body: { skipped: [{ symbol: 'NVDA', reason: 'refreshedRecently' }] },
    })
    expect(taken).toBe(1)
  })

  it('a refresh without a secret cannot force an unchanged price', async () => {
    expect(await call('refreshPrices', { force: true })).toMatchObject({ status: 401, body: { code: 'UNAUTHORIZED' } })
  })

  it('a refresh without a secret is disabled on a chain with real money', async () => {
    const app = appWith({ CHAIN_ID: '42161', PRICE_PROVIDER: 'finnhub' })
    expect(await call('refreshPrices', {}, app)).toMatchObject({
      status: 503,
      body: { code: 'PRICE_REFRESH_DISABLED' },
    })
  })
})

describe('the cron trigger', () => {
  it('the cron trigger refreshes the prices', async () => {
    await chain.increaseTime(A_DAY_AND_MORE)
    expect(staleOf(await prices())).not.toEqual([])
    await fireCron()
    expect(staleOf(await prices())).toEqual([])
  })

  it('the cron trigger queries the provider only for tokens whose market is open', async () => {
    const queried: string[][] = []
    mockProvider(symbols => {
      queried.push(symbols)
      return Response.json({})
    })
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await refreshPrices(contextWith({ MARKET_SESSIONS: 'enforced' }))
    await refreshPrices(contextWith({ MARKET_SESSIONS: 'off' }))
    const { prices: all, asOf } = await prices()
    const symbols = Object.keys(all)
    const isOpen = isMarketOpen('us-equity-24-5', Number(asOf.blockTimestamp))
    expect(queried).toEqual([...(isOpen ? [symbols] : []), symbols])
  })

  it('the cron trigger logs a provider that fails, without its URL and response, and continues', async () => {
    const lines: string[] = []
    vi.spyOn(console, 'error').mockImplementation(line => lines.push(line))
    mockProvider(() => new Response('key=secret', { status: 500 }))
    await refreshPrices(contextWith({ MARKET_SESSIONS: 'off' }))
    expect(lines.map(line => JSON.parse(line)).filter(({ event }) => event?.startsWith('price'))).toEqual([
      {
        level: 'error',
        event: 'price refresh failed',
        code: 'PRICE_PROVIDER_FAILED',
        problem: 'it returned the HTTP status 500',
      },
    ])
  })

  it('the cron trigger does nothing without a configured provider', async () => {
    const { PRICE_PROVIDER: _, ...vars } = workerVars(deployment)
    const requests = vi.spyOn(globalThis, 'fetch')
    await refreshPrices(createContext(parseConfig(vars), env))
    expect(requests).not.toHaveBeenCalled()
  })
})
