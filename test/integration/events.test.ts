import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { GENESIS, newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { type Listener, listen } from '../support/event-stream.ts'
import { call, deployment, request } from '../support/surfaces.ts'

const open: Listener[] = []
/** Opens a stream and reads its first words. */
async function connect(path: string, headers: Record<string, string> = {}): Promise<Listener> {
  const listener = listen(await request(path, { headers }))
  open.push(listener)
  await listener.until(() => listener.comments.includes('open'))
  return listener
}
afterEach(async () => {
  await Promise.all(open.splice(0).map(listener => listener.leave()))
})

const streams = () => env.EVENT_STREAMS.getByName(`${deployment.chainId}`)

let trader: Trader
beforeAll(async () => {
  trader = await newTrader()
})

describe('a stream', () => {
  it('opens at once, is never kept on the way, and may be read from any page', async () => {
    const { response, comments, lastEventId } = await connect(`/agents/${trader.agentId}/events`)
    expect(response.status).toBe(200)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
      'access-control-allow-origin': '*',
      'x-request-id': expect.any(String),
    })
    expect(comments).toEqual(['open'])
    expect(lastEventId()).toMatch(/^\d+-\d+$/)
  })

  it('answers HEAD with its headers alone', async () => {
    const response = await request('/events', { method: 'HEAD' })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    expect(response.body).toBeNull()
  })

  it.each([
    ['an unknown agent', '/agents/999999/events', 404, 'AGENT_NOT_FOUND'],
    ['an agent beyond every number', `/agents/${'9'.repeat(30)}/events`, 404, 'AGENT_NOT_FOUND'],
    ['an unknown vault', '/events?vault=nowhere', 404, 'VAULT_NOT_FOUND'],
    ['an id that is none', '/events?lastEventId=yesterday', 400, 'INVALID_REQUEST'],
    ['an id of the future', '/events?lastEventId=99999999-1', 400, 'EVENT_ID_UNKNOWN'],
    ['an id from before the log', '/events?lastEventId=0-1', 400, 'EVENT_ID_UNKNOWN'],
    ['an id of a branch that never was', '/events?lastEventId=0-1.7', 400, 'EVENT_ID_UNKNOWN'],
    ['a parameter that it does not know', '/events?token=NVDA', 400, 'INVALID_REQUEST'],
  ])('is refused for %s', async (_, path, status, code) => {
    const response = await request(path)
    expect([response.status, (await response.json<Body>()).code]).toEqual([status, code])
  })

  it('is refused for a header that is no id, and for another method', async () => {
    const malformed = await request('/events', { headers: { 'last-event-id': '5' } })
    expect([malformed.status, (await malformed.json<Body>()).code]).toEqual([400, 'INVALID_REQUEST'])
    const posted = await request('/events', { method: 'POST' })
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })
})

it('a stream more than the object may hold is refused', async () => {
  const opening = { method: 'POST', body: JSON.stringify({ subject: {} }) }
  let held: Response[] = []
  await runInDurableObject(streams(), async object => {
    const requests = Array.from({ length: 4_000 }, () => new Request('http://streams/', opening))
    held = await Promise.all(requests.map(request => object.fetch(request)))
  })
  const response = await request('/events')
  await runInDurableObject(streams(), () => Promise.all(held.map(({ body }) => body?.cancel())))
  expect([response.status, (await response.json<Body>()).code]).toEqual([503, 'TOO_MANY_STREAMS'])
})

