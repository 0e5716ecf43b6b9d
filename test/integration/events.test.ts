import { abortAllDurableObjects, evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { formatUnits, type Hex, isAddressEqual, toHex } from 'viem'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import type { IntentRecord } from '../../src/executor/intent-record.ts'
import { HistoryIndexerObject } from '../../src/history/object.ts'
import { type StreamOpening, shardName, streamPlacesOf } from '../../src/live/client.ts'
import type { StreamEvent } from '../../src/live/event.ts'
import { type EventLog, openEventLog } from '../../src/live/store.ts'
import { HEARTBEAT_SECONDS, MAX_STREAMS_PER_OBJECT } from '../../src/live/subscribers.ts'
import { FIRST_OFF_CHAIN_INDEX } from '../../src/resources/event-id.ts'
import { chain, GENESIS, newTrader, openPosition, sign, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { listen, type StreamListener } from '../support/event-stream.ts'
import { node } from '../support/history-oracle.ts'
import { callTool } from '../support/mcp-surface.ts'
import {
  acceptOwnership,
  cancelIntents,
  closeAll,
  newOwner,
  offerOwnership,
  ownerOf,
  setMandate,
  setSigner,
  stopBuying,
} from '../support/owner-calls.ts'
import { appWith, call, deployment, request } from '../support/surfaces.ts'

const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)

const open: StreamListener[] = []
/** Opens a stream and reads its opening comment. */
const connect = async (path: string, headers: Record<string, string> = {}): Promise<StreamListener> =>
  follow(await request(path, { headers }))

async function follow(response: Response): Promise<StreamListener> {
  if (!response.ok) expect.fail(`${response.status} ${await response.text()}`)
  const listener = listen(response)
  open.push(listener)
  await listener.open()
  return listener
}
afterEach(async () => {
  await Promise.allSettled(open.splice(0).map(listener => listener.leave()))
})

/** Collects the log lines of a level until the mocks are restored. */
function captureLog(level: 'error' | 'warn'): Body[] {
  const lines: Body[] = []
  vi.spyOn(console, level).mockImplementation(line => void lines.push(JSON.parse(line)))
  return lines
}

const shard = (index: number) => env.EVENT_STREAM_SHARDS.getByName(shardName({ id: deployment.chainId }, index))
const openingOf = (opening: Partial<StreamOpening>) =>
  new Request('http://streams/', {
    method: 'POST',
    body: JSON.stringify({ filter: {}, client: ['a'], maxStreams: 250, heartbeatSeconds: 15, ...opening }),
  })

const sentIntent = ({ agentId }: Trader, digest: Hex): IntentRecord => ({
  digest,
  kind: 'open',
  group: `agent:${agentId}`,
  groupNonce: '0',
  deadline: 9_000_000_000n,
  state: 'sent',
  attempts: [{ hash: digest, nonce: 0, purpose: 'call', state: 'pending', sentAt: 1 }],
  createdAt: 1,
  updatedAt: 1,
})

let trader: Trader
beforeAll(async () => {
  trader = await newTrader()
})

describe('one address', () => {
  it('one address may open 240 streams, and others still open theirs', async () => {
    // Two isolates: an address may not open so many at once in one of them.
    const isolates = [appWith({ MAX_PARALLEL_REQUESTS: '0' }), appWith({ MAX_PARALLEL_REQUESTS: '0' })]
    const opened: Response[] = []
    const headers = { 'cf-connecting-ip': '192.0.2.1' }
    const open = (index: number) => request('/events', { headers }, isolates[index % 2])
    while (opened.length < 240)
      opened.push(...(await Promise.all(Array.from({ length: 24 }, (_, index) => open(index)))))
    expect(opened.map(({ status }) => status)).toEqual(opened.map(() => 200))
    const refused = await open(0)
    expect({ status: refused.status, body: await refused.json() }).toMatchObject({
      status: 429,
      body: { code: 'TOO_MANY_STREAMS_OF_CLIENT', retryAfterSeconds: expect.any(Number) },
    })
    await connect('/events', { 'cf-connecting-ip': '192.0.2.2' })
    await connect('/events', { 'cf-connecting-ip': '2001:db8::1' })
    await Promise.all(opened.map(({ body }) => body?.cancel()))
  })
})

describe('an id far ahead of the log', () => {
  it('an id far ahead of the log is refused', async () => {
    await connect('/events')
    const refused = await request('/events?lastEventId=999999999-0')
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ code: 'EVENT_ID_UNKNOWN' })
  })
})

