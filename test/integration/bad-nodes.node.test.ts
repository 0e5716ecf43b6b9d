import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Address, keccak256, parseAbi, stringToBytes, type TypedDataDefinition } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { startWorkerd, type Workerd } from '../../bench/workerd.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { asRealChain, unlimitedGas, workerVars } from '../../devnet/worker-vars.ts'
import { type BadNode, nodeFaults, nodeLies, startBadNode } from '../support/bad-node.ts'
import { createDevnetAgents } from '../support/devnet-agents.ts'
import { type Endpoint, toolCallOf } from '../support/tool-call.ts'

/**
 * Every endpoint responds within this time, whatever a node does. The time that the machine adds is not the service's.
 */
const MAX_RESPONSE_MS = 5_000
/** Ends a request that hangs. */
const MAX_HANG_MS = 60_000
const PING_PAUSE_MS = 25
const HASH = `0x${'5f'.repeat(32)}`

type Reply = { status: number; body: { code?: string; remedy?: string; [field: string]: unknown } }
type Service = Pick<Workerd, 'url' | 'stop'>
type Sent = { path: string; method?: 'POST' | 'PUT'; body?: object }

const signer = privateKeyToAccount(generatePrivateKey())
const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-bad-nodes-'))
let devnet: Devnet
let bad: BadNode
let alone: Service
let besideHealthy: Service
/** By the URL of a service. */
const delays = new Map<string, ReturnType<typeof watchDelays>>()
let endpoints: Endpoint[]
let agentId: bigint
let positionId: bigint

beforeAll(async () => {
  devnet = await startDevnet()
  bad = await startBadNode(devnet.rpcUrl)
  const agents = createDevnetAgents(devnet)
  agentId = await agents.register('genesis', signer)
  positionId = await agents.open(agentId, signer, { symbol: 'NVDA', amount: 50_000_000n })
  const ownAccounts = await newServiceAccounts()
  const start = (name: string, urls: string[], vars: Record<string, string> = {}) =>
    startWorkerd({
      vars: {
        ...workerVars(devnet.deployment),
        ...unlimitedGas,
        RPC_URL: urls.join(','),
        ...asRealChain,
        KEEPER_ENABLED: 'false',
        X402_ENABLED: 'false',
        ...vars,
      },
      persistTo: join(folder, name),
    })
  alone = await start('alone', [bad.url], ownAccounts)
  besideHealthy = await start('beside-healthy', [bad.url, devnet.rpcUrl])
  for (const { url } of [alone, besideHealthy]) delays.set(url, watchDelays(url))
  bad.fault = undefined
  endpoints = (await send(besideHealthy, { path: '/' })).body.endpoints as Endpoint[]
  // Starts the Durable Objects, migrates the database and lets each lane know its chain.
  for (const service of [alone, besideHealthy]) {
    for (const request of requests().reads) await send(service, request)
    expect(await send(service, await signedAdd(service))).toMatchObject({ status: 201 })
  }
})
afterAll(async () => {
  await Promise.all([...delays.values()].map(({ stop }) => stop()))
  await Promise.all([alone?.stop(), besideHealthy?.stop(), bad?.stop()])
  await devnet?.stop()
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
})

/** Returns variables with accounts of its own, because a lane pauses when another service uses its key. */
async function newServiceAccounts(): Promise<Record<string, string>> {
  const { contracts, accounts } = devnet.deployment
  const [executor, updater] = accounts.agents.slice(-2)
  if (!executor || !updater) throw new Error('The chain has too few accounts')
  const grant = (address: Address | undefined, role: string, account: Address) =>
    devnet.administer({
      address: address ?? '0x',
      abi: parseAbi(['function grantRole(bytes32 role, address account)']),
      functionName: 'grantRole',
      args: [keccak256(stringToBytes(role)), account],
    })
  await grant(contracts.TradeRouter, 'EXECUTOR_ROLE', executor.address)
  await grant(contracts.PriceOracle, 'ORACLE_UPDATER_ROLE', updater.address)
  return { EXECUTOR_PRIVATE_KEY: executor.privateKey, ORACLE_UPDATER_PRIVATE_KEY: updater.privateKey }
}

