import { env } from 'cloudflare:workers'
import { AgentStatus } from '@agent-trading-service/protocol/enums'
import { describe, expect, it, vi } from 'vitest'
import { workerVars } from '../../devnet/worker-vars.ts'
import { createReadCache } from '../../src/chain/read-cache.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createContext } from '../../src/context.ts'
import { createApp } from '../../src/http/app.ts'
import { createResponseCache } from '../../src/http/response-cache.ts'
import { chain, newTrader, signedIntent } from '../support/actors.ts'
import { appWith, callOverHttp as call, deployment, type Fetch, request } from '../support/surfaces.ts'

// HTTP only: counts reads behind the response cache of the HTTP surface.

const cachingApp = () => appWith({ READ_LEASE_MS: '60000' })
const agentOf = async (app: Fetch, agentId: string) => (await call('getAgent', { agentId }, app)).body
const blockOf = async (app: Fetch) => BigInt((await call('listVaults', {}, app)).body.asOf.blockNumber)

describe('a cached response', () => {
  it('a cached response is returned unchanged, except for its request id', async () => {
    const app = cachingApp()
    const [first, second] = [await request('/prices', {}, app), await request('/prices', {}, app)]
    const contentOf = async (response: Response) => ({
      body: await response.text(),
      headers: [...response.headers].filter(([name]) => name !== 'x-request-id'),
    })
    expect(second.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
    expect(await contentOf(second)).toEqual(await contentOf(first))
    const named = await request('/prices', { headers: { 'x-request-id': 'my-id-2' } }, app)
    expect(named.headers.get('x-request-id')).toBe('my-id-2')
  })

  it('a cached response is a 304 for a client that has it, and is not used for another representation', async () => {
    const app = cachingApp()
    const first = await request('/vaults', {}, app)
    const headers = { 'if-none-match': first.headers.get('etag') ?? '' }
    expect((await request('/vaults', { headers }, app)).status).toBe(304)
    const markdown = await request('/vaults', { headers: { accept: 'text/markdown' } }, app)
    expect(await markdown.text()).toMatch(/^# /)
    expect((await request('/vaults?format=md', {}, app)).headers.get('content-type')).toMatch('text/markdown')
  })

  it('a cached response is kept once per representation, not once per Accept header', async () => {
    const context = createContext(parseConfig({ ...workerVars(deployment), READ_LEASE_MS: '60000' }), env)
    const cache = createResponseCache(context.readCache)
    const app = createApp(context, { assets: env.ASSETS, cache })
    const served: string[] = []
    const serve = (request: Request) => {
      const cached = cache.find(request)
      if (cached === undefined) served.push(request.headers.get('accept') ?? '')
      return cached ?? app.fetch(request)
    }
    const typeOf = async (accept: string) => {
      const response = await serve(new Request('http://localhost/vaults', { headers: { accept } }))
      return [response.headers.get('content-type')?.split(';')[0], response.headers.get('vary')?.includes('Accept')]
    }
    const json = ['application/json', '*/*', 'text/html, */*;q=0.8', `application/json, text/x-${'a'.repeat(60_000)}`]
    for (const accept of json) expect(await typeOf(accept)).toEqual(['application/json', true])
    expect(served).toEqual(json.slice(0, 1))
    for (const accept of ['text/markdown', 'text/*', 'text/markdown, application/json;q=0.5'])
      expect(await typeOf(accept)).toEqual(['text/markdown', true])
    expect(await typeOf('application/json')).toEqual(['application/json', true])
  })

  it('a cached response that expires soon is read again for one request, while the others still get it', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const cache = createReadCache(100, 75)
      const read = vi.fn((block: number) => Promise.resolve({ asOf: { blockNumber: `${block}`, blockTimestamp: '0' } }))
      const readAt = (ms: number, block: number) => {
        vi.setSystemTime(ms)
        return cache.getOrRead('prices', () => read(block))
      }
      const first = await readAt(1_000, 1)
      expect(await readAt(1_074, 2)).toBe(first)
      vi.setSystemTime(1_075)
      expect([cache.isFresh(first), cache.takeRenewal(first), cache.takeRenewal(first)]).toEqual([true, true, false])
      const renewal = Promise.withResolvers<Awaited<ReturnType<typeof read>>>()
      read.mockReturnValueOnce(renewal.promise)
      const renewed = readAt(1_080, 3)
      expect(cache.isFresh(first)).toBe(true)
      expect(await readAt(1_090, 4)).toBe(first)
      const late = readAt(1_101, 5) // the first one has expired
      renewal.resolve({ asOf: { blockNumber: '3', blockTimestamp: '0' } })
      expect(await late).toBe(await renewed)
      expect(await readAt(1_110, 6)).toBe(await renewed)
      expect(read).toHaveBeenCalledTimes(2)
    } finally {
      vi.useRealTimers()
    }
  })

  it('a cached response is read again once this isolate has seen a newer block', async () => {
    const [app, trader] = [cachingApp(), await newTrader()]
    const before = await agentOf(app, trader.agentId)
    await chain.setAgentStatus(BigInt(trader.agentId), AgentStatus.Suspended)
    expect(await agentOf(app, trader.agentId)).toEqual(before)
    expect(await blockOf(app)).toBeGreaterThan(BigInt(before.asOf.blockNumber))
    expect((await agentOf(app, trader.agentId)).agent.statusName).toBe('Suspended')
  })

  it('a cached response is read again once this isolate has relayed an intent', async () => {
    const [app, trader] = [cachingApp(), await newTrader()]
    const before = await agentOf(app, trader.agentId)
    const body = await signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '10' })
    const { blockNumber } = (await call('submitTradeIntent', body, app)).body
    const after = await agentOf(app, trader.agentId)
    expect(BigInt(after.asOf.blockNumber)).toBeGreaterThanOrEqual(BigInt(blockNumber))
    expect(BigInt(after.asOf.blockNumber)).toBeGreaterThan(BigInt(before.asOf.blockNumber))
  })
})
