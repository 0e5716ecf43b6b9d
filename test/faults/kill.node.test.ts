import type { TypedDataDefinition } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { prepareService, type Service } from './service.ts'

// biome-ignore lint/suspicious/noExplicitAny: responses of the API
type Json = any

const AGENTS = 8
let devnet: Devnet
let service: Service
let remove = () => {}

beforeAll(async () => {
  devnet = await startDevnet({ blockMs: 150 })
  const prepared = await prepareService()
  remove = prepared.remove
  service = await prepared.start({
    ...workerVars(devnet.deployment),
    X402_ENABLED: 'false',
    KEEPER_ENABLED: 'false',
    SUBMISSION_TIMEOUT_MS: '15000',
  })
})
afterAll(async () => {
  await service?.stop()
  await devnet?.stop()
  remove()
})

const get = async (path: string): Promise<Json> => (await fetch(`${service.url}${path}`)).json()
async function post(path: string, body: Json): Promise<{ status: number; body: Json }> {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`${service.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: response.status, body: await response.json() }
}

/** Registers an agent and returns the signed body of its first trade. */
async function signFirstTrade() {
  const account = privateKeyToAccount(generatePrivateKey())
  const signed = async ({ body, typedData: { types, ...rest } }: Json) => {
    const { EIP712Domain: _, ...own } = types
    return { ...body, signature: await account.signTypedData({ ...rest, types: own } as TypedDataDefinition) }
  }
  const facts = { vault: `${devnet.deployment.vaults.genesis}`, name: 'agent', metadataURI: 'https://agents.example/a' }
  const query = new URLSearchParams({ signer: account.address, ...facts })
  const { body } = await post('/agents/register', await signed(await get(`/agents/register/quote?${query}`)))
  const path = `/agents/${body.agentId}/trade-intents`
  return { path, body: await signed(await get(`${path}/quote?symbol=NVDA&usdcAmount=25`)) }
}

test('after kill -9 accepted intents are mined without another request, and the same bodies return their results', async () => {
  const { client, deployment } = devnet
  const { address } = deployment.accounts.executor
  const rpc = (method: string, ...params: unknown[]) =>
    client.request<{ Method: string; Parameters: unknown[]; ReturnType: unknown }>({ method, params })
  const trades = await Promise.all(Array.from({ length: AGENTS }, signFirstTrade))
  const before = await client.getTransactionCount({ address })

  await devnet.setMining(false)
  const interrupted = trades.map(({ path, body }) => post(path, body).catch(() => 'the connection closed'))
  await vi.waitFor(
    async () => expect(await client.getTransactionCount({ address, blockTag: 'pending' })).toBe(before + AGENTS),
    { timeout: 240_000 },
  )
  await rpc('anvil_dropAllTransactions') // so the node does not have them either
  await service.kill()
  for (const response of await Promise.all(interrupted))
    if (response !== 'the connection closed')
      expect(response).toMatchObject({ status: 502, body: { code: 'SUBMISSION_UNKNOWN' } })
  await devnet.setMining(true)

  await vi.waitFor(async () => expect(await client.getTransactionCount({ address })).toBe(before + AGENTS), {
    timeout: 240_000,
    interval: 50,
  })
  const responses = await Promise.all(trades.map(({ path, body }) => post(path, body)))
  expect(responses.map(({ status }) => status)).toEqual(trades.map(() => 201))
  expect(new Set(responses.map(({ body }) => body.positionId)).size).toBe(AGENTS)
  expect(await client.getTransactionCount({ address })).toBe(before + AGENTS)
})
