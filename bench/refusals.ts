import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startDevnet } from '../devnet/index.ts'
import { workerVars } from '../devnet/worker-vars.ts'
import { readOpenApiDocument } from '../scripts/openapi-document.ts'
import type { LoadRequest } from './load-child.ts'
import { startLoadGenerator } from './load-generator.ts'
import { describeMachine, table, writeSection } from './results-file.ts'
import { startWorkerd } from './workerd.ts'

// `npm run bench:refusals [-- --requests 300 --print]`: measures the CPU that a refused request costs the service, for
// every route and several sizes of the body. Prints a table, and writes its section of bench/results.md unless
// `--print` is given.
const { values } = parseArgs({
  options: { requests: { type: 'string', default: '300' }, print: { type: 'boolean', default: false } },
})
const count = Number(values.requests)

const TARGET_MS = 1
const CLIENTS = 8
const KIB = 1024
const SIZES = [0.2, 16, 60, 100, 1024]
const ADDRESS = '198.18.0.1'
const MCP_HEADERS = { accept: 'application/json, text/event-stream' }

type Row = { limit: string; route: string; size: number; statuses: string; ms: number }

const json = { 'content-type': 'application/json', 'cf-connecting-ip': ADDRESS }
const post = (path: string, body: string, headers: Record<string, string> = {}): LoadRequest => ({
  method: 'POST',
  path,
  body,
  headers: { ...json, ...headers },
})
/** JSON of a size: one long string, the form that costs least to send. */
const filled = (fields: object, bytes: number) => {
  const text = JSON.stringify({ ...fields, filler: '' })
  return `${text.slice(0, -2)}${'x'.repeat(Math.max(0, bytes - text.length))}"}`
}

const machine = describeMachine()
console.log(machine)
const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-refusals-'))
const devnet = await startDevnet()
const generator = startLoadGenerator({ isNice: true })
const rows: Row[] = []
try {
  // A unit pays for one request of each budget a minute, so all but the first are refused.
  const none = { REQUEST_BUDGET_ADDRESS: '1' }
  await measure({ ...none }, 'limits', async (cost, url) => {
    const limitOf = async ({ method, path, headers }: LoadRequest) => {
      const { headers: fields } = await fetch(`${url}${path}`, { method, headers: headers ?? {} })
      return /^"(\w+)"/.exec(fields.get('ratelimit-policy') ?? '')?.[1] ?? 'none'
    }
    for (const [route, methods] of Object.entries((await readOpenApiDocument()).paths))
      for (const method of Object.keys(methods).map(method => method.toUpperCase() as LoadRequest['method'])) {
        const path = route.replaceAll(/\{\w+\}/g, '1')
        const limit = await limitOf({ method, path, headers: json })
        if (method === 'GET') await cost(limit, route, 0, { method, path, headers: json })
        else for (const size of SIZES) await cost(limit, route, size, { ...post(path, filled({}, size * KIB)), method })
      }
    const tools = {
      svc_get_agent: 'reads',
      svc_submit_trade_intent: 'submissions',
      svc_submit_reduce_intent: 'reductions',
      svc_register_agent: 'registrations',
    }
    for (const [name, limit] of Object.entries(tools)) {
      for (const size of SIZES) {
        const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } }
        await cost(limit, `/mcp ${name}`, size, post('/mcp', filled(call, size * KIB), MCP_HEADERS))
      }
    }
    await cost(
      'mcpSessions',
      '/mcp initialize',
      0.2,
      post('/mcp', filled({ jsonrpc: '2.0', id: 1, method: 'initialize' }, 200), MCP_HEADERS),
    )
    await cost('streams', '/mcp', 0, { method: 'GET', path: '/mcp', headers: { ...json, accept: 'text/event-stream' } })
    await cost('reads', 'unknown path', 0, { method: 'GET', path: '/nowhere', headers: json })
  })
  const unlimited = { REQUEST_BUDGET_ADDRESS: '0', MAX_PARALLEL_REQUESTS: '0' }
  await measure(unlimited, 'content', async cost => {
    const values = `[${'1,'.repeat(50 * KIB)}1]`
    const deep = '['.repeat(60 * KIB)
    for (const [path, headers] of [
      ['/agents/1/trade-intents', {}],
      ['/agents/1/reduce-intents', {}],
      ['/agents/register', {}],
      ['/signing/verify', {}],
      ['/mcp', MCP_HEADERS],
    ] as const) {
      const maximum = path === '/mcp' ? 60 * KIB : 99 * KIB
      await cost('not JSON', path, maximum / KIB, post(path, 'x'.repeat(maximum), headers))
      await cost('too many values', path, maximum / KIB, post(path, values.slice(0, maximum), headers))
      await cost('too deep', path, 60, post(path, deep, headers))
      await cost('too large', path, 1024, post(path, filled({}, 1024 * KIB), headers))
      await cost('unknown fields', path, maximum / KIB, post(path, filled({ jsonrpc: '2.0' }, maximum), headers))
      await cost(
        '450 unknown fields',
        path,
        maximum / KIB,
        post(path, JSON.stringify(Object.fromEntries(Array.from({ length: 450 }, (_, i) => [`f${i}`, i]))), headers),
      )
    }
    const many = Array.from({ length: 240 }, () => ({ triggerBps: 'x' }))
    await cost(
      '240 wrong values',
      '/agents/1/trade-intents',
      20,
      post('/agents/1/trade-intents', JSON.stringify({ exits: many })),
    )
    await cost(
      'wrong media type',
      '/agents/1/trade-intents',
      99,
      post('/agents/1/trade-intents', 'x'.repeat(99 * KIB), { 'content-type': 'text/plain' }),
    )
    await cost(
      'forged session',
      '/mcp',
      60,
      post('/mcp', filled({ jsonrpc: '2.0', id: 1, method: 'ping' }, 60 * KIB), {
        ...MCP_HEADERS,
        'mcp-session-id': `${'0'.repeat(64)}.x.2025-11-25.all:all.e30.${'A'.repeat(22)}`,
      }),
    )
    await cost(
      'batch of 11',
      '/mcp',
      1,
      post(
        '/mcp',
        JSON.stringify(Array.from({ length: 11 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' }))),
        MCP_HEADERS,
      ),
    )
    await cost(
      'unknown method',
      '/mcp',
      0.2,
      post('/mcp', JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'x' }), MCP_HEADERS),
    )
    await cost('unknown path', '/nowhere', 0, { method: 'GET', path: '/nowhere', headers: json })
    await cost('unknown method of a path', '/vaults', 0, { method: 'DELETE', path: '/vaults', headers: json })
    await cost('long query', '/agents', 8, {
      method: 'GET',
      path: `/agents?vault=${'x'.repeat(8 * KIB)}`,
      headers: json,
    })
    await cost('long path', '/', 8, { method: 'GET', path: `/${'x/'.repeat(4 * KIB)}`, headers: json })
  })
} finally {
  generator.stop()
  await devnet.stop()
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}