describe('a stream', () => {
  it('a stream opens at once, is not cached or buffered by proxies, and is readable from any origin', async () => {
    const { response, comments, positions, lastEventId } = await connect(`/agents/${trader.agentId}/events`)
    expect(response.status).toBe(200)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
      'access-control-allow-origin': '*',
      'x-request-id': expect.any(String),
    })
    expect(comments).toEqual([])
    expect(lastEventId()).toMatch(/^\d+-\d+$/)
    const [id, [blockNumber]] = [lastEventId(), lastEventId().split('-')]
    expect(positions).toEqual([{ id, event: 'position', data: { id, blockNumber } }])
  })

  it('a stream returns its headers to HEAD, without a body', async () => {
    const response = await request('/events', { method: 'HEAD' })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    expect(response.body).toBeNull()
  })

  it.each([
    ['an unknown agent', '/agents/999999/events', 404, 'AGENT_NOT_FOUND'],
    ['an agent id that is too large', `/agents/${'9'.repeat(30)}/events`, 404, 'AGENT_NOT_FOUND'],
    ['an unknown vault', '/events?vault=nowhere', 404, 'VAULT_NOT_FOUND'],
    ['an id of the wrong format', '/events?lastEventId=yesterday', 400, 'INVALID_REQUEST'],
    ['an id in the future', '/events?lastEventId=99999999-1', 400, 'EVENT_ID_UNKNOWN'],
    ['an id from before the log started', '/events?lastEventId=0-1', 400, 'EVENT_ID_UNKNOWN'],
    ['an id of a branch that never existed', '/events?lastEventId=0-1.7', 400, 'EVENT_ID_UNKNOWN'],
    ['an unknown parameter', '/events?token=NVDA', 400, 'INVALID_REQUEST'],
    ['an unknown symbol', '/events?symbols=NVDA,NOPE', 400, 'UNKNOWN_SYMBOL'],
    ['an empty symbol', '/events?symbols=NVDA,', 400, 'INVALID_REQUEST'],
  ])('a stream is refused for %s', async (_, path, status, code) => {
    const response = await request(path)
    expect([response.status, (await response.json<Body>()).code]).toEqual([status, code])
  })

  it.each(['3', '61', '4.5', 'soon'])(
    'a stream is refused for a heartbeat of %s seconds, which is named',
    async given => {
      const response = await request(`/events?heartbeat=${given}`)
      expect([response.status, await response.json()]).toMatchObject([
        400,
        { details: { problems: [{ path: 'heartbeat' }] } },
      ])
    },
  )

  it('a stream gets a heartbeat as often as its client says', async () => {
    const stream = await connect('/events?heartbeat=4')
    const opened = Date.now()
    await stream.until(() => stream.comments.includes('heartbeat') || stream.positions.length > 1)
    expect(Date.now() - opened).toBeLessThan(HEARTBEAT_SECONDS * 1_000)
  })

  it('a stream is refused for a header of the wrong format, and for another method', async () => {
    const malformed = await request('/events', { headers: { 'last-event-id': '5' } })
    expect([malformed.status, (await malformed.json<Body>()).code]).toEqual([400, 'INVALID_REQUEST'])
    const posted = await request('/events', { method: 'POST' })
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })
})

/** Opens as many streams as an object holds. Returns what closes them. */
async function fill(index: number): Promise<() => Promise<unknown>> {
  const clients = Array.from({ length: MAX_STREAMS_PER_OBJECT }, (_, client) => [`${client}`] as const)
  const held = await runInDurableObject(shard(index), object =>
    Promise.all(clients.map(client => object.fetch(openingOf({ client, heartbeatSeconds: 3_600 })))),
  )
  return () => runInDurableObject(shard(index), () => Promise.all(held.map(({ body }) => body?.cancel())))
}

