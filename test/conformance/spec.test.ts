import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { beforeAll, describe, expect, it } from 'vitest'
import { operations } from '../../src/operations/index.ts'
import type { JsonOperation, Operation } from '../../src/operations/operation.ts'
import { GENESIS, newTrader, registrationOf, signedIntent, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import {
  appWith,
  callOverHttp as call,
  deployment,
  type Input,
  type OperationId,
  request,
} from '../support/surfaces.ts'
import { endpoints, type FieldKind, type ResponseShape, responses, signingTypes, statuses } from './spec.ts'

// HTTP only: the specification's tables describe HTTP. Every row of them must hold for the running service.

const listed = (operations as readonly Operation[]).filter(
  (operation): operation is JsonOperation => operation.kind === 'json',
)
const rowOf = ({ method, path }: Operation) => `${method.toUpperCase()} ${path}`
const operationAt = (row: string) => listed.find(operation => rowOf(operation) === row)
/** Paths that are served and are not operations. */
const documents = new Set(['GET /llms.txt', 'GET /docs/swagger.json', 'GET /docs', 'POST /mcp'])

let trader: Trader
/** A response of every operation whose shape is specified, by its row. */
const received = new Map<string, { status: number; body: Body }>()

async function fetchRow(row: string, input: Input = {}) {
  const operation = operationAt(row)
  if (operation === undefined) throw new Error(`There is no ${row}`)
  const response = await call(operation.id as OperationId, input)
  expect({ row, status: response.status, body: response.body }).toMatchObject({ status: operation.status })
  received.set(row, response)
  return response.body
}

beforeAll(async () => {
  trader = await newTrader()
  const { agentId, account } = trader
  const agent = '/agents/{agentId}'
  await fetchRow('GET /health')
  await fetchRow('GET /vaults/{id}', { id: 'genesis' })
  await fetchRow('GET /vaults/{id}/tokens', { id: 'genesis' })
  await fetchRow(`GET ${agent}`, { agentId })
  await fetchRow('GET /agents/by-owner/{owner}', { owner: account.address })
  await fetchRow('GET /agents/register/quote', { signer: account.address })
  received.set('POST /agents/register', await registered())
  await fetchRow(`GET ${agent}/trade-intents/quote`, { agentId, symbol: 'NVDA' })
  const submit = async (row: string, id: Parameters<typeof signedIntent>[1], input: Input) =>
    fetchRow(row, await signedIntent(trader, id, input))
  const opening = await submit(`POST ${agent}/trade-intents`, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '50' })
  const { positionId } = opening
  await fetchRow(`GET ${agent}/add-intents/quote`, { agentId, positionId })
  await fetchRow(`GET ${agent}/reduce-intents/quote`, { agentId, positionId })
  await fetchRow(`GET ${agent}/exit-ladder-intents/quote`, { agentId, positionId })
  await submit(`POST ${agent}/add-intents`, 'submitAddIntent', { positionId, usdcAmount: '10' })
  await submit(`POST ${agent}/exit-ladder-intents`, 'submitExitLadderIntent', { positionId, exits: '-700:10000' })
  await submit(`POST ${agent}/reduce-intents`, 'submitReduceIntent', { positionId, exitBps: 5000 })
  await fetchRow(`GET ${agent}/positions`, { agentId })
  await fetchRow(`GET ${agent}/positions/{positionId}`, { agentId, positionId })
  await fetchRow(`GET ${agent}/risk-state`, { agentId })
  await fetchRow('GET /transactions/{txHash}', { txHash: opening.transactionHash })
  const second = await signedIntent(trader, 'submitTradeIntent', { symbol: 'AAPL', usdcAmount: '10' })
  const { body } = await call('submitTradeIntent', second)
  await call(
    'submitReduceIntent',
    await signedIntent(trader, 'submitReduceIntent', { positionId: body.positionId, exitBps: 10000 }),
  )
  await fetchRow(`GET ${agent}/closed-positions`, { agentId })
})

/** Registers an agent, without a fee. */
async function registered() {
  const app = appWith({ X402_ENABLED: 'false' })
  return call('registerAgent', await registrationOf(privateKeyToAccount(generatePrivateKey())), app)
}

describe('endpoints', () => {
  it.each(endpoints.map(([method, path, tool]) => [`${method} ${path}`, tool] as const))('%s', async (row, tool) => {
    if (documents.has(row)) {
      const [method, path = ''] = row.split(' ')
      const response = await request(path, { method: method ?? 'GET' })
      expect(response.status).not.toBe(404)
      return
    }
    const operation = operationAt(row)
    expect(operation).toBeDefined()
    if (tool !== undefined) expect(operation?.tool?.name).toBe(tool)
  })
})