const byRoute = Map.groupBy(rows, ({ limit, size }) => `${limit} ${size}`)
const worst = [...byRoute.values()].map(group => ({
  count: new Set(group.map(({ route }) => route)).size,
  ...group.reduce((a, b) => (b.ms > a.ms ? b : a)),
}))
const over = rows.filter(({ ms }) => ms > TARGET_MS)
const section = [
  '## CPU per refused request by route and size',
  `\`npm run bench:refusals\`: CPU of workerd per request, from ${count} requests of ${CLIENTS} clients per row, less what it uses when idle. First what is refused by a limit (429, or 413 above the largest body), for every route: of the routes of a limit, the one that costs most. Then what is refused for its content, without limits. Target: at most ${TARGET_MS} ms; ${over.length === 0 ? `met by all ${rows.length} measurements` : `missed by ${over.length} of ${rows.length} measurements`}.`,
  `Machine: ${machine}.`,
  table(
    ['refused by', 'routes', 'the dearest', 'KiB', 'responses', 'CPU'],
    worst.map(({ limit, count, route, size, statuses, ms }) => [
      limit,
      `${count}`,
      `\`${route}\``,
      `${size}`,
      statuses,
      `${ms.toFixed(2)} ms`,
    ]),
  ),
].join('\n\n')
console.log(`\n${section}`)
if (!values.print) writeSection('refusals', section)

type Cost = (limit: string, route: string, size: number, request: LoadRequest) => Promise<void>

/** Measures refusals of a service with other variables. */
async function measure(vars: Record<string, string>, name: string, run: (cost: Cost, url: string) => Promise<void>) {
  const workerd = await startWorkerd({
    vars: { ...workerVars(devnet.deployment), KEEPER_ENABLED: 'false', ...vars },
    persistTo: join(folder, name),
  })
  const load = (request: LoadRequest, times: number) =>
    generator.run({
      origin: workerd.url,
      requests: Array<LoadRequest>(times).fill(request),
      clients: CLIENTS,
      keepBodies: false,
      maxSeconds: 600,
      repeats: false,
    })
  try {
    await load({ method: 'GET', path: '/health/live', headers: {} }, 2_000)
    const idleFrom = workerd.cpuSeconds()
    await new Promise(resolve => setTimeout(resolve, 3_000))
    const idle = (workerd.cpuSeconds() - idleFrom) / 3
    const cost: Cost = async (limit, route, size, request) => {
      await load(request, count / 5) // uses up the limit, compiles
      const before = workerd.cpuSeconds()
      const { results, seconds: took } = await load(request, count)
      const ms = (1_000 * (workerd.cpuSeconds() - before - idle * took)) / results.length
      const statuses = [...new Set(results.map(({ status }) => status))].sort().join(', ')
      rows.push({ limit, route, size, statuses, ms })
      console.log(`${limit} ${route} ${size} KiB: ${ms.toFixed(3)} ms, ${results.length} × ${statuses}`)
    }
    await run(cost, workerd.url)
  } finally {
    await workerd.stop()
  }
}
