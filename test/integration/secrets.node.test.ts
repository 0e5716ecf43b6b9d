import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { freePort } from '../../devnet/anvil.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { startWorker, type Worker } from '../../devnet/worker.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { parseOpenMetrics } from '../support/open-metrics.ts'
import { createScene } from '../support/scene.ts'

// Every secret of the configuration is a canary here. The node, the price provider and the facilitator fail in many
// ways and repeat in their errors all that was sent to them. Nothing the service prints or returns may contain a
// canary.

// The chain is its own, because a second service with the same keys would be foreign use of them.
let devnet: Devnet
const canaries = {
  rpcPath: 'canary-rpc-path-5f3a9c',
  rpcQuery: 'canary-rpc-query-71be20',
  rpcUser: 'canary-rpc-user-0d9e44',
  rpcPassword: 'canary-rpc-password-b812ff',
  operator: 'canary-operator-secret-9a1c',
  refresh: 'canary-refresh-secret-33d0',
  provider: 'canary-provider-key-4471',
  providerUrl: 'canary-provider-url-c0de',
  facilitator: 'canary-facilitator-path-e5e5',
  payment: 'canary-payment-signature-7f7f',
  otherBearer: 'canary-bearer-of-a-caller-2b2b',
}
/** What the servers do: `forward` everything but sends, or fail. */
let fault: 'forward' | 'error' | 'text' | 'reset' = 'error'
let server: Server
let service: Worker
let printed = ''
/** The URLs that the service requested. */
const requested: string[] = []
let signed: string[] = []
const bodies: string[] = []

beforeAll(async () => {
  devnet = await startDevnet({ blockMs: 150 })
  // The service closes connections whose response it does not wait for.
  server = createServer((request, response) => void misbehave(request, response).catch(() => request.socket.destroy()))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const node = `http://127.0.0.1:${port}/v2/${canaries.rpcPath}?key=${canaries.rpcQuery}`
  const withPassword = `http://${canaries.rpcUser}:${canaries.rpcPassword}@127.0.0.1:${port}/v2/${canaries.rpcPath}`
  service = await startWorker({
    port: await freePort(),
    output: (text: string) => {
      printed += text
    },
    vars: {
      ...workerVars(devnet.deployment),
      RPC_URL: `${node},${withPassword}`,
      OPERATOR_SECRET: canaries.operator,
      PRICE_REFRESH_SECRET: canaries.refresh,
      PRICE_PROVIDER: 'http',
      PRICE_PROVIDER_URL: `http://127.0.0.1:${port}/${canaries.providerUrl}`,
      PRICE_PROVIDER_KEY: canaries.provider,
      X402_ENABLED: 'true',
      X402_FACILITATOR_URL: `http://127.0.0.1:${port}/${canaries.facilitator}`,
      X402_FACILITATOR_TIMEOUT_MS: '1000',
      SUBMISSION_TIMEOUT_MS: '6000',
      // Its number is not valid, so the service lists it among its problems.
      GAS_BUDGET_AGENT: canaries.otherBearer,
    },
  })
})
afterAll(async () => {
  await service?.stop()
  server.closeAllConnections()
  server.close()
  await devnet?.stop()
})

/** Fails as `fault` says, and repeats in its error all that it was sent. */
async function misbehave(request: IncomingMessage, response: ServerResponse): Promise<void> {
  requested.push(`${request.url}`)
  const body = await text(request)
  // An error that repeats the URL, with lines that look like stack frames.
  const echo = `no luck with http://${canaries.rpcUser}:${canaries.rpcPassword}@node.example${request.url}\n    at ${request.url} ${JSON.stringify(request.headers)}`
  if (!request.url?.includes(canaries.rpcPath)) return void response.writeHead(500).end(echo)
  if (fault === 'reset') return void request.socket.destroy()
  if (fault === 'text') return void response.writeHead(502).end(`<h1>${echo}</h1>`)
  const calls = [JSON.parse(body)].flat() as { id: number; method: string }[]
  const isForwarded = fault === 'forward' && !calls.some(({ method }) => method.startsWith('eth_sendRaw'))
  const reply = isForwarded
    ? await fetch(devnet.deployment.rpcUrl, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      }).then(forwarded => forwarded.text())
    : JSON.stringify(
        ((errors: object[]) => (body.startsWith('[') ? errors : errors[0]))(
          calls.map(({ id }) => ({ jsonrpc: '2.0', id, error: { code: -32000, message: `${echo} ${body}` } })),
        ),
      )
  response.writeHead(200, { 'content-type': 'application/json' }).end(reply)
}

type Init = { method?: string; headers?: Record<string, string>; body?: unknown }