describe('responses', () => {
  it.each(Object.entries(responses))('%s', (row, shape) => {
    const response = received.get(row)
    expect(response, `a response of ${row}`).toBeDefined()
    expect([...differences(response?.body, shape, row)]).toEqual([])
  })

  it('responses have exit rules with exactly three fields', () => {
    const { position } = received.get('GET /agents/{agentId}/positions/{positionId}')?.body ?? {}
    for (const rule of position.exitRules)
      expect(Object.keys(rule).sort()).toEqual(['exitBps', 'triggerBps', 'triggerType'])
  })

  it('responses to an add quote have the position without its ladder', () => {
    const { position } = received.get('GET /agents/{agentId}/add-intents/quote')?.body ?? {}
    expect(position).not.toHaveProperty('exitRules')
    expect(position).not.toHaveProperty('pendingRules')
  })
})

describe('tools', () => {
  it('tools are listed by the MCP server', async () => {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const post = (body: object, session: Record<string, string> = {}) =>
      request('/mcp', {
        method: 'POST',
        headers: { ...headers, ...session },
        body: JSON.stringify({ jsonrpc: '2.0', ...body }),
      })
    const initialized = await post({
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
    })
    const session = { 'mcp-session-id': initialized.headers.get('mcp-session-id') ?? '' }
    expect(session['mcp-session-id']).not.toBe('')
    const { result: server } = parseData(await initialized.text())
    expect(server.serverInfo.version).toBe('0.1.0')
    await post({ method: 'notifications/initialized' }, session)
    const { result } = parseData(await (await post({ id: 2, method: 'tools/list' }, session)).text())
    const names = result.tools.map(({ name }: { name: string }) => name)
    expect(names).toEqual(expect.arrayContaining(endpoints.flatMap(([, , tool]) => tool ?? [])))
  })
})

describe('limits', () => {
  const closed = (limit: unknown) => call('listClosedPositions', { agentId: trader.agentId, limit })
  it('closed-positions accepts a limit of 1 to 100', async () => {
    for (const limit of [1, 100]) expect((await closed(limit)).status).toBe(200)
    for (const limit of [0, 101, -1, 1.5, 'many']) expect((await closed(limit)).status).toBe(400)
    const { paths } = (await (await request('/docs/swagger.json')).json()) as Body
    const [limit] = paths['/agents/{agentId}/closed-positions'].get.parameters.filter(
      ({ name }: { name: string }) => name === 'limit',
    )
    expect(limit.schema).toMatchObject({ minimum: 1, maximum: 100, default: 50 })
  })

  const rules = (count: number) =>
    Array.from({ length: count }, (_, index) => ({
      triggerBps: -100 * (index + 1),
      exitBps: index === count - 1 ? 10_000 : 100,
    }))
  const open = (changes: Input) =>
    call('submitTradeIntent', {
      agentId: trader.agentId,
      symbol: 'NVDA',
      usdcAmount: '1',
      exits: rules(1),
      deadline: '99999999999',
      nonce: '0',
      signature: `0x${'11'.repeat(65)}`,
      ...changes,
    })
  it.each([
    ['exits of 1 to 5 rules', { exits: rules(0) }, { exits: rules(5) }, { exits: rules(6) }],
    [
      'exitBps of 1 to 10000',
      { exits: [{ triggerBps: -1, exitBps: 0 }] },
      { exits: rules(2) },
      { exits: [{ triggerBps: -1, exitBps: 10_001 }] },
    ],
    ['maxSlippageBps of 0 to 10000', { maxSlippageBps: -1 }, { maxSlippageBps: 10_000 }, { maxSlippageBps: 10_001 }],
  ])('an open accepts %s', async (_, below, within, above) => {
    for (const changes of [below, above]) expect((await open(changes)).body.code).toBe('INVALID_REQUEST')
    expect((await open(within)).body.code).toBe('INVALID_SIGNATURE')
  })

  const register = (changes: Input) =>
    call('getRegistrationQuote', {
      signer: trader.account.address,
      vault: GENESIS,
      name: 'a',
      metadataURI: 'b',
      ...changes,
    })
  it('a registration accepts a name of 1 to 128 characters and a metadataURI of 1 to 2048', async () => {
    for (const changes of [{ name: 'n'.repeat(128) }, { metadataURI: 'm'.repeat(2048) }])
      expect((await register(changes)).status).toBe(200)
    for (const changes of [{ name: 'n'.repeat(129) }, { metadataURI: 'm'.repeat(2049) }])
      expect((await register(changes)).status).toBe(400)
    // In a query, an empty value is an absent one; in a body it is too short.
    const body = await registrationOf(privateKeyToAccount(generatePrivateKey()))
    for (const changes of [{ name: '' }, { metadataURI: '' }]) {
      expect((await register(changes)).body.typedData).toBeUndefined()
      expect((await call('registerAgent', { ...body, ...changes })).body.code).toBe('INVALID_REQUEST')
    }
  })
})

