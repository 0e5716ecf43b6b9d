import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TypedDataDefinition } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWorkerd, type Workerd } from '../../bench/workerd.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { type BadNode, type NodeFault, nodeFaults, startBadNode } from '../support/bad-node.ts'
import { createDevnetAgents } from '../support/devnet-agents.ts'

/** Every endpoint responds within this time, whatever a node does. */
const MAX_RESPONSE_MS = 5_000
const HASH = `0x${'5f'.repeat(32)}`

type Reply = { status: number; body: { code?: string; remedy?: string; [field: string]: unknown } }
type Service = Pick<Workerd, 'url' | 'stop'>

const signer = privateKeyToAccount(generatePrivateKey())
const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-bad-nodes-'))
let devnet: Devnet
let bad: BadNode
let alone: Service
let besideHealthy: Service
let agentId: bigint
let positionId: bigint

beforeAll(async () => {
  devnet = await startDevnet()
  bad = await startBadNode()
  const agents = createDevnetAgents(devnet)
  agentId = await agents.register('genesis', signer)
  positionId = await agents.open(agentId, signer, { symbol: 'NVDA', amount: 50_000_000n })
  const start = (name: string, urls: string[]) =>
    startWorkerd({
      vars: {
        ...workerVars(devnet.deployment),
        RPC_URL: urls.join(','),
        KEEPER_ENABLED: 'false',
        X402_ENABLED: 'false',
      },
      persistTo: join(folder, name),
    })
  alone = await start('alone', [bad.url])
  besideHealthy = await start('beside-healthy', [bad.url, devnet.rpcUrl])
  bad.fault = 'with a closed connection'
  // Starts the Durable Objects and migrates the database.
  for (const { path } of requests().reads) await send(besideHealthy, path)
})
afterAll(async () => {
  await Promise.all([alone?.stop(), besideHealthy?.stop(), bad?.stop()])
  await devnet?.stop()
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
})

/** Sends a request. Rejects if the response is not complete in time. */
async function send({ url }: Service, path: string, body?: object): Promise<Reply> {
  const signal = AbortSignal.timeout(MAX_RESPONSE_MS)
  const init = body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  const response = await fetch(`${url}${path}`, { signal, ...init })
  if (response.headers.get('content-type') !== 'text/event-stream')
    return { status: response.status, body: (await response.json()) as Reply['body'] }
  await response.body?.cancel()
  return { status: response.status, body: {} }
}

/** Requests to the endpoints, with bodies that are read from the chain before they are refused. `independent` ones need no chain. */
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
  const independent = ['/', '/health']
  const reads = [
    '/health/ready',
    '/vaults',
    '/vaults/genesis',
    '/vaults/genesis/tokens',
    '/vaults/genesis/stats',
    '/tokens',
    '/prices',
    '/agents',
    `${agent}/equity-history`,
    `${agent}/erc8004/link/quote`,
    `${agent}/positions`,
    `${agent}/positions/${positionId}`,
    `${agent}/positions/${positionId}/automation`,
    `${agent}/closed-positions`,
    `${agent}/risk-state`,
    `${agent}/trades`,
    `${agent}/events`,
    agent,
    `/agents/by-owner/${signer.address}`,
    '/agents/by-erc8004/1',
    `/agents/register/quote?signer=${signer.address}`,
    `${agent}/trade-intents/quote?symbol=NVDA&usdcAmount=10`,
    `${agent}/add-intents/quote?${position}&usdcAmount=10`,
    `${agent}/reduce-intents/quote?${position}&exitBps=5000`,
    `${agent}/exit-ladder-intents/quote?${position}`,
    `/transactions/${HASH}`,
    '/signing/vectors',
    '/events?vault=genesis',
  ].map(path => ({ path, body: undefined }))
  const writes = [
    { path: `${agent}/trade-intents`, body: { symbol: 'NVDA', ...spent, exits, ...signed } },
    { path: `${agent}/add-intents`, body: { positionId: `${positionId}`, ...spent, ...signed } },
    { path: `${agent}/reduce-intents`, body: { positionId: `${positionId}`, exitBps: 5_000, ...signed } },
    { path: `${agent}/exit-ladder-intents`, body: { positionId: `${positionId}`, exits, ...signed } },
    {
      path: '/agents/register',
      body: { ...registration, signer: signer.address, deadline: signed.deadline, signature: signed.signature },
    },
    {
      path: `${agent}/erc8004/link`,
      body: { erc8004AgentId: '1', deadline: signed.deadline, signature: signed.signature },
    },
    {
      path: '/signing/verify',
      body: {
        primaryType: 'ReducePosition',
        message: {
          agentId: `${agentId}`,
          positionId: `${positionId}`,
          exitBps: 5_000,
          deadline: signed.deadline,
          nonce: '1',
        },
        signature: signed.signature,
      },
    },
  ]
  return { independent, reads, writes }
}

describe.each(nodeFaults)('a node that responds %s', (fault: NodeFault) => {
  test('alone makes every endpoint refuse in time, with a code and a remedy', async () => {
    bad.fault = fault
    const { independent, reads, writes } = requests()
    for (const path of independent) expect(await send(alone, path)).toMatchObject({ status: 200 })
    const replies = await Promise.all(
      [...reads, ...writes].map(async ({ path, body }) => ({ path, ...(await send(alone, path, body)) })),
    )
    for (const { path, status, body } of replies)
      expect({ path, status, body }).toMatchObject({
        path,
        status: expect.toBeOneOf([502, 503]),
        body: {
          code: expect.stringMatching(/^(CHAIN_UNREACHABLE|NOT_READY|HISTORY_UNAVAILABLE)$/),
          remedy: expect.any(String),
        },
      })
  })

  test('before a healthy one makes no endpoint fail', async () => {
    bad.fault = fault
    const { independent, reads, writes } = requests()
    const paths = [...independent.map(path => ({ path, body: undefined })), ...reads, ...writes]
    const replies = await Promise.all(
      paths.map(async ({ path, body }) => ({ path, ...(await send(besideHealthy, path, body)) })),
    )
    expect(replies.filter(({ status }) => status >= 500)).toEqual([])
  })

  test('before a healthy one does not keep an intent from being executed once', async () => {
    bad.fault = fault
    const quote = await send(
      besideHealthy,
      `/agents/${agentId}/add-intents/quote?positionId=${positionId}&usdcAmount=10`,
    )
    const { EIP712Domain: _, ...types } = (quote.body.typedData as TypedDataDefinition).types
    const typedData = { ...(quote.body.typedData as TypedDataDefinition), types } as TypedDataDefinition
    const signature = await signer.signTypedData(typedData)
    const before = await executorNonce()
    const body = { ...(quote.body.body as object), signature }
    expect(await send(besideHealthy, `/agents/${agentId}/add-intents`, body)).toMatchObject({ status: 201 })
    expect(await executorNonce()).toBe(before + 1)
  })
})

const executorNonce = () => devnet.client.getTransactionCount({ address: devnet.deployment.accounts.executor.address })