it('opens a stream in another object if the first one is full, and refuses it if that is full too', async () => {
  const [, other] = streamPlacesOf(['unknown'], 250, 16)
  const emptyFirst = await fill(0)
  await connect('/events')
  const emptyOther = await fill(other?.object ?? 0)
  const lines = { error: captureLog('error'), warn: captureLog('warn') }
  const response = await request('/events')
  vi.restoreAllMocks()
  await Promise.all([emptyFirst(), emptyOther()])
  expect([response.status, (await response.json<Body>()).code]).toEqual([503, 'TOO_MANY_STREAMS'])
  const isRefusal = ({ code }: Body) => code === 'TOO_MANY_STREAMS'
  expect(lines.error.filter(isRefusal)).toEqual([])
  expect(lines.warn.filter(isRefusal)).toMatchObject([{ level: 'warn', status: 503, path: '/events' }])
})

it('asks the indexer to follow the chain once for all streams that open within a few seconds', async () => {
  const watch = vi.spyOn(HistoryIndexerObject.prototype, 'watch')
  await abortAllDurableObjects()
  await Promise.all(Array.from({ length: 20 }, () => connect('/events')))
  await indexer().catchUp()
  const watches = watch.mock.calls.length
  vi.restoreAllMocks()
  expect(watches).toBe(1)
})

it('asks the indexer again if it could not be reached', async () => {
  const watch = vi.spyOn(HistoryIndexerObject.prototype, 'watch').mockRejectedValueOnce(new Error('unreachable'))
  captureLog('error')
  await abortAllDurableObjects()
  await connect('/events')
  await indexer().catchUp()
  await connect('/events')
  await indexer().catchUp()
  const watches = watch.mock.calls.length
  vi.restoreAllMocks()
  expect(watches).toBe(2)
})

it('logs a failure of the streams with the frames of its cause', async () => {
  const lines = captureLog('error')
  await runInDurableObject(env.EVENT_STREAMS.getByName('broken'), async (object, { storage }) => {
    storage.sql.exec('DROP TABLE mark')
    await object.advance().catch(() => {})
  })
  vi.restoreAllMocks()
  const [line] = lines.filter(({ event }) => event === 'event streams failure')
  expect(line).toMatchObject({ level: 'error', cause: 'Error' })
  expect(line?.frames.join()).toContain('src/live/store.ts')
})

describe('an owner', () => {
  it('an owner gets an event for each thing it does, in the streams of the agent and of its vault', async () => {
    const owned = await newTrader()
    const { agentId } = owned
    const [owner, next] = [await ownerOf(owned), await newOwner()]
    const [ofAgent, ofVault, ofOther] = await Promise.all([
      connect(`/agents/${agentId}/events`),
      connect('/events?vault=genesis'),
      connect(`/agents/${trader.agentId}/events`),
    ])
    const allowedTokens = [deployment.tokens.NVDA as `0x${string}`]
    await setMandate(owner, agentId, { maxTradeUsdc: 5_000_000n, allowedTokens })
    await stopBuying(owner, [agentId])
    const receipt = await closeAll(owner, [agentId])
    await setMandate(owner, agentId)
    await cancelIntents(owner, agentId, 2n)
    await setSigner(owner, agentId, next.address)
    await offerOwnership(owner, agentId)
    await offerOwnership(owner, agentId, next.address)
    await acceptOwnership(next, agentId, owner.address)
    await indexer().catchUp()

    const open = {
      mode: 'trade',
      maxTradeUsdc: null,
      maxDailyTurnoverUsdc: null,
      maxExposureUsdc: null,
      allowedTokens: null,
      validUntil: null,
    }
    const expected = [
      { type: 'MandateUpdated', mandate: { ...open, maxTradeUsdc: '5000000', allowedTokens } },
      { type: 'BuyingStopped', mode: 'reduceOnly' },
      { type: 'CloseAllStarted', mode: 'reduceOnly', closingSince: expect.stringMatching(/^\d+$/) },
      { type: 'CloseAllEnded' },
      { type: 'MandateUpdated', mandate: open },
      { type: 'IntentsCancelled', fromNonce: '0', untilNonce: '2' },
    ].map(event => ({ owner: owner.address, ...event }))
    const ofOwnership = [
      { type: 'AgentSignerUpdated', signer: next.address },
      { type: 'OwnershipOffered', from: owner.address, to: null },
      { type: 'OwnershipOffered', from: owner.address, to: next.address },
      { type: 'AgentOwnershipTransferred', from: owner.address, to: next.address },
      { type: 'AgentSignerUpdated', signer: owner.address },
    ]
    for (const stream of [ofAgent, ofVault])
      for (const event of [...expected, ...ofOwnership]) {
        const { id, data } = await stream.next('mandate')
        expect(data).toEqual({
          agentId,
          ...event,
          id: `${data.transactionHash}-${data.logIndex}`,
          transactionHash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
          blockNumber: expect.stringMatching(/^\d+$/),
          logIndex: expect.any(Number),
          timestamp: expect.stringMatching(/^\d+$/),
        })
        expect(id).toBe(`${data.blockNumber}-${data.logIndex}`)
        if (event.type === 'CloseAllStarted') expect(data.transactionHash).toBe(receipt.transactionHash)
      }
    expect(ofOther.events.filter(({ event }) => event === 'mandate')).toEqual([])
  })
})