/** Sends requests that need no node, one after the other, and remembers how long the machine delays their responses. */
function watchDelays(url: string) {
  const measured: { endedAt: number; delayMs: number }[] = []
  let startedAt = performance.now()
  let isOver = false
  const delayMs = () => performance.now() - startedAt - PING_PAUSE_MS
  const watching = (async () => {
    while (!isOver) {
      startedAt = performance.now()
      await sleep(PING_PAUSE_MS)
      await (await fetch(`${url}/health`)).text()
      measured.push({ endedAt: performance.now(), delayMs: delayMs() })
    }
  })()
  watching.catch(() => {}) // `stop` rejects
  return {
    /** Returns the longest delay since a time. */
    longestSince(time: number): number {
      const recent = measured.filter(({ endedAt }) => endedAt >= time)
      return Math.max(0, delayMs(), ...recent.map(({ delayMs }) => delayMs))
    },
    stop() {
      isOver = true
      return watching
    },
  }
}

/** Runs a request of a service. Rejects if the response is not complete in time. */
async function inTime<Result>(
  { url }: Service,
  path: string,
  run: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const startedAt = performance.now()
  const result = await run(AbortSignal.timeout(MAX_HANG_MS))
  const tookMs = performance.now() - startedAt
  const delayMs = delays.get(url)?.longestSince(startedAt) ?? 0
  if (tookMs > MAX_RESPONSE_MS + delayMs)
    throw new Error(`${path} took ${tookMs} ms, of which ${delayMs} are the machine's`)
  return result
}

/** Sends a request. Rejects if the response is not complete in time. */
const send = (service: Service, sent: Sent): Promise<Reply> =>
  inTime(service, sent.path, signal => sendNow(service, sent, signal))