describe('statuses', () => {
  it('statuses include every specified one', async () => {
    const seen = new Set([...received.values()].map(({ status }) => status))
    const { agentId } = trader
    const add = async (response: Promise<{ status: number }>) => seen.add((await response).status)
    await add(open400())
    await add(call('registerAgent', await registrationOf(privateKeyToAccount(generatePrivateKey()))))
    await add(call('getAgent', { agentId: '999999' }))
    await add(call('listVaults', {}, appWith({ CHAIN_ID: undefined })))
    await add(call('listVaults', {}, appWith({ RPC_URL: 'http://127.0.0.1:1' })))
    await add(call('listPositions', { agentId }, withoutRouter()))
    expect([...seen].sort()).toEqual(expect.arrayContaining(statuses.filter(status => status !== 402 || paysFee())))
  })
  const open400 = () => call('getVault', { id: 'v'.repeat(200) })
  const paysFee = () => received.get('GET /agents/register/quote')?.body.x402.enabled === true

  it('statuses reads of vaults, tokens and prices respond 500 without chain configuration', async () => {
    const app = appWith({ CHAIN_ID: undefined })
    for (const id of ['listVaults', 'listTokens', 'getPrices'] as const)
      expect((await call(id, {}, app)).status).toBe(500)
  })

  it('statuses closed-positions responds 503 without executor or router, and 404 for an unknown agent', async () => {
    const { agentId } = trader
    for (const app of [withoutRouter(), appWith({ EXECUTOR_PRIVATE_KEY: undefined })])
      expect((await call('listClosedPositions', { agentId }, app)).status).toBe(503)
    expect((await call('listClosedPositions', { agentId: '999999' })).status).toBe(404)
  })
})

function withoutRouter() {
  const { TradeRouter: _, ...contracts } = deployment.contracts
  return appWith({ CONTRACTS: JSON.stringify(contracts) })
}

describe('signing types', () => {
  it.each(Object.entries(signingTypes))('%s', (primaryType, fields) => {
    const row =
      primaryType === 'SelfRegister' ? 'GET /agents/register/quote' : 'GET /agents/{agentId}/trade-intents/quote'
    const { eip712 } = received.get(row)?.body ?? {}
    const named = eip712.types[primaryType].map(({ type, name }: { type: string; name: string }) => `${type} ${name}`)
    expect(named.join(', ')).toBe(fields)
    expect(eip712).toMatchObject({ domainVersion: '1', chainId: deployment.chainId, primaryType })
  })
})

/** Yields the differences between a value and its specified shape. */
function* differences(value: Body, shape: ResponseShape[string], path: string): Generator<string> {
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) yield `${path} is not an array`
    else for (const [index, item] of value.entries()) yield* differences(item, shape[0], `${path}[${index}]`)
  } else if (typeof shape === 'object') {
    if (typeof value !== 'object' || value === null) yield `${path} is not an object`
    else for (const [field, kind] of Object.entries(shape)) yield* differences(value[field], kind, `${path}.${field}`)
  } else if (!isKind(value, shape)) yield `${path} is ${JSON.stringify(value)}, not ${shape}`
}

function isKind(value: unknown, kind: FieldKind): boolean {
  if (kind.endsWith('|null')) return value === null || isKind(value, kind.slice(0, -5) as FieldKind)
  const patterns: Partial<Record<FieldKind, RegExp>> = {
    digits: /^\d+$/,
    address: /^0x[0-9a-fA-F]{40}$/,
    hash: /^0x[0-9a-f]{64}$/,
    bytes32: /^0x[0-9a-f]{64}$/,
  }
  if (kind === 'integer') return Number.isInteger(value)
  const pattern = patterns[kind]
  return pattern ? typeof value === 'string' && pattern.test(value) : typeof value === kind
}

/** Parses a response that is JSON or a single server-sent event. */
function parseData(text: string): Body {
  const data = text.split('\n').find(line => line.startsWith('data:') && line.length > 6)
  return JSON.parse(data ? data.slice(5) : text)
}
