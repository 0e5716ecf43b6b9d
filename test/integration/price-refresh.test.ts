import { createExecutionContext, createScheduledController, waitOnExecutionContext } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { workerVars } from '../../devnet/worker-vars.ts'
import { marketHours } from '../../src/catalog/market-hours.ts'
import { parseConfig } from '../../src/config.ts'
import { createContext } from '../../src/context.ts'
import worker from '../../src/index.ts'
import { refreshOnSchedule } from '../../src/operations/refresh-job.ts'
import { chain } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { call, deployment } from '../support/surfaces.ts'

const A_DAY_AND_MORE = 90_000
const prices = async (): Promise<Body> => (await call('getPrices')).body
const staleOf = ({ prices }: Body) => Object.values<Body>(prices).filter(({ stale }) => stale)

/** Fires the cron trigger of the Worker, and waits for all that it does. */
async function fireCron() {
  const execution = createExecutionContext()
  await (worker as ExportedHandler<Env>).scheduled?.(createScheduledController(), env, execution)
  await waitOnExecutionContext(execution)
}

const PROVIDER = 'http://provider.test/prices'
const outside = globalThis.fetch.bind(globalThis)
/** Answers for the provider; everything else goes its way. */
function provide(answer: (symbols: string[]) => Response) {
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
  it('makes the prices that the oracle holds fresh again, and does not move them', async () => {
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

  it('leaves a price to who posts it', async () => {
    const { NVDA } = (await prices()).prices
    const moved = (Number(NVDA.priceUsd) * 1.01).toFixed(2)
    await chain.setPrice('NVDA', moved)
    await call('refreshPrices', { force: true })
    expect(Number((await prices()).prices.NVDA.priceUsd)).toBe(Number(moved))
    await chain.setPrice('NVDA', NVDA.priceUsd)
  })

  it('is not for chains with real money', () => {
    const { market, problems } = parseConfig({ ...workerVars(deployment), CHAIN_ID: '42161' })
    expect({ market, problems }).toEqual({
      market: undefined,
      problems: ['PRICE_PROVIDER: must not be local on a chain with real money'],
    })
  })
})

describe('the cron trigger', () => {
  it('refreshes the prices', async () => {
    await chain.increaseTime(A_DAY_AND_MORE)
    expect(staleOf(await prices())).not.toEqual([])
    await fireCron()
    expect(staleOf(await prices())).toEqual([])
  })

  it('asks the provider for tokens whose market is open', async () => {
    const asked: string[][] = []
    provide(symbols => {
      asked.push(symbols)
      return Response.json({})
    })
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await refreshOnSchedule(contextWith({ MARKET_SESSIONS: 'enforced' }))
    await refreshOnSchedule(contextWith({ MARKET_SESSIONS: 'off' }))
    const { prices: all, asOf } = await prices()
    const symbols = Object.keys(all)
    const open = symbols.filter(symbol => marketHours(symbol, Number(asOf.blockTimestamp)).session !== 'closed')
    expect(asked).toEqual([...(open.length > 0 ? [open] : []), symbols])
  })

  it('logs a provider that fails, without its URL and what it said, and goes on', async () => {
    const lines: string[] = []
    vi.spyOn(console, 'error').mockImplementation(line => lines.push(line))
    provide(() => new Response('key=secret', { status: 500 }))
    await refreshOnSchedule(contextWith({ MARKET_SESSIONS: 'off' }))
    expect(lines.map(line => JSON.parse(line))).toEqual([
      {
        level: 'error',
        event: 'price refresh failed',
        code: 'PRICE_PROVIDER_FAILED',
        problem: 'it answers with the status 500',
      },
    ])
  })

  it('does nothing where no provider is configured', async () => {
    const { PRICE_PROVIDER: _, ...vars } = workerVars(deployment)
    const requests = vi.spyOn(globalThis, 'fetch')
    await refreshOnSchedule(createContext(parseConfig(vars), env))
    expect(requests).not.toHaveBeenCalled()
  })
})