describe('an agent that acts', () => {
  it('an agent that acts gets an event for each trade, with the record of the list of trades', async () => {
    const stream = await connect(`/agents/${trader.agentId}/events`)
    const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '100' })
    await submit(trader, 'submitExitLadderIntent', { positionId, exits: '-500:10000,2000:10000' })
    await submit(trader, 'submitReduceIntent', { positionId, exitBps: 10000 })
    const seen = [await stream.next('trade'), await stream.next('ladder'), await stream.next('trade')]
    const { body } = await call('getTradeHistory', { agentId: trader.agentId })
    const { agentId } = trader
    expect(seen.map(({ data }) => data)).toEqual(
      body.trades
        .slice(0, 3)
        .reverse()
        .map((trade: Body) => ({ agentId, ...trade })),
    )
    expect(seen.map(({ id }) => id)).toEqual(seen.map(({ data }) => `${data.blockNumber}-${data.logIndex}`))
  })

  it('an agent that acts appears in the streams of its vault and of all agents, and in no others', async () => {
    const other = await newTrader()
    const [all, vault, address, otherVault, otherAgent] = await Promise.all([
      connect('/events'),
      connect('/events?vault=genesis'),
      connect(`/events?vault=${GENESIS.toLowerCase()}`),
      connect('/events?vault=frontier'),
      connect(`/agents/${other.agentId}/events`),
    ])
    const positionId = await openPosition(trader, { symbol: 'AAPL', usdcAmount: '100' })
    const [first, ...rest] = await Promise.all([all, vault, address].map(stream => stream?.next('trade')))
    expect(first?.data).toMatchObject({ agentId: trader.agentId, type: 'PositionOpened', positionId })
    expect(rest).toEqual([first, first])
    await openPosition(other, { symbol: 'AAPL', usdcAmount: '100' })
    await otherAgent.next('trade')
    expect(otherAgent.events.every(({ data }) => data.agentId === other.agentId)).toBe(true)
    expect(otherVault.events).toEqual([])
  })

  it('an agent that acts gets an event for each state of an intent, with the fields of the intent by its digest but for its calls', async () => {
    const stream = await connect(`/agents/${trader.agentId}/events`)
    await openPosition(trader, { symbol: 'MSFT', usdcAmount: '100' })
    const mined = await stream.until(() => stream.events.find(({ data }) => data.state === 'mined'))
    expect(mined.event).toBe('intent')
    const { body } = await call('getIntent', { digest: mined.data.digest })
    for (const field of ['positionId', 'signed', 'calls', 'fill', 'realizedPnlUsdc', 'pendingRules']) delete body[field]
    expect(mined.data).toEqual(body)
  })

  it('an agent that acts causes no event with an intent that is refused before a transaction is signed; its state is under its digest', async () => {
    const trader = await newTrader()
    const stream = await connect(`/agents/${trader.agentId}/events`)
    const all = await connect('/events')
    const input = { symbol: 'MSFT', usdcAmount: '90000000' }
    const { body: quote } = await call('getTradeIntentQuote', { agentId: trader.agentId, ...input })
    const { digest } = quote
    const signature = await sign(trader.account, quote.typedData)
    const refused = await call('submitTradeIntent', { agentId: trader.agentId, ...quote.body, signature })
    const { body } = await call('getIntent', { digest })
    expect([refused.status, body.state, body.refusal.code]).toEqual([400, 'rejected', refused.body.code])
    await openPosition(trader, { symbol: 'MSFT', usdcAmount: '100' })
    for (const listener of [stream, all]) {
      await listener.next('trade')
      expect(listener.events.filter(({ data }) => data.digest === digest)).toEqual([])
    }
  })
})

