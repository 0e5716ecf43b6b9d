import { decodeEnvelope } from '@agent-trading-service/protocol/price-report'
import { createClient } from '@chainlink/data-streams-sdk'
import type { Hex } from 'viem'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ReportServer, startReportServer } from '../../devnet/report-server.ts'
import { createSharedReads } from '../../src/chain/combine-concurrent-reads.ts'
import { parseConfig } from '../../src/config/config.ts'
import type { Refusal } from '../../src/errors/refusal.ts'
import { createPriceReports } from '../../src/price-providers/data-streams.ts'

const KEY = 'f0000000-0000-4000-8000-000000000001'
const SECRET = 'provider secret'
const idOf = (name: number): Hex => `0x000b${name.toString(16).padStart(60, '0')}`
const NVDA = idOf(1)
let now = 1_790_000_000
let server: ReportServer

beforeAll(async () => {
  server = await startReportServer({
    configDigest: `0x0006${'cd'.repeat(30)}`,
    key: KEY,
    secret: SECRET,
    now: () => now,
    signatures: 1, // nothing verifies them here, and six for each of hundreds of streams take seconds
    priceOf: feedId => (feedId.endsWith('3e7') ? undefined : 180n * 10n ** 18n),
  })
})
afterAll(() => server.stop())
beforeEach(() => {
  now += 10
  server.fail(undefined)
})

const provider = (given: Partial<{ key: string; secret: string }> = {}) =>
  createPriceReports({ url: server.url, key: KEY, secret: SECRET, ...given }, createSharedReads)
const need = (...streams: Hex[][]) => ({ streams, feeds: [] })
const failureOf = (promise: Promise<unknown>): Promise<Refusal> =>
  promise.then(
    () => expect.fail('it passed'),
    e => e,
  )