async function sendNow({ url }: Service, { path, body, method = 'POST' }: Sent, signal: AbortSignal): Promise<Reply> {
  const init = body && { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  const response = await fetch(`${url}${path}`, { signal, ...init })
  if (response.headers.get('content-type') !== 'text/event-stream')
    return { status: response.status, body: (await response.json()) as Reply['body'] }
  await response.body?.cancel()
  return { status: response.status, body: {} }
}

/**
 * Calls the tool of a request over MCP; undefined if it has none. An error has the status 500 only if it is INTERNAL.
 */
async function callTool(service: Service, sent: Sent): Promise<Reply | undefined> {
  const call = toolCallOf(endpoints, sent)
  if (call === undefined) return undefined
  const reply = await inTime(service, sent.path, async signal => {
    const response = await fetch(`${service.url}/mcp?toolsets=all`, { method: 'POST', signal, ...call })
    return response.text()
  })
  const json = JSON.parse(/^data: (\{.*)$/m.exec(reply)?.[1] ?? reply)
  const { result } = json as { result: { isError?: boolean; content: { text: string }[] } }
  const body = JSON.parse(result.content[0]?.text ?? '') as Reply['body']
  return { status: result.isError ? (body.code === 'INTERNAL' ? 500 : 502) : 200, body }
}

/** Sends requests over both surfaces at once. */
async function sendAll(service: Service, sent: Sent[]) {
  const replies = await Promise.all(
    sent.map(async request => ({
      request: request.path,
      http: await send(service, request),
      mcp: await callTool(service, request),
    })),
  )
  return replies.flatMap(({ request, http, mcp }) => [
    { request, surface: 'http', ...http },
    ...(mcp ? [{ request, surface: 'mcp', ...mcp }] : []),
  ])
}

/**
 * Requests to every endpoint. `reads` and `writes` need the chain: the bodies are read from it before they are refused.
 * `independent` ones need no chain.
 */
function requests() {
  const { vaults } = devnet.deployment
  const agent = `/agents/${agentId}`
  const position = `positionId=${positionId}`
  const signed = {
    deadline: `${Math.floor(Date.now() / 1000) + 3_600}`,
    nonce: '1',
    signature: `0x${'5f'.repeat(64)}1b`,
  }
  const spent = { usdcAmount: '10', minTokenOut: '0', maxSlippageBps: 100 }
  const exits = [{ triggerBps: -800, exitBps: 10_000 }]
  const registration = { vault: vaults.genesis, name: 'agent', metadataURI: 'https://agents.example/agent.json' }
  const toSent = (path: string): Sent => ({ path })
  const independent = [
    '/',
    '/health',
    '/health/history',
    `/intents/${HASH}`,
    '/.well-known/agent-registration.json',
  ].map(toSent)
  // Without payments and an operator these have nothing to read.
  const unconfigured: Sent[] = [
    { path: '/operator/intake' },
    { path: '/operator/index' },
    { path: '/operator/webhooks' },
    { path: '/operator/webhooks/1' },
    { path: '/operator/webhooks/1/free', method: 'POST' },
    { path: '/operator/index/replay', method: 'POST' },
    { path: `/operator/lanes/${vaults.genesis}/resume`, method: 'POST' },
    { path: '/metrics' },
    { path: `${agent}/feedback/345600` },
    { path: '/operator/intake', method: 'PUT', body: { buys: { open: true } } },
    { path: '/facilitator/supported' },
    { path: '/facilitator/verify', body: { x402Version: 2, paymentPayload: {}, paymentRequirements: {} } },
  ]
  const reads = [
    '/health/ready',
    '/vaults',
    '/vaults/genesis',
    '/vaults/genesis/tokens',
    '/vaults/genesis/stats',
    '/vaults/genesis/requests',
    '/tokens',
    '/tokens/NVDA/corporate-actions',
    '/tokens/NVDA/depth?usdcAmount=1000',
    '/prices',
    '/prices/reports?vault=genesis',
    '/trades',
    '/agents',
    '/leaderboard?minTrades=0',
    `${agent}/registration.json`,
    `${agent}/equity-history`,
    `${agent}/stats`,
    `${agent}/erc8004/link/quote`,
    `${agent}/positions`,
    `${agent}/positions/${positionId}`,
    `${agent}/positions/${positionId}/automation`,
    `${agent}/closed-positions`,
    `${agent}/risk-state`,
    `${agent}/trades`,
    `${agent}/events`,
    `${agent}/quota`,
    `${agent}/mandate`,
    `${agent}/mandate/quote`,
    `${agent}/stop/quote?action=reduceOnly`,
    `${agent}/owner/quote`,
    `${agent}/owner/acceptance/quote`,
    `${agent}/signer/quote`,
    `${agent}/cancel/quote`,
    `${agent}/first-loss/quote`,
    `${agent}/webhooks/quote?url=https://agents.example/events`,
    `${agent}/webhooks/list/quote`,
    `${agent}/webhooks/${HASH}/quote?action=test`,
    agent,
    `/agents/by-owner/${signer.address}`,
    `/agents/offered-to/${signer.address}`,
    '/agents/by-name/agent',
    `${agent}/owner/history`,
    '/agents/by-erc8004/1',
    `/agents/register/quote?signer=${signer.address}`,
    `${agent}/trade-intents/quote?symbol=NVDA&usdcAmount=10`,
    `${agent}/add-intents/quote?${position}&usdcAmount=10`,
    `${agent}/reduce-intents/quote?${position}&exitBps=5000`,
    `${agent}/exit-ladder-intents/quote?${position}`,
    `${agent}/orders/quote?type=limit&symbol=NVDA&usdcAmount=10&price=100`,
    `${agent}/orders`,
    `${agent}/orders/${HASH}`,
    '/prices/NVDA/candles',
    `/transactions/${HASH}`,
    '/signing/vectors',
    '/events?vault=genesis',
  ].map(toSent)
  const { deadline, signature } = signed
  const writes: Sent[] = [
    { path: `${agent}/trade-intents`, body: { symbol: 'NVDA', ...spent, exits, ...signed } },
    { path: `${agent}/add-intents`, body: { positionId: `${positionId}`, ...spent, ...signed } },
    { path: `${agent}/reduce-intents`, body: { positionId: `${positionId}`, exitBps: 5_000, ...signed } },
    { path: `${agent}/exit-ladder-intents`, body: { positionId: `${positionId}`, exits, ...signed } },
    {
      path: `${agent}/orders`,
      body: {
        side: 'open',
        symbol: 'NVDA',
        usdcAmount: '10',
        exits,
        maxSlippageBps: 100,
        condition: 'atOrBelow',
        price: '100',
        validUntil: '4102444800',
        ...signed,
      },
    },
    { path: `${agent}/orders/${HASH}/cancel`, body: signed },
    { path: `${agent}/what-if`, body: { prices: { NVDA: '110' } } },
    { path: `${agent}/mandate`, method: 'PUT', body: { mode: 'trade', ...signed } },
    { path: `${agent}/stop`, body: { action: 'reduceOnly', ...signed } },
    { path: `${agent}/owner`, body: { newOwner: devnet.deployment.accounts.relayer.address, ...signed } },
    { path: `${agent}/owner/acceptance`, body: { newSigner: signer.address, ...signed } },
    { path: `${agent}/signer`, body: { newSigner: devnet.deployment.accounts.relayer.address, ...signed } },
    { path: `${agent}/cancel`, body: { untilNonce: '9', ...signed } },
    { path: `${agent}/first-loss`, body: { shares: '1000000', ...signed } },
    {
      path: `${agent}/webhooks`,
      body: { url: 'https://agents.example/events', eventTypes: [], salt: HASH, deadline, signature },
    },
    { path: `${agent}/webhooks/list`, body: { deadline, signature } },
    { path: `${agent}/webhooks/${HASH}`, body: { action: 'test', salt: HASH, deadline, signature } },
    { path: '/agents/register', body: { ...registration, signer: signer.address, deadline, signature } },
    { path: `${agent}/erc8004/link`, body: { erc8004AgentId: '1', deadline, signature } },
    { path: '/prices/refresh', body: { symbols: ['NVDA'] } },
    {
      path: '/signing/verify',
      body: {
        primaryType: 'ReducePosition',
        message: { agentId: `${agentId}`, positionId: `${positionId}`, exitBps: 5_000, deadline, nonce: '1' },
        signature,
      },
    },
  ]
  return { independent, unconfigured, reads, writes }
}

/** Returns the signed body of an add, with the next nonce of the agent. */
async function signedAdd(service: Service): Promise<Required<Pick<Sent, 'path' | 'body'>>> {
  const path = `/agents/${agentId}/add-intents`
  const quote = await send(service, { path: `${path}/quote?positionId=${positionId}&usdcAmount=10` })
  const { EIP712Domain: _, ...types } = (quote.body.typedData as TypedDataDefinition).types
  const typedData = { ...(quote.body.typedData as TypedDataDefinition), types } as TypedDataDefinition
  const signature = await signer.signTypedData(typedData)
  return { path, body: { ...(quote.body.body as object), signature } }
}

/** Returns how many intents of the agent were executed. */
const executions = () =>
  devnet.client.readContract({
    address: devnet.deployment.contracts.TradeRouter ?? '0x',
    abi: tradeRouterAbi,
    functionName: 'nonces',
    args: [agentId],
  })

const refused = (codes: RegExp) => ({
  status: expect.toBeOneOf([502, 503]),
  body: { code: expect.stringMatching(codes), remedy: expect.any(String) },
})

test('the requests of this file reach every endpoint', () => {
  const { independent, unconfigured, reads, writes } = requests()
  const reached = [...independent, ...unconfigured, ...reads, ...writes].map(({ path, body, method }) => {
    const pathname = path.split('?')[0] as string
    const sentMethod = method ?? (body ? 'POST' : 'GET')
    return endpoints.find(
      endpoint =>
        endpoint.method.toUpperCase() === sentMethod &&
        new RegExp(`^${endpoint.path.replace(/\{\w+\}/g, '[^/]+')}$`).test(pathname) &&
        (!endpoint.path.includes('{') || !endpoints.some(other => other.path === pathname)),
    )
  })
  const nameOf = (endpoint: Endpoint | undefined) => `${endpoint?.method} ${endpoint?.path}`
  const missing = endpoints.map(nameOf).filter(name => !reached.map(nameOf).includes(name))
  expect(missing).toEqual([])
})

const isLong = inject('isLong')
const isOfDose = (_: string, index: number) => isLong || index % 3 === 0

describe.each(nodeFaults.filter(isOfDose))('a node that responds %s', fault => {
  test('alone makes every endpoint and tool refuse in time, with a code and a remedy', async () => {
    restore()
    const add = await signedAdd(alone)
    bad.fault = fault
    const { independent, unconfigured, reads, writes } = requests()
    for (const { status } of await sendAll(alone, independent)) expect([200, 404, 502]).toContain(status)
    for (const { status } of await sendAll(alone, unconfigured)) expect(status).not.toBe(500)
    for (const reply of await sendAll(alone, [...reads, ...writes, add]))
      expect(reply).toMatchObject({
        request: reply.request,
        ...refused(/^(CHAIN_UNREACHABLE|NOT_READY|HISTORY_UNAVAILABLE)$/),
      })
  })

  test('before a healthy one makes no endpoint or tool fail', async () => {
    bad.fault = fault
    await expectNoFailure()
  })

  test('before a healthy one does not keep an intent from being executed once', async () => {
    bad.fault = fault
    await expectExecutedOnce()
  })
})

describe.each(nodeLies.filter(isOfDose))('a node that lies about %s', lie => {
  test('alone makes no endpoint or tool respond late or with an unclear error', async () => {
    restore()
    const add = await signedAdd(alone)
    bad.fault = lie
    const { reads, writes } = requests()
    for (const { request, surface, status, body } of await sendAll(alone, [...reads, ...writes])) {
      expect({ request, surface, status }).not.toMatchObject({ status: 500 })
      if (status >= 400 && surface === 'http')
        expect({ request, body }).toMatchObject({ body: { code: expect.stringMatching(/^[A-Z][A-Z0-9_]+$/) } })
    }
    // A lane that has just read the head does not notice every lie.
    const submitted = await send(alone, add)
    if (submitted.status !== 201)
      expect(submitted).toMatchObject(
        refused(/^(CHAIN_UNREACHABLE|SUBMISSION_FAILED|SUBMISSION_UNKNOWN|EXECUTOR_BUSY)$/),
      )
    restore()
    await expect.poll(async () => (await send(alone, add)).status, { timeout: 30_000 }).toBe(201)
  })

  test('before a healthy one makes no endpoint or tool fail', async () => {
    bad.fault = lie
    await expectNoFailure()
  })

  test('before a healthy one does not keep an intent from being executed once', async () => {
    bad.fault = lie
    await expectExecutedOnce()
  })
})

test('an intent whose transaction no node includes is unknown in time, visible by its digest, and executed later', async () => {
  restore()
  const add = await signedAdd(alone)
  const before = await executions()
  bad.fault = 'the transactions it accepts'
  const unknown = await send(alone, add)
  expect(unknown).toMatchObject({ status: 502, body: { code: 'SUBMISSION_UNKNOWN', retryable: true } })
  const { digest } = unknown.body.details as { digest: string }
  expect((await send(alone, { path: `/intents/${digest}` })).body).toMatchObject({
    digest,
    state: expect.stringMatching(/^(prepared|sent)$/),
  })
  expect(await send(alone, add)).toMatchObject({ status: 502, body: { code: 'SUBMISSION_UNKNOWN' } })
  restore()
  await expect.poll(async () => (await send(alone, add)).status, { timeout: 30_000 }).toBe(201)
  expect((await send(alone, { path: `/intents/${digest}` })).body).toMatchObject({
    state: expect.stringMatching(/mined|final/),
  })
  expect(await executions()).toBe(before + 1n)
})

/** Makes the bad node a healthy one. */
function restore() {
  bad.fault = undefined
}

/** A busy machine answers more requests at once late, which is not the node's fault. */
const AT_ONCE = 8

async function expectNoFailure() {
  const { independent, reads, writes } = requests()
  const sent = [...independent, ...reads, ...writes]
  for (let start = 0; start < sent.length; start += AT_ONCE) {
    const replies = await sendAll(besideHealthy, sent.slice(start, start + AT_ONCE))
    expect(replies.filter(({ status, body }) => status === 500 || (status > 500 && isNodeFailure(body)))).toEqual([])
  }
}

const isNodeFailure = ({ code }: Reply['body']) =>
  /^(CHAIN_UNREACHABLE|HISTORY_UNAVAILABLE|NOT_READY|EXECUTOR_UNREACHABLE|SUBMISSION_\w+)$/.test(code ?? '')

/**
 * A node that lies about what it includes costs the lane a moment, so the response may be that the outcome is unknown.
 */
async function expectExecutedOnce() {
  const add = await signedAdd(besideHealthy)
  const before = await executions()
  await expect.poll(async () => (await send(besideHealthy, add)).status, { timeout: 30_000 }).toBe(201)
  expect(await executions()).toBe(before + 1n)
}