describe('a posted price', () => {
  const oracle = { address: deployment.contracts.PriceOracle, abi: priceOracleAbi } as const
  const token = (symbol: string) => deployment.tokens[symbol] as Hex
  beforeAll(async () => {
    trader = await newTrader()
  })
  /** Posts the price that a token has, so that no other test sees another one. */
  async function post(symbol: string) {
    const price = await send(symbol)
    await indexer().catchUp()
    return price
  }
  async function send(symbol: string) {
    const [price] = await node.readContract({ ...oracle, functionName: 'peekPrice', args: [token(symbol)] })
    await chain.send(deployment.accounts.priceSetter, {
      ...oracle,
      functionName: 'setPrice',
      args: [token(symbol), price],
    })
    return price
  }

  it('a posted price reaches the streams with its symbol, which resume after it, and no others', async () => {
    const path = `/agents/${trader.agentId}/events`
    const [prices, ofAgent, ofAll] = await Promise.all([
      connect('/events?symbols=NVDA,AAPL'),
      connect(`${path}?symbols=AAPL`),
      connect('/events'),
    ])
    const posted = await post('NVDA')
    const first = await prices.next('price')
    expect(first.data).toEqual({
      symbol: 'NVDA',
      token: token('NVDA'),
      priceUsd: formatUnits(posted, 8),
      updatedAt: expect.stringMatching(/^\d+$/),
      timestamp: expect.stringMatching(/^\d+$/),
      blockNumber: expect.stringMatching(/^\d+$/),
      logIndex: expect.any(Number),
      source: 'updater',
    })
    expect(first.id).toBe(`${first.data.blockNumber}-${first.data.logIndex}`)
    await post('MSFT')
    await post('AAPL')
    const second = await prices.next('price')
    expect(second.data.symbol).toBe('AAPL')
    expect(await ofAgent.next('price')).toEqual(second)
    const resumed = await connect(`/events?symbols=AAPL,NVDA&lastEventId=${first.id}`)
    expect(await resumed.next('price')).toEqual(second)
    await openPosition(trader, { symbol: 'AAPL', usdcAmount: '10' })
    await Promise.all([ofAgent.next('trade'), ofAll.next('trade')])
    const typesOf = ({ events }: StreamListener) => [...new Set(events.map(({ event }) => event))]
    expect([typesOf(prices), ofAll.events.filter(({ event }) => event === 'price')]).toEqual([['price'], []])
  })

  it('a posted price reaches a stream that opened after a read of new trades, although the idle index was due in a minute', async () => {
    await abortAllDurableObjects()
    await runInDurableObject(indexer(), (_, { storage }) => storage.setAlarm(Date.now() + 60_000))
    await indexer().catchUp() // as the read does
    const stream = await connect('/events?symbols=NVDA')
    await send('NVDA')
    await stream.next('price')
    expect(stream.comments).not.toContain('heartbeat') // the first is due after 15 seconds
  })

  it('a posted price ends the wait of a tool that names its symbol', async () => {
    const input = { agentId: trader.agentId, symbols: 'NVDA', types: ['price'], timeoutSeconds: 20 }
    const before = await callTool('svc_wait_for_event', { ...input, timeoutSeconds: 1 }, appWith({}))
    await post('NVDA')
    const { body } = await callTool(
      'svc_wait_for_event',
      { ...input, lastEventId: before.body.lastEventId },
      appWith({}),
    )
    expect(body.event).toMatchObject({ type: 'price', data: { symbol: 'NVDA' } })
  })
})