/** Sends a request and keeps the response for the check. */
async function send(path: string, { body, headers, ...init }: Init = {}) {
  const response = await fetch(service.url + path, {
    ...init,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const received = await response.text()
  bodies.push(`${[...response.headers].join('\n')}\n${received}`)
  return { status: response.status, body: received }
}
const operator = { authorization: `Bearer ${canaries.operator}` }
const refresh = () =>
  send('/prices/refresh', { method: 'POST', headers: { authorization: `Bearer ${canaries.refresh}` }, body: {} })
/** Calls a tool as a client that sends a bearer token and a payment, and keeps the result for the check. */
async function callTool(name: string, input: Record<string, unknown>): Promise<string> {
  const client = new Client({ name: 'canary', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await client.connect(
    new StreamableHTTPClientTransport(new URL('/mcp', service.url), {
      requestInit: { headers: { authorization: `Bearer ${canaries.otherBearer}` } },
    }),
  )
  const payment = { x402Version: 2, payload: { signature: canaries.payment } }
  const result = JSON.stringify(await client.callTool({ name, arguments: input, _meta: { 'x402/payment': payment } }))
  await client.close()
  bodies.push(result)
  return result
}

/** Returns the events of all log lines so far. */
const loggedEvents = () => [...printed.matchAll(/"event":"([^"]+)"/g)].map(([, event]) => event)

it('no failure makes the service print or return a secret', async () => {
  // The keeper, the indexer and the lanes work on their own, and fail; so does the cron trigger.
  for (const next of ['error', 'text', 'reset'] as const) {
    fault = next
    for (const path of [
      '/',
      '/health',
      '/health/ready',
      '/vaults',
      '/tokens',
      '/agents/1',
      '/agents/1/positions',
      '/prices',
    ])
      await send(path, { headers: next === 'text' ? operator : { authorization: `Bearer ${canaries.otherBearer}` } })
    await send('/metrics', { headers: operator })
    expect(await callTool('svc_list_vaults', {})).toContain('CHAIN_UNREACHABLE')
    await callTool('svc_get_agent_positions', { agentId: '1' })
    await refresh()
    await send('/cdn-cgi/handler/scheduled')
    await send('/agents/register', {
      method: 'POST',
      headers: {
        'payment-signature': btoa(JSON.stringify({ x402Version: 2, payload: { signature: canaries.payment } })),
      },
      body: { name: 'canary', signature: `0x${'5a'.repeat(65)}` },
    })
  }
  await vi.waitUntil(
    () =>
      ['history failure', 'keeper failure', 'lag unknown', 'price refresh failed'].every(event =>
        loggedEvents().includes(event),
      ),
    30_000,
  )

  // A signed intent whose transaction no node accepts, and a fee that no facilitator settles.
  fault = 'forward'
  await vi.waitFor(
    async () => expect((await send('/health/ready', { headers: operator })).body).toContain('GAS_BUDGET_AGENT'),
    { timeout: 30_000, interval: 500 },
  )
  const scene = createScene(service.url, devnet.deployment)
  const agent = await scene.register(9, 'canary')
  const outcome = await scene
    .trade(agent, 'open', { symbol: 'NVDA', usdcAmount: '25' })
    .catch((error: Error) => error.message)
  expect(outcome).toContain('SUBMISSION_')
  bodies.push(JSON.stringify(outcome))
  await refresh()
  const account = privateKeyToAccount(generatePrivateKey())
  signed = [await account.signMessage({ message: 'canary' })]
  await send('/signing/verify', { method: 'POST', body: { digest: `0x${'11'.repeat(32)}`, signature: signed[0] } })
  await send('/health/ready', { headers: operator })
  await send('/health/ready')

  const { body: metrics } = await send('/metrics', { headers: operator })
  const families = parseOpenMetrics(metrics)
  const nodes = families.get('ats_rpc_requests')?.samples.map(({ labels }) => labels.node)
  expect(new Set(nodes)).toEqual(new Set([`127.0.0.1:${port()}`, `127.0.0.1:${port()} 2`]))

  const keys = Object.values(devnet.deployment.accounts).flatMap(entry =>
    [entry].flat().map(({ privateKey }) => privateKey),
  )
  const secrets = {
    ...canaries,
    ...Object.fromEntries([...keys, ...signed].map((key, index) => [`key ${index}`, key.slice(2)])),
  }
  for (const path of [canaries.rpcPath, canaries.rpcQuery, canaries.providerUrl, canaries.facilitator])
    expect(requested.filter(url => url.includes(path)).length).toBeGreaterThan(0)
  const found = Object.entries(secrets).flatMap(([name, secret]) => [
    ...(printed.includes(secret) ? [`${name} in the output: ${around(printed, secret)}`] : []),
    ...bodies.filter(body => body.includes(secret)).map(body => `${name} in a response: ${around(body, secret)}`),
  ])
  expect(found).toEqual([])
})

it('every line of the log is JSON with a level and an event or a code, and refusals have the request id', () => {
  // wrangler puts its own tag in front of what the Worker prints.
  const lines = printed.match(/\{"level":.*\}/g) ?? []
  expect(lines.length).toBeGreaterThan(5)
  const parsed = lines.map(line => JSON.parse(line) as Record<string, unknown>)
  for (const line of parsed) {
    expect(line).toMatchObject({ level: expect.stringMatching(/^(error|warn)$/) })
    expect(line.event ?? line.code).toEqual(expect.any(String))
    if (line.code !== undefined && line.event === undefined)
      expect(line).toMatchObject({
        requestId: expect.any(String),
        path: expect.any(String),
        status: expect.any(Number),
      })
  }
  expect(parsed.filter(({ digest }) => digest !== undefined).length).toBeGreaterThan(0)
})

const port = () => (server.address() as AddressInfo).port
const around = (content: string, secret: string) => {
  const index = content.indexOf(secret)
  return content.slice(Math.max(0, index - 100), index + secret.length + 20)
}