describe('the provider of signed reports', () => {
  it('the provider of signed reports is asked with a signature that it accepts, for one stream or for many', async () => {
    const reports = provider()
    expect((await reports.newest([NVDA])).get(NVDA)?.report.observationsTimestamp).toBe(now)
    const many = Array.from({ length: 20 }, (_, index) => idOf(100 + index))
    expect([...(await reports.newest(many)).keys()]).toEqual(many)
  })

  it('the provider of signed reports is asked once for all who need a stream within a second', async () => {
    const reports = provider()
    const before = server.requests()
    await Promise.all(Array.from({ length: 50 }, () => reports.carriedFor(need([NVDA]))))
    expect(server.requests() - before).toBeLessThanOrEqual(2)
    now += 1
    await reports.carriedFor(need([NVDA]))
    expect(server.requests() - before).toBeLessThanOrEqual(2)
  })

  it('the provider of signed reports is asked once in a second for a stream of which it has no report', async () => {
    const reports = provider()
    const before = server.requests()
    for (let asked = 0; asked < 5; asked++) expect((await reports.newest([idOf(999)])).size).toBe(0)
    expect(server.requests() - before).toBe(1)
  })

  it('the provider of signed reports that sends an old report again has sent nothing newer', async () => {
    const reports = provider()
    const [first] = (await reports.newest([NVDA])).values()
    if (first === undefined) return expect.unreachable()
    expect(reports.accept(first)).toBe(false)
    now += 1
    const [newer] = (await provider().newest([NVDA])).values()
    if (newer === undefined) return expect.unreachable()
    expect(reports.accept(newer)).toBe(true)
    expect((await reports.newest([NVDA])).get(NVDA)?.report).toEqual(newer.report)
    expect(reports.accept(first)).toBe(false)
    expect((await reports.newest([NVDA])).get(NVDA)?.report).toEqual(newer.report)
  })

  it('the provider of signed reports gives the report of the stream in session, and none while the market is closed', async () => {
    const streams = [idOf(11), idOf(12), idOf(13)]
    for (const feedId of streams) server.set(feedId, { marketStatus: 4 })
    const { reports } = await provider().carriedFor(need(streams))
    const [overnight] = [...(await provider().newest([idOf(13)])).values()]
    expect(reports).toEqual([overnight?.payload])
    for (const feedId of streams) server.set(feedId, { marketStatus: 5 })
    expect(await provider().carriedFor(need(streams))).toEqual({ reports: [], feeds: [] })
    expect(await provider().carriedFor(need([idOf(999)]))).toEqual({ reports: [], feeds: [] })
  })

  it.each([
    ['down', 'HTTP status 503'],
    ['words', 'not JSON'],
    ['huge', 'did not respond'],
  ] as const)(
    'the provider of signed reports that is %s is named by what happened, in our words alone',
    async (how, problem) => {
      server.fail(how)
      const { status, body } = await failureOf(provider().newest([NVDA]))
      expect([status, body.code]).toEqual([503, 'PRICE_REPORTS_UNAVAILABLE'])
      expect(body.error).toContain(problem)
      expect(JSON.stringify(body)).not.toMatch(/secret|ignore previous|127\.0\.0\.1/)
    },
  )

  it('the provider of signed reports is refused by name if it refuses the credentials, or if there are none', async () => {
    expect((await failureOf(provider({ secret: 'another' }).newest([NVDA]))).body.error).toContain(
      'refuses the credentials',
    )
    expect((await failureOf(createPriceReports(undefined).newest([NVDA]))).body.error).toContain('no credentials')
    expect(await createPriceReports(undefined).carriedFor({ streams: [], feeds: [] })).toEqual({
      reports: [],
      feeds: [],
    })
  })

  it('the provider of signed reports that lacks one of many in a second is asked for its newest one', async () => {
    const many = Array.from({ length: 20 }, (_, index) => idOf(200 + index))
    server.fail('gaps')
    expect((await provider().newest(many)).size).toBe(20)
  })

  it('the provider of signed reports that failed is asked again for exits first', async () => {
    const reports = provider()
    server.fail('down')
    await failureOf(reports.newest([NVDA]))
    server.fail(undefined)
    const before = server.requests()
    expect((await failureOf(reports.newest([NVDA]))).body.error).toContain('failed a moment ago')
    expect(server.requests()).toBe(before)
    expect((await reports.newest([NVDA], { isExit: true })).size).toBe(1)
    expect((await reports.newest([idOf(2)])).size).toBe(1)
  })

  it('the provider of signed reports that fails for one stream gives those of all others, alone and together', async () => {
    const reports = provider()
    const broken = idOf(0xbad)
    server.fail('broken stream')
    expect((await failureOf(reports.newest([broken]))).body.error).toContain('cannot be decoded')
    expect((await reports.newest([NVDA])).size).toBe(1)
    expect([...(await provider().newest([broken, NVDA])).keys()]).toEqual([NVDA])
    const many = Array.from({ length: 20 }, (_, index) => idOf(300 + index))
    expect([...(await provider().newest([broken, ...many])).keys()]).toEqual(many)
    expect((await provider().carriedFor(need([broken], [NVDA]))).reports).toHaveLength(1)
    server.set(NVDA, { marketStatus: 5 })
    expect((await failureOf(provider().carriedFor(need([broken, NVDA])))).status).toBe(503)
    server.unset(NVDA)
    const feeds = [`0x${'fe'.repeat(20)}`] as const
    server.fail('down')
    expect(await provider().carriedFor({ streams: [[NVDA]], feeds })).toEqual({ reports: [], feeds })
  })

  it('the provider of signed reports is asked for hundreds of streams in requests whose URLs every server takes', async () => {
    const before = server.requests()
    const many = Array.from({ length: 250 }, (_, index) => idOf(1_000 + index))
    expect((await provider().newest(many)).size).toBe(250)
    expect(server.requests() - before).toBe(3)
    expect(server.longestUrl()).toBeLessThan(8_000)
  })

  it('the provider of signed reports that once sent a report of the future is believed again afterwards', async () => {
    const reports = provider()
    server.set(NVDA, { observedAt: now + 86_400 })
    const [future] = (await reports.newest([NVDA])).values()
    if (future === undefined) return expect.unreachable()
    server.set(NVDA, {})
    const [present] = (await provider().newest([NVDA])).values()
    if (present === undefined) return expect.unreachable()
    expect(reports.accept(present)).toBe(true)
    expect((await reports.newest([NVDA])).get(NVDA)?.payload).toBe(present.payload)
  })

  it('the provider of signed reports that returns the report of another stream is not believed', async () => {
    server.fail('other stream')
    expect((await failureOf(provider().newest([NVDA]))).body.error).toContain('the report of another stream')
  })
})

it("the report server of the embedded chain speaks to the provider's own client over REST and WebSocket", async () => {
  const client = createClient({
    apiKey: KEY,
    userSecret: SECRET,
    endpoint: server.url,
    wsEndpoint: server.url.replace('http', 'ws'),
  })
  const fetched = await client.getLatestReport(NVDA)
  expect(fetched.observationsTimestamp).toBe(now)
  const stream = client.createStream([NVDA])
  const sent = new Promise<{ fullReport: string }>(resolve => stream.on('report', resolve))
  await stream.connect()
  expect(decodeEnvelope((await sent).fullReport as Hex)).toEqual(decodeEnvelope(fetched.fullReport as Hex))
  await stream.close()
})

it('a deployment with half of the credentials of signed reports says which half is missing', () => {
  expect(parseConfig({ DATA_STREAMS_KEY: KEY }).problems).toContain(
    'DATA_STREAMS_SECRET: must be set together with DATA_STREAMS_KEY',
  )
  expect(parseConfig({ DATA_STREAMS_KEY: KEY, DATA_STREAMS_SECRET: SECRET }).dataStreams).toMatchObject({ key: KEY })
})