describe('a client that reconnects', () => {
  beforeAll(async () => {
    trader = await newTrader()
  })

  it('a client that reconnects gets what it missed, once and in order, and then new events', async () => {
    const path = `/agents/${trader.agentId}/events`
    const before = await connect(path)
    await openPosition(trader, { symbol: 'NVDA', usdcAmount: '50' })
    const { id } = await before.next('trade')
    await before.leave()
    const positionId = await openPosition(trader, { symbol: 'AAPL', usdcAmount: '50' })
    const [byHeader, ...byQuery] = await Promise.all([
      connect(path, { 'last-event-id': id }),
      connect(`${path}?after=${id}`),
      connect(`${path}?lastEventId=${id}`),
    ])
    await submit(trader, 'submitReduceIntent', { positionId, exitBps: 5000 })
    for (const stream of [byHeader, ...byQuery]) {
      expect((await stream.next('trade')).data).toMatchObject({ type: 'PositionOpened', positionId })
      expect((await stream.next('trade')).data).toMatchObject({ type: 'PositionReduced', positionId })
    }
    const ids = byHeader.events.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids).not.toContain(id)
  })

  it('a client that reconnects may start after the newest trade of a list, or after a block', async () => {
    const path = `/agents/${trader.agentId}/events`
    const { body } = await call('getTradeHistory', { agentId: trader.agentId, limit: 2 })
    const [newest, second] = body.trades
    const after = await connect(`${path}?lastEventId=${second.blockNumber}-${second.logIndex}`)
    expect((await after.next('trade')).data).toMatchObject({ id: newest.id })
    const ended = await connect(`${path}?lastEventId=${body.asOf.blockNumber}-999999`)
    expect(ended.events.filter(({ event }) => event === 'trade')).toEqual([])
  })

  it('a client that reconnects misses nothing when the objects have died', async () => {
    const path = `/agents/${trader.agentId}/events`
    const before = await connect(path)
    const positionId = await openPosition(trader, { symbol: 'MSFT', usdcAmount: '50' })
    const { id } = await before.next('trade')
    await before.leave()
    await abortAllDurableObjects()
    await submit(trader, 'submitReduceIntent', { positionId, exitBps: 5000 })
    const stream = await connect(path, { 'last-event-id': id })
    expect((await stream.next('trade')).data).toMatchObject({ type: 'PositionReduced', positionId })
  })

  it('a client that reconnects after a new trade resumes although the index is being read up to an older block', async () => {
    const path = `/agents/${trader.agentId}/events`
    await indexer().catchUp()
    const { body } = await call('getTradeHistory', { agentId: trader.agentId, limit: 1 })
    await runInDurableObject(indexer(), (_, { storage }) => storage.setAlarm(Date.now() + 60_000))
    const original = globalThis.fetch.bind(globalThis)
    let isHeld = false
    let hasTraded = false
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      const sent = new Request(input as RequestInfo, init as RequestInit)
      const [first] = [await sent.clone().json<Body>()].flat()
      const response = await original(sent)
      const isHead = first?.method === 'eth_getBlockByNumber' && first.params[0] === 'latest'
      if (!isHead || isHeld) return response
      isHeld = true
      await vi.waitUntil(() => hasTraded, { timeout: 30_000 })
      return response
    })
    try {
      const early = request(`${path}?lastEventId=${Number(body.asOf.blockNumber) + 100}-0`)
      await vi.waitUntil(() => isHeld, { timeout: 30_000 })
      const { body: receipt } = await submit(trader, 'submitTradeIntent', { symbol: 'AMZN', usdcAmount: '10' })
      const { logs } = await node.getTransactionReceipt({ hash: receipt.transactionHash })
      const trade = logs.findLast(({ address }) => isAddressEqual(address, deployment.contracts.TradeRouter as Hex))
      const stream = request(`${path}?lastEventId=${receipt.blockNumber}-${trade?.logIndex}`)
      await vi.waitUntil(async () => (await shard(0).size()) === 2, { timeout: 30_000 })
      hasTraded = true
      expect((await early).status).toBe(400)
      await follow(await stream)
    } finally {
      vi.restoreAllMocks()
    }
  })
})