describe('what an agent does', () => {
  it('comes to its stream as in the list of trades, once it is there', async () => {
    const stream = await connect(`/agents/${trader.agentId}/events`)
    const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '100' })
    await submit(trader, 'submitExitLadderIntent', { positionId, exits: '-500:10000,2000:10000' })
    await submit(trader, 'submitReduceIntent', { positionId, exitBps: 10000 })
    const seen = [
      await stream.next('trade'),
      await stream.next('ladder'),
      await stream.next('trade'),
      await stream.next('trade'),
    ]
    const { body } = await call('getTradeHistory', { agentId: trader.agentId })
    const { agentId } = trader
    expect(seen.map(({ data }) => data)).toEqual(
      body.trades
        .slice(0, 4)
        .reverse()
        .map((trade: Body) => ({ agentId, ...trade })),
    )
    expect(seen.map(({ id }) => id)).toEqual(seen.map(({ data }) => `${data.blockNumber}-${data.logIndex}`))
  })

  it('comes to the streams of its vault and of everybody, and to nobody else', async () => {
    const other = await newTrader()
    const [everybody, vault, address, foreign, others] = await Promise.all([
      connect('/events'),
      connect('/events?vault=genesis'),
      connect(`/events?vault=${GENESIS.toLowerCase()}`),
      connect('/events?vault=frontier'),
      connect(`/agents/${other.agentId}/events`),
    ])
    const positionId = await openPosition(trader, { symbol: 'AAPL', usdcAmount: '100' })
    const [first, ...rest] = await Promise.all([everybody, vault, address].map(stream => stream?.next('trade')))
    expect(first?.data).toMatchObject({ agentId: trader.agentId, type: 'PositionOpened', positionId })
    expect(rest).toEqual([first, first])
    await openPosition(other, { symbol: 'AAPL', usdcAmount: '100' })
    await others.next('trade')
    expect(others.events.every(({ data }) => data.agentId === other.agentId)).toBe(true)
    expect(foreign.events).toEqual([])
  })

  it('is told of each intent: what became of it, as by its digest', async () => {
    const stream = await connect(`/agents/${trader.agentId}/events`)
    await openPosition(trader, { symbol: 'MSFT', usdcAmount: '100' })
    const mined = await stream.until(() => stream.events.find(({ data }) => data.state === 'mined'))
    expect(mined.event).toBe('intent')
    const { body } = await call('getIntent', { digest: mined.data.digest })
    const { positionId: _, ...life } = body
    expect(mined.data).toEqual(life)
    const refused = await submit(trader, 'submitTradeIntent', { symbol: 'MSFT', usdcAmount: '90000000' })
    expect(refused.status).toBe(400)
    const rejected = await stream.until(() => stream.events.find(({ data }) => data.state === 'rejected'))
    expect(rejected.data.refusal.code).toBe(refused.body.code)
  })
})

describe('a client that comes back', () => {
  beforeAll(async () => {
    trader = await newTrader()
  })

  it('is sent what it has missed, once and in order, and then what happens', async () => {
    const path = `/agents/${trader.agentId}/events`
    const before = await connect(path)
    await openPosition(trader, { symbol: 'NVDA', usdcAmount: '50' })
    const { id } = await before.next('trade')
    await before.leave()
    const positionId = await openPosition(trader, { symbol: 'AAPL', usdcAmount: '50' })
    const [byHeader, byQuery] = await Promise.all([
      connect(path, { 'last-event-id': id }),
      connect(`${path}?lastEventId=${id}`),
    ])
    await submit(trader, 'submitReduceIntent', { positionId, exitBps: 5000 })
    for (const stream of [byHeader, byQuery]) {
      expect((await stream.next('trade')).data).toMatchObject({ type: 'PositionOpened', positionId })
      expect((await stream.next('trade')).data).toMatchObject({ type: 'PositionReduced', positionId })
    }
    const ids = byHeader.events.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids).not.toContain(id)
  })

  it('may begin where a list of trades ends, or at the end of a block', async () => {
    const path = `/agents/${trader.agentId}/events`
    const { body } = await call('getTradeHistory', { agentId: trader.agentId, limit: 2 })
    const [newest, second] = body.trades
    const after = await connect(`${path}?lastEventId=${second.blockNumber}-${second.logIndex}`)
    expect((await after.next('trade')).data).toMatchObject({ id: newest.id })
    const ended = await connect(`${path}?lastEventId=${body.asOf.blockNumber}-999999`)
    expect(ended.events.filter(({ event }) => event === 'trade')).toEqual([])
  })

  it('finds everything after the object was thrown out of memory', async () => {
    const path = `/agents/${trader.agentId}/events`
    const before = await connect(path)
    const positionId = await openPosition(trader, { symbol: 'MSFT', usdcAmount: '50' })
    const { id } = await before.next('trade')
    await before.leave()
    await evictDurableObject(streams())
    await submit(trader, 'submitReduceIntent', { positionId, exitBps: 5000 })
    const stream = await connect(path, { 'last-event-id': id })
    expect((await stream.next('trade')).data).toMatchObject({ type: 'PositionReduced', positionId })
  })
})
