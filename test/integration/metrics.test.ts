import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, expect, it, vi } from 'vitest'
import { workerVars } from '../../devnet/worker-vars.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createContext } from '../../src/context.ts'
import { createMetrics } from '../../src/metrics/client.ts'
import { sampleNames } from '../../src/metrics/open-metrics.ts'
import { count, type Delta } from '../../src/metrics/recorder.ts'
import { runSchedule } from '../../src/scheduled/scheduled.ts'
import { newTrader, submit } from '../support/actors.ts'
import { parseOpenMetrics, type Sample } from '../support/open-metrics.ts'
import { appWith, call, callOverHttp, callOverMcp, deployment, request } from '../support/surfaces.ts'

// HTTP only: a model that trades has no business with metrics.

const SECRET = 'the-operators-own'
const service = appWith({ OPERATOR_SECRET: SECRET })
const scrape = (fetch = service, bearer = SECRET) =>
  request('/metrics', { headers: { authorization: `Bearer ${bearer}` } }, fetch)
const samples = async (fetch = service): Promise<Sample[]> => {
  const response = await scrape(fetch)
  expect(response.status).toBe(200)
  return [...parseOpenMetrics(await textOf(response)).values()].flatMap(family => family.samples)
}
// workerd warns of text() on a media type that is not text/*.
const textOf = async (response: Response) => new TextDecoder().decode(await response.arrayBuffer())
/** Returns the sum of the samples of a name that have all the labels; undefined if there is none. */
const sumOf = (found: Sample[], name: string, labels: Record<string, string> = {}) => {
  const matching = found.filter(
    sample => sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  )
  return matching.length === 0 ? undefined : matching.reduce((sum, { value }) => sum + value, 0)
}
afterEach(() => vi.restoreAllMocks())

it('metrics are OpenMetrics text that every family describes', async () => {
  const response = await scrape()
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'application/openmetrics-text; version=1.0.0; charset=utf-8',
    'cache-control': 'no-store',
  })
  const families = parseOpenMetrics(await textOf(response))
  for (const [name, { type, help, samples }] of families) {
    expect({ name, type, help }).toEqual({ name, type: expect.not.stringMatching('unknown'), help: expect.any(String) })
    for (const sample of samples) expect(sampleNames()).toContain(sample.name)
  }
})

it('metrics are for the operator only', async () => {
  for (const headers of [{}, { authorization: 'Bearer other' }]) {
    const response = await request('/metrics', { headers }, service)
    expect({ status: response.status, body: await response.json() }).toMatchObject({
      status: 401,
      body: { code: 'OPERATOR_ONLY' },
    })
  }
  const unset = await scrape(appWith({}))
  expect({ status: unset.status, body: await unset.json() }).toMatchObject({
    status: 503,
    body: { code: 'OPERATOR_NOT_CONFIGURED' },
  })
})

it('requests, refusals and calls of nodes are counted by operation, surface, code, method and node', async () => {
  const node = new URL(deployment.rpcUrl).host
  const before = await samples()
  await callOverHttp('listTokens', {}, service)
  await callOverMcp('listTokens', {}, service)
  await callOverHttp('getAgent', { agentId: '999999' }, service)
  await callOverMcp('getAgent', { agentId: '999999' }, service)
  await request('/nowhere', {}, service)
  const after = await samples()
  const increase = (name: string, labels: Record<string, string>) =>
    (sumOf(after, name, labels) ?? 0) - (sumOf(before, name, labels) ?? 0)
  for (const surface of ['http', 'mcp']) {
    expect(increase('ats_requests_total', { operation: 'listTokens', surface, status: '2xx' })).toBe(1)
    expect(increase('ats_requests_total', { operation: 'getAgent', surface, status: '4xx' })).toBe(1)
    expect(increase('ats_request_duration_seconds_count', { operation: 'listTokens', surface })).toBe(1)
    expect(increase('ats_refusals_total', { code: 'AGENT_NOT_FOUND', surface })).toBe(1)
  }
  expect(increase('ats_requests_total', { operation: 'none', surface: 'http', status: '4xx' })).toBe(1)
  expect(increase('ats_rpc_requests_total', { method: 'eth_call', node, result: 'ok' })).toBeGreaterThanOrEqual(4)
  expect(increase('ats_rpc_request_duration_seconds_count', { method: 'eth_call', node })).toBeGreaterThanOrEqual(4)
})

it('a response from memory is counted for its operation', async () => {
  const cached = appWith({ OPERATOR_SECRET: SECRET, READ_LEASE_MS: '1000' })
  const labels = { operation: 'listTokens', surface: 'http', status: '2xx' }
  const before = sumOf(await samples(), 'ats_requests_total', labels) ?? 0
  for (let times = 0; times < 3; times++) await callOverHttp('listTokens', {}, cached)
  expect(sumOf(await samples(), 'ats_requests_total', labels)).toBe(before + 3)
})

