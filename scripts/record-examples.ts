import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../devnet/anvil.ts'
import { startDevnet } from '../devnet/index.ts'
import { startWorker } from '../devnet/worker.ts'
import { workerVars } from '../devnet/worker-vars.ts'
import type { RecordedExamples } from '../src/http/openapi-document.ts'
import type { Json } from './demo-service.ts'
import { type Life, liveExampleLife, type Send } from './example-life.ts'
import { type DescribedOperation, exampleRecorder, trimmed } from './example-recorder.ts'
import { endExampleWeek } from './example-week.ts'

// `npm run examples`: records what every operation responds on the embedded chain, for the OpenAPI document and the API
// reference. Run it after a change of an operation, and commit src/generated/recorded-examples.json.

const FILE = join(import.meta.dirname, '../src/generated/recorded-examples.json')
const BASE_URL = 'https://api-31337.agents.example'
const MISSING: Record<string, string> = {
  agentId: '999999',
  positionId: '999999',
  erc8004AgentId: '999999',
  id: 'nowhere',
  symbol: 'NOPE',
  vault: 'nowhere',
  txHash: `0x${'0'.repeat(64)}`,
  digest: `0x${'0'.repeat(64)}`,
  orderId: `0x${'0'.repeat(64)}`,
  type: 'limit',
}
/** More than the budget of an address holds. */
const MAX_REGISTRATIONS = 1_000

const devnet = await startDevnet({ baseUrl: BASE_URL })
const OPERATOR_SECRET = 'example-secret-of-the-operator'
// The host of the example's webhook need not resolve.
const vars: Record<string, string> = {
  ...workerVars(devnet.deployment),
  OPERATOR_SECRET,
  WEBHOOK_LOCAL_TARGETS: 'true',
}
try {
  const { recorded, operations } = await withService(vars, record)
  // Errors that only a deployment with missing parts has.
  const { CHAIN_ID, RPC_URL, CONTRACTS, PRICE_PROVIDER, ...rest } = vars
  await withService({ ...rest }, async url => addError(recorded, `${url}/vaults`))
  await withService({ ...rest, CHAIN_ID, RPC_URL: 'http://127.0.0.1:1', CONTRACTS } as typeof vars, async url => {
    await addError(recorded, `${url}/vaults`)
    await addError(recorded, `${url}/prices/refresh`, { method: 'POST' })
  })
  const unrecorded = operations.filter(({ id, responses }) => !isComplete(recorded, id, responses))
  if (unrecorded.length > 0)
    throw new Error(`Not every status has an example: ${unrecorded.map(({ id }) => id).join(', ')}.`)
  const lines = Object.entries(recorded.operations).map(([id, entry]) => `"${id}":${JSON.stringify(entry)}`)
  writeFileSync(FILE, `{"operations":{\n${lines.sort().join(',\n')}\n},"errors":${JSON.stringify(recorded.errors)}}\n`)
  console.log(`${lines.length} operations recorded`)
} finally {
  await devnet.stop()
}

async function withService<T>(env: Record<string, string>, use: (url: string) => Promise<T>): Promise<T> {
  const worker = await startWorker({ port: await freePort(), vars: env })
  try {
    return await use(worker.url)
  } finally {
    await worker.stop()
  }
}

async function record(url: string) {
  const document: Json = await fetch(`${url}/docs/swagger.json`).then(response => response.json())
  const operations = operationsOf(document)
  const recorder = exampleRecorder(operations)
  const send: Send = async (method, path, input, headers = {}) => {
    const body = input === undefined ? {} : { body: JSON.stringify(input) }
    const contentType = input === undefined ? {} : { 'content-type': 'application/json' }
    const request = new Request(url + path, { method, headers: { ...contentType, ...headers }, ...body })
    const response = await recorder.fetch(request)
    return { status: response.status, body: await response.json().catch(() => undefined) }
  }

  await send('POST', '/prices/refresh', { symbols: ['NVDA', 'AAPL'] })
  await send('POST', '/prices/refresh', { force: true })
  const authorization = { authorization: `Bearer ${OPERATOR_SECRET}` }
  const closed = { open: false, reason: 'The venue is down.' }
  await send('PUT', '/operator/intake', { buys: closed }, authorization)
  await send('PUT', '/operator/intake', { buys: { open: true } }, authorization)
  await send('GET', '/operator/intake', undefined, authorization)
  await send('GET', '/operator/index', undefined, authorization)
  await send('POST', '/operator/index/replay', undefined, authorization)
  await send('GET', '/operator/webhooks', undefined, authorization)
  await send('GET', '/operator/webhooks/1', undefined, authorization)
  await send('POST', '/operator/webhooks/1/free', { reason: 'It was not used.' }, authorization)
  await send('POST', `/operator/lanes/${devnet.deployment.accounts.executor.address}/resume`, undefined, authorization)
  const life = await liveExampleLife(devnet, url, send)
  for (const path of [
    '/vaults',
    `/agents/${life.agentId}/trades`,
    '/trades?vault=genesis&limit=2',
    `/agents/${life.agentId}/equity-history`,
    '/prices/NVDA/candles',
    '/tokens/NVDA/depth?usdcAmount=1000',
  ])
    for (const Accept of ['application/json', 'text/csv', 'text/markdown'])
      await send('GET', path, undefined, { Accept })
  await send('GET', '/metrics', undefined, authorization)
  for (const operation of operations) {
    const isStream = operation.path.endsWith('/events')
    if (isStream) await recordEvents(url, operation, life, recorder.recordStream)
    else if (operation.method === 'get') await recordRead(operation, life, recorder.recorded, send)
    await recordRefusals(operation, life, send)
  }
  await send('GET', await endExampleWeek(devnet, url))
  await send('POST', '/signing/verify', { text: 'x'.repeat(101 * 1024) })
  await addError(recorder.recorded, `${url}/nowhere`)
  await addError(recorder.recorded, `${url}/signing/verify`, stalledPost())
  const encoded = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
  await addError(recorder.recorded, `${url}/signing/verify`, { method: 'POST', headers: encoded, body: '{}' })
  for (let sent = 0; sent < MAX_REGISTRATIONS && recorder.recorded.errors[429] === undefined; sent++) {
    const response = await fetch(`${url}/agents/register`, { method: 'POST' })
    if (response.status === 429) recorder.recorded.errors[429] = trimmed(await response.json())
    else await response.body?.cancel()
  }
  return { recorded: recorder.recorded, operations }
}