describe('streams in different objects', () => {
  beforeAll(async () => {
    trader = await newTrader()
  })

  it('streams in different objects carry the same events with the same ids in the same order, and an id of one resumes in any other', async () => {
    const filter = { agentId: Number(trader.agentId) }
    const live = await Promise.all(
      [0, 1, 2].map(async index => follow(await shard(index).fetch(openingOf({ filter })))),
    )
    const start = live.map(stream => stream.lastEventId())
    const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '50' })
    await submit(trader, 'submitReduceIntent', { positionId, exitBps: 10_000 })
    const seen = await Promise.all(
      live.map(async stream => {
        await stream.until(() => stream.events.some(({ data }) => data.type === 'PositionReduced'))
        return stream.events.slice(0, stream.events.findIndex(({ data }) => data.type === 'PositionReduced') + 1)
      }),
    )
    expect(new Set(seen.map(events => JSON.stringify(events))).size).toBe(1)

    // An object that the deployment has only with a larger number of them.
    for (const lastEventId of [start[0] ?? '', seen[0]?.[0]?.id ?? '']) {
      const resumed = await follow(await shard(200).fetch(openingOf({ filter, lastEventId })))
      const expected = seen[0]?.slice((seen[0]?.findIndex(({ id }) => id === lastEventId) ?? 0) + 1) ?? []
      await resumed.until(() => resumed.events.length >= expected.length)
      expect(resumed.events.slice(0, expected.length)).toEqual(expected)
    }
  })

  describe('of a log that nothing else writes to', () => {
    const unsent: StreamEvent = { type: 'intent', agentId: 7, vault: undefined, data: { unsent: true } }
    let chainId = 990_000
    const log = () => env.EVENT_STREAMS.getByName(`${chainId}`)

    /** Writes to the log without its object, which reads it again at the next call, as after a crash. */
    async function write(change: (eventLog: EventLog, sql: SqlStorage) => void) {
      await runInDurableObject(log(), (_, { storage }) => change(openEventLog(storage.sql), storage.sql))
      await evictDurableObject(log())
    }
    async function openIn(object: number): Promise<StreamListener> {
      const stub = env.EVENT_STREAM_SHARDS.getByName(shardName({ id: chainId }, object))
      const listener = listen(await stub.fetch(openingOf({})))
      open.push(listener)
      await listener.open()
      return listener
    }
    beforeEach(async () => {
      chainId++
      await write(eventLog => eventLog.start(100, '0x00', 0))
    })

    it('streams in different objects of a log that nothing else writes to get the intents of an agent whose vault the index cannot return, in the streams of its vault', async () => {
      const digests = [1, 2].map(number => toHex(number, { size: 32 }))
      await runInDurableObject(log(), async object => {
        const prepare = () => {
          throw new Error('The database is unreachable.')
        }
        Object.defineProperty(object, 'env', { value: { ...env, HISTORY: { prepare } } })
        await Promise.all(digests.map(digest => object.publishIntents([sentIntent(trader, digest)])))
      })
      const { events } = await log().readEvents({ vault: deployment.vaults.genesis as `0x${string}` }, 0, 10)
      expect(events.map(({ data }) => JSON.parse(data).digest)).toEqual(digests)
    })

    it('streams in different objects of a log that nothing else writes to get the events that were logged but not sent when the log died, before the next one', async () => {
      const live = await Promise.all([0, 1, 2].map(openIn))
      await write(eventLog => void eventLog.appendOffChain([unsent]))
      await log().restart()
      for (const stream of live) {
        await stream.next('reorg')
        expect(stream.events.map(({ event }) => event)).toEqual(['intent', 'reorg'])
        expect(stream.events[0]?.data).toEqual(unsent.data)
        expect(stream.events[1]?.data.commonAncestor).toBeNull()
      }
    })

    it('streams in different objects of a log that nothing else writes to end when an older state of the log was restored, because its next events may have the same ids', async () => {
      await write(eventLog => void eventLog.appendOffChain([unsent, unsent]))
      const live = await openIn(0)
      await write((_, sql) => void sql.exec('DELETE FROM entry WHERE seq > 1'))
      await openIn(0)
      await expect(live.until(() => false)).rejects.toThrow('restored to an older state')
    })

    it('streams in different objects of a log that nothing else writes to are counted together, and their objects are not called once they are closed', async () => {
      const live = await Promise.all([0, 1, 2].map(openIn))
      expect((await log().status()).streams).toBe(3)
      await Promise.all(live.map(stream => stream.leave()))
      await vi.waitUntil(async () => (await log().status()).streams === 0, { timeout: 30_000, interval: 100 })
      await log().restart()
      const listening = () =>
        runInDurableObject(log(), (_, { storage }) => storage.sql.exec('SELECT * FROM listening_shard').toArray())
      await vi.waitUntil(async () => (await listening()).length === 0, { timeout: 30_000, interval: 20 })
    })
  })
})

