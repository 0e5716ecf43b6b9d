import fc from 'fast-check'
import { createPublicClient, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { beforeAll, expect, inject, it } from 'vitest'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import { operations } from '../../src/operations/index.ts'
import { newTrader, openPosition, registrationOf, signedIntent, type Trader } from '../support/actors.ts'
import { deployment, type Input, request } from '../support/surfaces.ts'
import { oddValue } from './odd-values.ts'

// HTTP only: sends thousands of random and mutated HTTP requests to every operation. None may cause a 5xx or use a
// nonce.

const client = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })
const { executor, relayer } = deployment.accounts
let trader: Trader
let positionId: string
const valid: Record<string, Input> = {}

beforeAll(async () => {
  trader = await newTrader()
  positionId = await openPosition(trader, { usdcAmount: '50' })
  valid.submitTradeIntent = await signedIntent(trader, 'submitTradeIntent', { symbol: 'AAPL', usdcAmount: '10' })
  valid.submitAddIntent = await signedIntent(trader, 'submitAddIntent', { positionId, usdcAmount: '10' })
  valid.submitReduceIntent = await signedIntent(trader, 'submitReduceIntent', { positionId, exitBps: 100 })
  valid.submitExitLadderIntent = await signedIntent(trader, 'submitExitLadderIntent', {
    positionId,
    exits: '-900:10000',
  })
  valid.registerAgent = await registrationOf(privateKeyToAccount(generatePrivateKey()))
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

/** Fields with a default. A body without one of them is equivalent, so they are not dropped. */
const OPTIONAL = new Set(['minTokenOut', 'maxSlippageBps', 'linkERC8004', 'erc8004AgentId'])
/** What nothing has. */
const MISSING: Record<string, string> = { agentId: '999999', positionId: '999999', id: 'nowhere', symbol: 'NOPE' }
const isZero = (value: unknown) => (typeof value === 'string' || typeof value === 'number') && /^0+$/.test(`${value}`)
const isSame = (a: unknown, b: unknown) => a === b || (isZero(a) && isZero(b))

const INPUTS = inject('isLong') ? 10_000 : 200
it('no random request causes a 5xx or uses a nonce', async () => {
  const before = await nonces()
  const answers = new Map<number, number>()
  const cases = fc.sample(
    fc.record({
      operation: fc.constantFrom(...operations.filter(({ kind }) => kind === 'json')),
      values: fc.array(oddValue, { minLength: 12, maxLength: 12 }),
      mutated: fc.integer({ min: 0, max: 11 }),
      mode: fc.constantFrom('mutate', 'drop', 'add', 'random', 'raw', 'type', 'missing'),
      raw: fc.string({ maxLength: 60 }),
    }),
    { numRuns: INPUTS, seed: 42 },
  )
  for (const { operation, values, mutated, raw, ...drawn } of cases) {
    const { id, method, path } = operation
    const params = 'params' in operation && operation.params ? Object.keys(operation.params.shape) : []
    const mode = drawn.mode === 'missing' && params.length === 0 ? 'add' : drawn.mode
    const fields = 'body' in operation && operation.body ? Object.keys(operation.body.shape) : []
    const queries = 'query' in operation && operation.query ? Object.keys(operation.query.shape) : []
    const base: Input = { agentId: trader.agentId, positionId, id: 'genesis', ...valid[id] }
    const value = (index: number) => values[(index + mutated) % values.length]
    const text = (index: number) => `${typeof value(index) === 'object' ? JSON.stringify(value(index)) : value(index)}`

    const mutatePath = mode === 'random' && params.length > 0
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
      mutatePath
        ? encodeSafely(text(params.indexOf(name)))
        : `${(mode === 'missing' ? MISSING[name] : undefined) ?? base[name]}`,
    )
    const url = new URL(filled, 'http://localhost')
    for (const [index, name] of queries.entries())
      if ((index + mutated) % 2 === 0) url.searchParams.set(name, text(index))
    if (mode === 'add') url.searchParams.set('surprise', text(1))
    const init: RequestInit = { method: method.toUpperCase(), headers: { 'content-type': 'application/json' } }
    if (fields.length > 0) {
      const body: Record<string, unknown> = Object.fromEntries(
        fields.map((name, index) => [name, mode === 'random' ? value(index) : base[name]]),
      )
      const field = fields[mutated % fields.length] as string
      if (mode === 'mutate') body[field] = isSame(value(0), body[field]) ? 'changed' : value(0)
      if (mode === 'drop') delete body[body[field] === undefined || OPTIONAL.has(field) ? 'signature' : field]
      if (mode === 'add') body.surprise = value(0)
      if (mode === 'type') init.headers = { 'content-type': 'text/plain' }
      init.body = mode === 'raw' ? raw : JSON.stringify(body)
    }
    const response = await request(`${url.pathname}${url.search}`, init)
    const body = await response.text()
    answers.set(response.status, (answers.get(response.status) ?? 0) + 1)
    expect({ id, url: `${url}`, init, status: response.status, body }).toSatisfy(
      ({ status, body }: { status: number; body: string }) =>
        (status < 500 || (status === 503 && body.includes('_NOT_CONFIGURED'))) &&
        (method === 'get' || status !== 201) &&
        (method !== 'put' || status !== 200),
    )
  }
  expect(await nonces()).toEqual(before)
  // The test is only meaningful if the requests reach different outcomes.
  expect([...answers.keys()].sort()).toEqual(expect.arrayContaining([200, 400, 404]))
}, 1_800_000)

/** Encodes any text as a path segment; text that a URL cannot contain is replaced. */
function encodeSafely(text: string): string {
  try {
    return encodeURIComponent(text) || '%20'
  } catch {
    return '%ED%A0%80'
  }
}