it('a trade shows as a transaction with its gas, fee and time, and the lanes with depth, age and balance', async () => {
  const before = await samples()
  expect((await submit(await newTrader(), 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '25' })).status).toBe(201)
  const after = await samples()
  const account = 'executor 1'
  const increase = (name: string, labels: Record<string, string>) =>
    (sumOf(after, name, labels) ?? 0) - (sumOf(before, name, labels) ?? 0)
  expect(increase('ats_transactions_total', { account, kind: 'open', result: 'mined' })).toBe(1)
  expect(increase('ats_transaction_gas_total', { account, kind: 'open' })).toBeGreaterThan(100_000)
  expect(increase('ats_transaction_fees_ether_total', { account })).toBeGreaterThan(0)
  expect(increase('ats_inclusion_duration_seconds_count', { account })).toBe(1)
  for (const name of [account, 'relayer', 'updater', 'reporter']) {
    expect(sumOf(after, 'ats_lane_pending_transactions', { account: name })).toBe(0)
    expect(sumOf(after, 'ats_lane_oldest_pending_seconds', { account: name })).toBe(0)
    expect(sumOf(after, 'ats_lane_capacity', { account: name })).toBeGreaterThan(0)
    expect(sumOf(after, 'ats_account_balance_ether', { account: name })).toBeGreaterThan(0)
    expect(sumOf(after, 'ats_lane_paused', { account: name })).toBe(0)
  }
  const ready = await call('getReadiness')
  expect(sumOf(after, 'ats_ready')).toBe(ready.status === 200 ? 1 : 0)
  for (const name of ['ats_chain_head_age_seconds', 'ats_readiness_problems', 'ats_stale_prices', 'ats_event_streams'])
    expect(sumOf(after, name)).toBeGreaterThanOrEqual(0)
  expect(sumOf(after, 'ats_part_up', {})).toBe(after.filter(({ name }) => name === 'ats_part_up').length)
})

it('a node that is silent costs no scrape: what could not be read is said, and the rest is shown', async () => {
  const url = 'http://silent.example:8545'
  const original = globalThis.fetch.bind(globalThis)
  vi.spyOn(globalThis, 'fetch').mockImplementation((input, init) =>
    String(input).startsWith(url) ? new Promise(() => {}) : original(input as RequestInfo, init as RequestInit),
  )
  const startedAt = Date.now()
  const found = await samples(appWith({ OPERATOR_SECRET: SECRET, RPC_URL: `${url}/v2/key-of-the-operator` }))
  expect(Date.now() - startedAt).toBeLessThan(10_000) // ops/prometheus gives up then; the node is given four seconds
  expect(sumOf(found, 'ats_ready')).toBe(0)
  expect(sumOf(found, 'ats_part_up', { part: 'readiness' })).toBe(0)
  expect(sumOf(found, 'ats_part_up', { part: 'executor' })).toBe(1)
  expect(sumOf(found, 'ats_lane_pending_transactions', { account: 'executor 1' })).toBe(0)
})

it('ten scrapes at the same time read the state once', async () => {
  const shared = appWith({ OPERATOR_SECRET: SECRET, READ_LEASE_MS: '100', RPC_URL: `${deployment.rpcUrl}/scrapes` })
  const sent = vi.fn()
  const original = globalThis.fetch.bind(globalThis)
  vi.spyOn(globalThis, 'fetch').mockImplementation((input, init) => {
    if (!String(input).endsWith('/scrapes')) return original(input as RequestInfo, init as RequestInit)
    sent()
    return original(deployment.rpcUrl, init as RequestInit)
  })
  await scrape(shared).then(textOf)
  const once = sent.mock.calls.length
  sent.mockClear()
  const other = appWith({ OPERATOR_SECRET: SECRET, READ_LEASE_MS: '100', RPC_URL: `${deployment.rpcUrl}/scrapes` })
  const texts = await Promise.all(Array.from({ length: 10 }, () => scrape(other).then(textOf)))
  expect(new Set(texts).size).toBe(1)
  expect(sent.mock.calls.length).toBeLessThanOrEqual(2 * once)
})

it('a batch that arrives twice counts once, and one whose response was lost is sent again', async () => {
  const totals = env.METRIC_TOTALS.getByName('repeated')
  const delta: Delta = { name: 'ats_log_events', labels: ['repeated'], values: [3] }
  for (const sequence of [1, 1, 2, 1]) await totals.add({ isolate: 'a', sequence, deltas: [delta] })
  await totals.add({ isolate: 'b', sequence: 1, deltas: [delta] })
  expect(await totals.read()).toEqual([{ ...delta, values: [9] }])

  let losses = 2
  const lossy = {
    getByName: () => ({
      async add(batch: Parameters<typeof totals.add>[0]) {
        await totals.add(batch)
        if (losses-- > 0) throw new Error('the response was lost')
      },
      read: () => totals.read(),
    }),
  }
  const metrics = createMetrics({ METRIC_TOTALS: lossy as unknown as Env['METRIC_TOTALS'] }, false)
  count('ats_log_events', { event: 'repeated' })
  await expect(metrics.read()).rejects.toThrow('lost')
  count('ats_log_events', { event: 'repeated' })
  await expect(metrics.read()).rejects.toThrow('lost')
  const read = await metrics.read()
  expect(read.find(({ labels }) => labels[0] === 'repeated')?.values).toEqual([11])
  await runInDurableObject(totals, (_, { storage }) => storage.deleteAll())
})

