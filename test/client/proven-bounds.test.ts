import { hashTypedData } from 'viem'
import { beforeAll, expect, inject, it } from 'vitest'
import { type Account, type ClientOptions, createClient } from '../../packages/client/src/index.ts'
import type { Body } from '../support/body.ts'
import { clientOf, deployment, LADDER, newAccount, newAgent, newPayer, pins, serviceUrl } from './support.ts'

// What a client signs never exceeds what its caller named, whatever the service says: each field of each answer is
// changed in turn. The answers are recorded once and played back, so that thousands of lies take seconds. The node is
// the real one.

type Client = ReturnType<typeof createClient>
type Message = Record<string, unknown>
type Answers = Map<string, Body>
type Case = {
  what: string
  call: (client: Client) => Promise<unknown>
  /** Whether the call computes its bound on chain. */
  needsNode?: true
  /** The largest amount that the caller named, where it named a loss; USDC base units. */
  most?: bigint
}

const inner = newAccount()
const STRANGER = '0x00000000000000000000000000000000000000b2'
let agentId: string
let positionId: string
let openOrderId: string

beforeAll(async () => {
  agentId = await newAgent(inner)
  const agent = clientOf(inner).agent(agentId)
  positionId = (await agent.open({ symbol: 'AAPL', usdcAmount: '50', exits: LADDER })).positionId
  openOrderId = (
    await agent.orders.place({ type: 'limit', symbol: 'NVDA', usdcAmount: '10', price: '1', stopLossPercent: '8' })
  ).orderId
})

const agentOf = (client: Client) => client.agent(agentId)
const ownerOf = (client: Client) => client.owner(agentId)
/**
 * At the stop, 8 % below the entry, 8 USDC are lost of 100; 50 are bought already, and the stop is 8 % below their
 * price.
 */
const cases: Case[] = [
  {
    what: 'open',
    call: client => agentOf(client).open({ symbol: 'NVDA', usdcAmount: '40', exits: LADDER }),
  },
  {
    what: 'open for a loss',
    call: client => agentOf(client).open({ symbol: 'NVDA', maxLossUsdc: '8', stopLossPercent: '8' }),
    most: 100_000_000n,
  },
  { what: 'add', call: client => agentOf(client).add({ positionId, usdcAmount: '10' }) },
  {
    what: 'add for a loss, with a node',
    call: client => agentOf(client).add({ positionId, maxLossUsdc: '8' }),
    needsNode: true,
    most: 50_000_000n,
  },
  {
    what: 'add for a loss and at most an amount',
    call: client => agentOf(client).add({ positionId, maxLossUsdc: '8', maxUsdcAmount: '45' }),
    most: 45_000_000n,
  },
  { what: 'reduce', call: client => agentOf(client).reduce({ positionId, exitBps: 5_000 }) },
  { what: 'close', call: client => agentOf(client).close({ positionId }) },
  { what: 'set a ladder', call: client => agentOf(client).setLadder({ positionId, stopLossPercent: '7' }) },
  {
    what: 'place an order to buy',
    call: client =>
      agentOf(client).orders.place({ type: 'limit', symbol: 'NVDA', usdcAmount: '40', price: '1', exits: LADDER }),
  },
  {
    what: 'place an order to add in parts',
    call: client =>
      agentOf(client).orders.place({ type: 'twap', positionId, usdcAmount: '40', parts: 4, interval: '3600' }),
  },
  {
    what: 'place an order to sell',
    call: client => agentOf(client).orders.place({ type: 'trailingStop', positionId, exitBps: 100, trailBps: 500 }),
  },
  { what: 'cancel an order', call: client => agentOf(client).orders.cancel({ orderId: openOrderId }) },
  { what: 'set a mandate', call: client => ownerOf(client).setMandate({ mode: 'trade', maxTradeUsdc: '100' }) },
  { what: 'stop', call: client => ownerOf(client).stop({ action: 'flatten' }) },
  { what: 'offer', call: client => ownerOf(client).transfer({ newOwner: STRANGER }) },
  { what: 'replace the signer', call: client => ownerOf(client).setSigner({ newSigner: inner.address }) },
  { what: 'cancel the next intent, with a node', call: client => ownerOf(client).cancel(), needsNode: true },
  { what: 'cancel intents', call: client => ownerOf(client).cancel({ untilNonce: '9' }) },
  { what: 'lock the required shares, with a node', call: client => ownerOf(client).lockFirstLoss(), needsNode: true },
  { what: 'lock shares', call: client => ownerOf(client).lockFirstLoss({ shares: '7000' }) },
  {
    what: 'register',
    call: client => client.register({ vault: 'genesis', name: 'another', payer: newPayer() }),
  },
]