function operationsOf({ paths }: Json): DescribedOperation[] {
  return Object.entries<Json>(paths).flatMap(([path, item]) =>
    Object.entries<Json>(item).map(([method, { operationId, parameters = [], requestBody, responses }]) => ({
      id: operationId,
      method,
      path,
      parameters,
      hasBody: requestBody !== undefined,
      responses: Object.keys(responses),
    })),
  )
}

/** Returns the path of an operation with its path parameters from `values`. */
function filled(path: string, values: Record<string, string>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] ?? `{${name}}`))
}

/** Reads what the agent's life did not. */
async function recordRead(
  { id, path, parameters }: DescribedOperation,
  life: Life,
  { operations }: RecordedExamples,
  send: Send,
) {
  if (operations[id]?.request !== undefined) return
  const required = parameters.filter(({ in: place, required }) => place === 'query' && required === true)
  const query = new URLSearchParams(required.map(({ name }) => [name, life[name as keyof Life] ?? '']))
  await send('GET', `${filled(path, life)}${query.size > 0 ? `?${query}` : ''}`)
}

/** Sends what an operation refuses: an unknown field, and the id of something that does not exist. */
async function recordRefusals(
  { method, path, hasBody, parameters, responses }: DescribedOperation,
  life: Life,
  send: Send,
) {
  const verb = method.toUpperCase() as 'GET'
  await send(verb, `${filled(path, life)}?unknown=1`, hasBody ? { unknown: 1 } : undefined)
  if (!responses.includes('404') || hasBody) return
  const required = parameters.filter(
    ({ in: place, name, required }) => place === 'query' && (required || name === 'vault'),
  )
  const query = new URLSearchParams(required.map(({ name }) => [name, MISSING[name] ?? 'flatten']))
  await send(verb, `${filled(path, MISSING)}${query.size > 0 ? `?${query}` : ''}`)
}

/** Records the first events of a stream that resumes before the life of the agent. */
async function recordEvents(
  url: string,
  { path }: DescribedOperation,
  life: Life,
  recordStream: (request: Request, events: string) => void,
) {
  const request = new Request(`${url}${filled(path, life)}`)
  const trades: Json = await fetch(`${url}/agents/${life.agentId}/trades?limit=100`).then(response => response.json())
  const [first] = trades.trades.slice(-1)
  const abort = new AbortController()
  const headers = { 'Last-Event-ID': `${first.blockNumber}-${first.logIndex}` }
  const response = await fetch(request, { headers, signal: abort.signal })
  let text = ''
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk
    const events = text.split('\n\n').filter(event => event.includes('\ndata: '))
    if (events.length < 3) continue
    recordStream(request, `${events.slice(0, 2).join('\n\n')}\n\n`)
    break
  }
  abort.abort()
}

/** Records an error of a status that has none yet. */
async function addError({ errors }: RecordedExamples, url: string, init?: RequestInit) {
  const response = await fetch(url, init)
  if (response.status < 400) throw new Error(`${url} returned ${response.status}.`)
  errors[response.status] ??= trimmed(await response.json())
}

/** A request with a body that does not end. */
function stalledPost(): RequestInit {
  const body = new ReadableStream<Uint8Array>({
    start: controller => controller.enqueue(new TextEncoder().encode('{')),
  })
  return { method: 'POST', body, duplex: 'half' } as RequestInit
}

/** Tells whether every success of an operation is recorded, and every error of it somewhere. */
function isComplete({ operations, errors }: RecordedExamples, id: string, responses: string[]): boolean {
  return responses.every(
    status =>
      status === '304' ||
      operations[id]?.responses[status] !== undefined ||
      (Number(status) >= 400 && errors[status] !== undefined),
  )
}