it('totals go on after their object was evicted, and a batch that came before it still counts once', async () => {
  const totals = env.METRIC_TOTALS.getByName('evicted')
  const delta: Delta = { name: 'ats_log_events', labels: ['evicted'], values: [3] }
  await totals.add({ isolate: 'a', sequence: 1, deltas: [delta] })
  await evictDurableObject(totals)
  for (const sequence of [1, 2]) await totals.add({ isolate: 'a', sequence, deltas: [delta] })
  expect(await totals.read()).toEqual([{ ...delta, values: [6] }])
})

it('data points for Analytics Engine have the name, the labels and the values', async () => {
  const points: AnalyticsEngineDataPoint[] = []
  const dataset = { writeDataPoint: (point: AnalyticsEngineDataPoint) => void points.push(point) }
  const metrics = createMetrics({ METRIC_TOTALS: env.METRIC_TOTALS, METRICS: dataset as AnalyticsEngineDataset }, false)
  await metrics.read() // what other tests have recorded
  points.length = 0
  count('ats_refusals', { code: 'INVALID_NONCE', surface: 'http' })
  count('ats_refusals', { code: 'INVALID_NONCE', surface: 'http' })
  await metrics.read()
  expect(points).toContainEqual({
    indexes: ['ats_refusals'],
    blobs: ['ats_refusals', 'INVALID_NONCE', 'http'],
    doubles: [2],
  })
})

it('the history of the status counts the checks of each day, and forgets a day after ninety others', async () => {
  const metrics = createMetrics(env, false)
  const day = 1_800_057_600 // a midnight
  const check = (at: number, isReady: boolean, version = '1.0.0') =>
    metrics.addCheck({ at, version, problems: isReady ? [] : ['the node cannot be reached'] })
  await check(day + 300, true)
  await check(day + 600, false)
  await check(day + 900, true, '1.1.0')
  const first = { day, checks: 3, ready: 2, versions: ['1.0.0', '1.1.0'] }
  expect((await metrics.days()).find(row => row.day === day)).toEqual(first)
  for (let count = 1; count <= 90; count++) await check(day + count * 86_400, true, '1.1.0')
  const days = await metrics.days()
  expect(days.map(row => row.day)).toEqual(Array.from({ length: 90 }, (_, index) => day + (index + 1) * 86_400))
  const { body } = await callOverHttp('getHealthHistory', {})
  expect(body.days.at(-1)).toEqual({ day: `${day + 90 * 86_400}`, checks: 1, ready: 1, versions: ['1.1.0'] })
  await runInDurableObject(env.METRIC_TOTALS.getByName('totals'), (_, { storage }) => {
    for (const [key] of storage.kv.list({ prefix: 'day ' })) storage.kv.delete(key)
  })
})

it('an incident lasts from the first failed check to the next good one, with every problem that was found', async () => {
  const metrics = createMetrics(env, false)
  const day = 1_900_022_400
  const check = (minute: number, problems: string[], version = '1.0.0') =>
    metrics.addCheck({ at: day + minute * 60, version, problems })
  await check(5, ['the node cannot be reached'])
  await check(10, ['the node cannot be reached', 'no token has a fresh price'], '1.1.0')
  const open = (await callOverHttp('getHealthHistory', {})).body.incidents
  expect(open.at(-1)).toMatchObject({ startedAt: `${day + 300}`, endedAt: null })
  await check(15, [], '1.1.0')
  await check(20, [], '1.1.0')
  const { body } = await callOverHttp('getHealthHistory', {})
  expect(body.incidents).toHaveLength(open.length)
  expect(body.incidents.at(-1)).toEqual({
    startedAt: `${day + 300}`,
    endedAt: `${day + 900}`,
    version: '1.0.0',
    problems: ['the node cannot be reached', 'no token has a fresh price'],
  })
  for (let count = 0; count < 120; count++) await check(25 + 5 * count, count % 2 ? [] : ['no vault has idle USDC'])
  const { incidents } = (await callOverHttp('getHealthHistory', {})).body
  expect(incidents).toHaveLength(50)
  expect(incidents.at(-1)).toMatchObject({ startedAt: `${day + (25 + 5 * 118) * 60}` })
})

it('every five minutes, the cron trigger checks for the status whether trading is possible', async () => {
  const context = createContext(parseConfig(workerVars(deployment)), env)
  const midnight = 1_800_057_600
  for (const minute of [0, 1, 4, 5]) await runSchedule(context, (midnight + minute * 60) * 1_000)
  const row = (await createMetrics(env, false).days()).find(({ day }) => day === midnight)
  expect(row).toMatchObject({ checks: 2, ready: 2, versions: [expect.any(String)] })
})