/** Runs a call against `answer`, and returns what was signed. `onFailure` gets the error of a call that failed. */
async function signedBy(
  { call, needsNode }: Case,
  answer: (path: string) => Promise<Response> | Response,
  { onFailure = () => {}, ...retries }: { onFailure?: (error: unknown) => void; retryBudgetMs?: number } = {},
): Promise<Message | undefined> {
  let signed: Message | undefined
  const account: Account = {
    address: inner.address,
    signTypedData(typedData) {
      signed = typedData.message
      return inner.signTypedData(typedData)
    },
  }
  const options: ClientOptions = {
    baseUrl: serviceUrl,
    account,
    pins,
    ...(needsNode && { rpcUrl: deployment.rpcUrl }),
    onWarning: () => {},
    ...retries,
    fetch: async (url, { method }) => {
      if (method !== undefined && method !== 'GET')
        return Response.json({ error: 'No.', code: 'MARKET_CLOSED' }, { status: 400 })
      const { pathname, search } = new URL(url)
      return answer(pathname + search)
    },
  }
  await call(createClient(options)).catch(onFailure)
  return signed
}

async function recorded(each: Case): Promise<{ answers: Answers; honest: Message }> {
  const answers: Answers = new Map()
  const failures: unknown[] = []
  const honest = await signedBy(
    each,
    async path => {
      const response = await fetch(serviceUrl + path)
      const body = await response.clone().text()
      if (response.ok) answers.set(path, JSON.parse(body))
      else failures.push(`${path}: ${response.status} ${body}`)
      return response
    },
    { onFailure: error => failures.push(error) },
  )
  if (honest === undefined) throw new Error(`${each.what} signs nothing with an honest service: ${failures.join('; ')}`)
  return { answers, honest }
}

type Path = readonly (string | number)[]

/** Returns where the values of a body are; of a list, those of its first and last entries. */
function pathsOf(body: unknown, path: Path = []): Path[] {
  if (Array.isArray(body))
    return [...new Set([0, body.length - 1])].flatMap(at => (at < 0 ? [] : pathsOf(body[at], [...path, at])))
  if (typeof body === 'object' && body !== null)
    return Object.entries(body).flatMap(([name, value]) => pathsOf(value, [...path, name]))
  return [path]
}

/** Returns values that a liar would put in place of one. */
function liesAbout(value: unknown): unknown[] {
  if (typeof value === 'boolean') return [!value]
  if (typeof value === 'number') return [value * 90 + 1, 0, Math.sign(value)]
  if (typeof value !== 'string') return [1]
  if (/^0x[0-9a-fA-F]{40}$/.test(value)) return [STRANGER]
  if (/^\d+$/.test(value)) return [`${BigInt(value) * 90n + 1n}`, '0']
  if (/^\d+\.\d+$/.test(value)) return [`${Number(value) * 90}`]
  return ['a lie']
}

function changed(body: Body, path: Path, value: unknown): Body {
  const copy = structuredClone(body)
  const last = path.length - 1
  let at: Body = copy
  for (const name of path.slice(0, last)) at = at[name]
  at[path[last] ?? ''] = value
  return copy
}

