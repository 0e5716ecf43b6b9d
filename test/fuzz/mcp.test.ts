import fc from 'fast-check'
import { createPublicClient, http } from 'viem'
import { beforeAll, expect, inject, it } from 'vitest'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import { operations } from '../../src/operations/index.ts'
import { newTrader, openPosition, type Trader } from '../support/actors.ts'
import { deployment, request } from '../support/surfaces.ts'
import { oddValue } from './odd-values.ts'

// MCP only: sends thousands of random and mutated messages. None may cause a 5xx or an internal error, or use a nonce.

const client = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })
const { executor, relayer } = deployment.accounts
let trader: Trader
let positionId: string
beforeAll(async () => {
  trader = await newTrader()
  positionId = await openPosition(trader, { usdcAmount: '50' })
})

const nonces = async () => [
  await client.getTransactionCount({ address: executor.address }),
  await client.getTransactionCount({ address: relayer.address }),
  await client.readContract({
    address: deployment.contracts.TradeRouter,
    abi: tradeRouterAbi,
    functionName: 'nonces',
    args: [BigInt(trader.agentId)],
  }),
]

const tools = operations.flatMap(operation =>
  operation.kind === 'json' && 'tool' in operation ? [{ name: operation.tool.name, input: operation.input }] : [],
)
const METHODS = ['tools/call', 'tools/list', 'resources/read', 'resources/list', 'prompts/get', 'initialize', 'ping']
const INTERNAL_ERROR = -32603

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'fuzz', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

const INPUTS = inject('isLong') ? 10_000 : 200
it('no random message causes a 5xx or an internal error, or uses a nonce', async () => {
  const before = await nonces()
  const outcomes = new Map<string, number>()
  const cases = fc.sample(
    fc.record({
      tool: fc.constantFrom(...tools),
      values: fc.array(oddValue, { minLength: 12, maxLength: 12 }),
      kind: fc.constantFrom(
        'fields',
        'fields',
        'arguments',
        'name',
        'params',
        'method',
        'message',
        'raw',
        'batch',
        'meta',
      ),
      method: fc.constantFrom(...METHODS),
      mutated: fc.integer({ min: 0, max: 11 }),
      raw: fc.string({ maxLength: 60 }),
    }),
    { numRuns: INPUTS, seed: 43 },
  )
  for (const { tool, values, kind, method, mutated, raw } of cases) {
    const value = (index: number) => values[(index + mutated) % values.length]
    const known: Record<string, unknown> = { agentId: trader.agentId, positionId, id: 'genesis', symbol: 'NVDA' }
    const fields = 'shape' in tool.input ? Object.keys(tool.input.shape as object) : []
    const input = Object.fromEntries(
      fields.flatMap((name, index) => {
        if (index === mutated % fields.length) return [[name, value(index)]]
        return name in known ? [[name, known[name]]] : []
      }),
    )
    const call = { name: tool.name, arguments: input as unknown, _meta: META as unknown }
    const message: Record<string, unknown> = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call }
    if (kind === 'arguments') message.params = { ...call, arguments: value(0) }
    if (kind === 'name') message.params = { ...call, name: value(0) }
    if (kind === 'params') Object.assign(message, { method, params: value(0) })
    if (kind === 'method') message.method = value(0)
    if (kind === 'message') Object.assign(message, { id: value(0), jsonrpc: value(1) })
    if (kind === 'meta') message.params = { ...call, _meta: value(0) }
    const body =
      kind === 'raw' ? raw : JSON.stringify(kind === 'batch' ? [message, value(0), { ...message, id: 2 }] : message)
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(mutated % 4 !== 0 && {
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': tool.name,
      }),
    }
    const response = await request('/mcp?toolsets=all', { method: 'POST', headers, body })
    const text = await response.text()
    const outcome = /"code": ?"?(-?\w+)/.exec(text.replaceAll('\\"', '"'))?.[1] ?? `${response.status}`
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    expect({ body, headers, status: response.status, text }).toSatisfy(
      ({ status, text }: { status: number; text: string }) =>
        status < 500 && !text.includes(`"code":${INTERNAL_ERROR}`) && !/"code\\*": ?\\*"INTERNAL/.test(text),
    )
  }
  expect(await nonces()).toEqual(before)
  // The test is only meaningful if the messages reach different outcomes.
  expect([...outcomes.keys()]).toEqual(expect.arrayContaining(['200', 'INVALID_REQUEST', '-32602', '-32700']))
}, 1_800_000)