/** Returns a storage that counts the rows that are read. */
function countingRows(sql: SqlStorage) {
  const cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[] = []
  const exec: SqlStorage['exec'] = (statement, ...bindings) => {
    const cursor = sql.exec(statement, ...bindings)
    cursors.push(cursor)
    return cursor as never
  }
  /** Returns how many rows were read since the last call. */
  const rowsRead = () => cursors.splice(0).reduce((sum, cursor) => sum + cursor.rowsRead, 0)
  return { sql: { ...sql, exec }, rowsRead }
}

it('a page with prices reads the newest one of each token, and not those before it', () =>
  runInDurableObject(env.EVENT_STREAMS.getByName('log of prices'), (_, { storage }) => {
    const { sql, rowsRead } = countingRows(storage.sql)
    const log = openEventLog(sql)
    log.start(100, '0x00', 0)
    const [seldom, often] = [`0x${'1'.repeat(40)}`, `0x${'2'.repeat(40)}`] as const
    const at = (logIndex: number, event: StreamEvent) => ({ ...event, block: 101, logIndex })
    const trade = (logIndex: number) => at(logIndex, { type: 'trade', agentId: 7, vault: undefined, data: {} })
    const price = (logIndex: number, token: `0x${string}`) =>
      at(logIndex, { type: 'price', agentId: undefined, vault: undefined, token, data: {} })
    const posted = [price(1, seldom), ...Array.from({ length: 1_000 }, (_, index) => price(index + 2, often))]
    log.appendFromChain([trade(0), ...posted, trade(2_000)], { block: 101, hash: '0x00' })
    for (const tokens of [[often], [seldom], [seldom, often]]) {
      rowsRead()
      const { events } = log.page({ agentId: 7, tokens }, 1, 50)
      expect(events.map(({ type }) => type)).toEqual(['trade', ...tokens.map(() => 'price'), 'trade'])
      expect(rowsRead()).toBeLessThan(40)
    }
  }))

it('a page of one agent or vault reads only rows of theirs and reorgs, also in a log without indexes', () =>
  runInDurableObject(env.EVENT_STREAMS.getByName('busy log'), (_, { storage }) => {
    const vault = GENESIS
    const { sql, rowsRead } = countingRows(storage.sql)
    const before = openEventLog(storage.sql)
    before.start(100, '0x00', 0)
    const trade = (block: number, logIndex: number, agentId = 7) => ({
      ...({ type: 'trade', agentId, vault: undefined, data: {} } satisfies StreamEvent),
      block,
      logIndex,
    })
    const busy = Array.from({ length: 2_000 }, (_, logIndex) => trade(101, logIndex, 8))
    before.appendFromChain([...busy, { ...trade(102, 0), vault }], { block: 102, hash: '0x00' })
    before.withdraw({ id: 1, ancestor: 101, lost: 102 })
    before.appendFromChain([{ ...trade(102, 0), vault }], { block: 102, hash: '0x00' })
    for (const index of ['entry_agent', 'entry_reorg']) storage.sql.exec(`DROP INDEX ${index}`)
    const log = openEventLog(sql)
    for (const filter of [{ agentId: 7 }, { vault }]) {
      rowsRead()
      expect(log.page(filter, 1, 2).events.map(({ id }) => id)).toEqual(['102-0', `102-${FIRST_OFF_CHAIN_INDEX}`])
      expect(log.page(filter, 1, 50)).toMatchObject({
        events: [{ id: '102-0' }, { type: 'reorg' }, { id: '102-0.1' }],
        through: log.newest().seq,
      })
      expect(rowsRead()).toBeLessThan(40)
    }
  }))
