import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { createParser } from 'eventsource-parser'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { startWorkerd, type Workerd } from '../../bench/workerd.ts'
import { freePort } from '../../devnet/anvil.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { type ToolResult, ToolTrader } from '../support/mcp-client.ts'

// A thousand clients of several Durable Objects, over real sockets to workerd. `npm run bench:streams` has ten
// thousand.

const STREAMS = 1_000
const OPENING_AT_A_TIME = 50
/** Memory of workerd per stream: the socket, and the Worker's and the object's side of the stream. */
const MAX_STREAM_BYTES = 400 * 1024
/** CPU time of workerd for an event and a stream. */
const MAX_EVENT_CPU_SECONDS = 0.001
/** Memory that may remain after an event was sent to a thousand streams. */
const MAX_EVENT_BYTES = 6 * 1024 * 1024
const state = mkdtempSync(join(tmpdir(), 'agent-trading-service-events-'))
let options: Parameters<typeof startWorkerd>[0]
let devnet: Devnet
let workerd: Workerd
let trader: ToolTrader

type SocketStream = {
  response: IncomingMessage
  events: { id: string; event: string; data: string }[]
  wake: () => void
}

let clients = 0
/** Returns the headers of a client with an address of its own, because one address may open few streams. */
function fromNewAddress(headers: Record<string, string>): Record<string, string> {
  clients++
  return { ...headers, 'cf-connecting-ip': `10.0.${clients >> 8}.${clients & 255}` }
}

const open = (path: string, headers: Record<string, string> = {}) =>
  new Promise<SocketStream>((resolve, reject) => {
    const request = get(`${workerd.url}${path}`, { agent: false, headers: fromNewAddress(headers) }, response => {
      const stream: SocketStream = { response, events: [], wake: () => {} }
      const parser = createParser({
        onEvent: ({ id = '', event = '', data }) => stream.events.push({ id, event, data }),
      })
      response.setEncoding('utf8').on('data', (text: string) => {
        parser.feed(text)
        stream.wake()
      })
      response.on('error', () => {}) // workerd was stopped
      if (response.statusCode === 200) resolve(stream)
      else reject(new Error(`${path} returned status ${response.statusCode}.`))
    })
    request.on('error', reject)
  })
const untilEvent = (stream: SocketStream, is: (event: SocketStream['events'][number]) => boolean) =>
  new Promise<void>(resolve => {
    stream.wake = () => stream.events.some(is) && resolve()
    stream.wake()
  })
const isOpening = (positionId: string) => (event: SocketStream['events'][number]) =>
  event.event === 'trade' && JSON.parse(event.data).positionId === positionId

/** Returns the resident memory of workerd in bytes. */
const memory = () => 1024 * Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${workerd.pid}/status`, 'utf8'))?.[1])
const openStreams = async () => {
  const response = await fetch(`${workerd.url}/health/ready`)
  return ((await response.json()) as { events: { streams: number } }).events.streams
}

async function connect(): Promise<ToolTrader> {
  const client = new Client({ name: 'events', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', workerd.url)))
  return new ToolTrader((name, input) => client.callTool({ name, arguments: input }) as Promise<ToolResult>)
}

beforeAll(async () => {
  // A chain of its own, because two services that use the same keys on one chain stop each other.
  devnet = await startDevnet()
  // A thousand strangers come at once, and all of them are let in at once.
  const vars = {
    ...workerVars(devnet.deployment),
    X402_ENABLED: 'false',
    KEEPER_ENABLED: 'false',
    MAX_PARALLEL_REQUESTS: '0',
  }
  options = { vars, persistTo: state, port: await freePort() }
  workerd = await startWorkerd(options)
  trader = await connect()
  await trader.register()
})
afterAll(async () => {
  await workerd?.stop()
  await devnet?.stop()
  rmSync(state, { recursive: true, force: true, maxRetries: 5 })
})

const exits = '-800:10000,1500:10000'

it('a thousand streams of several objects get every event, in bounded memory and time, and close when their clients leave', async () => {
  const before = memory()
  const streams: SocketStream[] = []
  while (streams.length < STREAMS)
    streams.push(
      ...(await Promise.all(
        Array.from({ length: OPENING_AT_A_TIME }, (_, index) =>
          open(index % 2 ? '/events' : `/agents/${trader.agentId}/events`),
        ),
      )),
    )
  expect(await openStreams()).toBe(STREAMS)
  const { positionId } = await trader.trade('trade', { symbol: 'NVDA', usdcAmount: '20', exits })
  await Promise.all(streams.map(stream => untilEvent(stream, isOpening(positionId))))
  const opened = memory()
  expect((opened - before) / STREAMS).toBeLessThan(MAX_STREAM_BYTES)

  const used = workerd.cpuSeconds()
  for (let times = 0; times < 4; times++) await trader.trade('reduce', { positionId, exitBps: 1000 })
  await trader.trade('reduce', { positionId, exitBps: 10000 })
  const isClosing = ({ event, data }: SocketStream['events'][number]) =>
    event === 'trade' && /"positionPnlUsdc":"/.test(data)
  await Promise.all(streams.map(stream => untilEvent(stream, isClosing)))
  // The stream of all agents also has the states of the registration, of which early streams get more.
  const isOfAgent = ({ data }: SocketStream['events'][number]) => JSON.parse(data).agentId === trader.agentId
  const received = streams.map(({ events }) =>
    events
      .slice(0, events.findIndex(isClosing) + 1)
      .filter(isOfAgent)
      .map(({ id }) => id),
  )
  expect(new Set(received.map(ids => ids.join())).size).toBe(1)
  expect(workerd.cpuSeconds() - used).toBeLessThan((received[0]?.length ?? 0) * STREAMS * MAX_EVENT_CPU_SECONDS)
  expect(memory() - opened).toBeLessThan((received[0]?.length ?? 0) * MAX_EVENT_BYTES)

  for (const { response } of streams) response.destroy()
  await vi.waitUntil(async () => (await openStreams()) === 0, { timeout: 30_000, interval: 100 })
})

it('a client resumes after its last event when workerd was killed and starts with another number of objects', async () => {
  const path = `/agents/${trader.agentId}/events`
  const before = await open(path)
  const { positionId } = await trader.trade('trade', { symbol: 'AAPL', usdcAmount: '20', exits })
  await untilEvent(before, isOpening(positionId))
  const { id = '' } = before.events.find(isOpening(positionId)) ?? {}
  await workerd.kill9()
  workerd = await startWorkerd({ ...options, vars: { ...options.vars, EVENT_STREAM_OBJECTS: '3' } })
  const { agentId, account } = trader
  trader = Object.assign(await connect(), { agentId, account })
  const { positionId: next } = await trader.trade('trade', { symbol: 'MSFT', usdcAmount: '20', exits })
  const after = await open(path, { 'last-event-id': id })
  await untilEvent(after, isOpening(next))
  const trades = after.events.filter(({ event }) => event === 'trade')
  expect(trades.map(({ data }) => JSON.parse(data).positionId)).toEqual([next])
  after.response.destroy()
})