/** Makes digest and body of a quote agree with its typed data, as a liar would. */
function agreeing(quote: Body): Body {
  if (quote.typedData?.types === undefined || typeof quote.body !== 'object') return quote
  const { typedData, body } = quote
  const { EIP712Domain: _, ...types } = typedData.types
  for (const name of Object.keys(body))
    if (name === 'shares' || name === 'untilNonce') body[name] = typedData.message[name]
  if ('usdcAmount' in body) body.usdcAmount = `${Number(typedData.message.usdcAmount) / 1e6}`
  try {
    quote.digest = hashTypedData({ ...typedData, types })
  } catch {
    // The client refuses what has no hash.
  }
  return quote
}

it.each(cases)('whatever a service says, "$what" signs no more than its caller named', async each => {
  const { answers: told, honest } = await recorded(each)
  const { usdcAmount, nonce: _, deadline: __, salt: ___, validUntil: ____, ...rest } = honest
  if (each.most !== undefined) expect(BigInt(`${usdcAmount}`)).toBeLessThanOrEqual(each.most)
  let lies = 0
  for (const answers of each.most === undefined ? [told] : [told, enlarged(told)])
    for (const [path, at] of [...answers].flatMap(([path, body]) => pathsOf(body).map(at => [path, at] as const)))
      for (const lie of liesAbout(at.reduce((value: Body, name) => value[name], answers.get(path)))) {
        lies++
        // Reads of the node take most of the time.
        if (each.needsNode && !inject('isLong') && lies % 4 !== 0) continue
        const changedAnswer = new Map([[path, agreeing(changed(answers.get(path), at, lie))]])
        const signed = await signedBy(
          each,
          asked =>
            Response.json(changedAnswer.get(asked) ?? answers.get(asked) ?? lookUp(answers, asked, changedAnswer)),
          { retryBudgetMs: 0 },
        )
        if (signed === undefined) continue
        const about = `${path} ${at.join('.')}: ${lie}`
        expect(signed, about).toMatchObject(rest)
        if (each.most === undefined) expect(signed.usdcAmount, about).toBe(usdcAmount)
        else expect(BigInt(`${signed.usdcAmount}`), about).toBeLessThanOrEqual(each.most)
        expect(Number(signed.deadline), about).toBeLessThanOrEqual(Date.now() / 1000 + 86_400)
      }
  expect(lies).toBeGreaterThan(5)
})

/** Returns answers that name 900 USDC for any loss: what a field proves is seen once another one lies. */
function enlarged(answers: Answers): Answers {
  return new Map(
    [...answers].map(([path, body]) => {
      if (!path.includes('maxLossUsdc')) return [path, body] as const
      const larger = changed(body, ['body', 'usdcAmount'], '900')
      if (!larger.typedData) return [path, larger] as const
      return [path, agreeing(changed(larger, ['typedData', 'message', 'usdcAmount'], '900000000'))] as const
    }),
  )
}

/** Answers a request that the lie has led to, such as for another amount, as if it had been asked for. */
function lookUp(answers: Answers, asked: string, told: Answers): Body {
  const [path, query = ''] = asked.split('?')
  const similar = [...told, ...answers].filter(([known]) => known.split('?')[0] === path).at(-1)?.[1]
  if (similar === undefined) return { error: 'There is no such resource.', code: 'NOT_FOUND' }
  const quote = structuredClone(similar)
  const message = quote.typedData?.message ?? {}
  for (const [name, value] of new URLSearchParams(query)) {
    if (name === 'usdcAmount' && name in message) message[name] = `${Math.round(Number(value) * 1e6)}`
    else if (typeof message[name] === 'string') message[name] = value
  }
  return agreeing(quote)
}

it('without a node, a bound that only the chain knows has to be named', async () => {
  const client = clientOf(inner, { rpcUrl: undefined } as never)
  for (const [call, argument] of [
    [() => agentOf(client).add({ positionId, maxLossUsdc: '8' }), 'maxUsdcAmount'],
    [() => ownerOf(client).lockFirstLoss(), 'shares'],
    [() => ownerOf(client).cancel(), 'untilNonce'],
  ] as const)
    await expect(call()).rejects.toMatchObject({
      code: 'BOUND_REQUIRED',
      kind: 'validation',
      message: expect.stringContaining(argument),
      remedy: expect.stringContaining('rpcUrl'),
    })
})
