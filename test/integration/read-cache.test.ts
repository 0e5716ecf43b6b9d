import { describe, expect, it, vi } from 'vitest'
import { createMemory, type Described } from '../../src/read-cache.ts'
import { chain, newTrader, signedIntent } from '../support/actors.ts'
import { appWith, call, type Fetch, request } from '../support/surfaces.ts'

const remembering = () => appWith({ READ_LEASE_MS: '60000' })
const agentOf = async (app: Fetch, agentId: string) => (await call('getAgent', { agentId }, app)).body
const blockOf = async (app: Fetch) => BigInt((await call('listVaults', {}, app)).body.asOf.blockNumber)

describe('an answer about the newest block', () => {
  it('is given again as it was, with a request id of its own', async () => {
    const app = remembering()
    const [first, again] = [await request('/prices', {}, app), await request('/prices', {}, app)]
    const given = async (answer: Response) => ({
      body: await answer.text(),
      headers: [...answer.headers].filter(([name]) => name !== 'x-request-id'),
    })
    expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
    expect(await given(again)).toEqual(await given(first))
    const named = await request('/prices', { headers: { 'x-request-id': 'my-id-2' } }, app)
    expect(named.headers.get('x-request-id')).toBe('my-id-2')
  })

  it('is a 304 to who has it, and another representation to who asks for another', async () => {
    const app = remembering()
    const first = await request('/vaults', {}, app)
    const headers = { 'if-none-match': first.headers.get('etag') ?? '' }
    expect((await request('/vaults', { headers }, app)).status).toBe(304)
    const markdown = await request('/vaults', { headers: { accept: 'text/markdown' } }, app)
    expect(await markdown.text()).toMatch(/^# /)
    expect((await request('/vaults?format=md', {}, app)).headers.get('content-type')).toMatch('text/markdown')
  })

  it('is read anew once this isolate knows a newer block', async () => {
    const [app, trader] = [remembering(), await newTrader()]
    const before = await agentOf(app, trader.agentId)
    await chain.setAgentStatus(BigInt(trader.agentId), 2)
    expect(await agentOf(app, trader.agentId)).toEqual(before)
    expect(await blockOf(app)).toBeGreaterThan(BigInt(before.asOf.blockNumber))
    expect((await agentOf(app, trader.agentId)).agent.statusName).toBe('Suspended')
  })

  it('is read anew once this isolate has relayed', async () => {
    const [app, trader] = [remembering(), await newTrader()]
    const before = await agentOf(app, trader.agentId)
    const body = await signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '10' })
    const { blockNumber } = (await call('submitTradeIntent', body, app)).body
    const after = await agentOf(app, trader.agentId)
    expect(BigInt(after.asOf.blockNumber)).toBeGreaterThanOrEqual(BigInt(blockNumber))
    expect(BigInt(after.asOf.blockNumber)).toBeGreaterThan(BigInt(before.asOf.blockNumber))
  })
})

describe('a memory', () => {
  const at = (blockNumber: number): Described => ({ asOf: { blockNumber: `${blockNumber}`, blockTimestamp: '0' } })

  it('reads once for all who ask at the same time, and keeps no failure', async () => {
    const memory = createMemory(60_000)
    const read = vi.fn(async () => at(1))
    const answers = await Promise.all(['a', 'a', 'a'].map(key => memory.recall(key, read)))
    expect(read).toHaveBeenCalledOnce()
    expect(new Set(answers).size).toBe(1)
    await expect(memory.recall('b', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(await memory.recall('b', async () => at(2))).toEqual(at(2))
  })

  it('holds an answer until it forgets, knows a newer block or the lease has run out', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const memory = createMemory(250)
      const [a, b] = [await memory.recall('a', async () => at(1)), await memory.recall('b', async () => at(1))]
      expect([memory.holds(a), memory.holds(b)]).toEqual([true, true])
      await memory.recall('c', async () => at(2))
      expect([memory.holds(a), memory.holds(b)]).toEqual([false, false])
      const c = await memory.recall('c', async () => at(3))
      vi.advanceTimersByTime(249)
      expect(memory.holds(c)).toBe(true)
      vi.advanceTimersByTime(1)
      expect(memory.holds(c)).toBe(false)
      const d = await memory.recall('d', async () => at(1)) // a chain that began anew
      expect(memory.holds(d)).toBe(true)
      memory.forget()
      expect(memory.holds(d)).toBe(false)
    } finally {
      vi.useRealTimers()
    }
  })
})
