import { hashTypedData, zeroAddress } from 'viem'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import {
  type ClientOptions,
  type NonceRecord,
  type OrderRequest,
  type Submission,
  UntrustedQuoteError,
} from '../../packages/client/src/index.ts'
import type { Body } from '../support/body.ts'
import { type ServiceProxy, startProxy } from './proxy.ts'
import {
  clientOf,
  countingAccount,
  deployment,
  LADDER,
  newAccount,
  newAgent,
  newPayer,
  pins,
  serviceUrl,
} from './support.ts'

// The proxy lies consistently: typed data, digest and body of the quote agree with each other.

/** Fields that the body of an order says in words. */
const IN_WORDS = ['side', 'condition', 'price']
const STRANGER = '0x00000000000000000000000000000000000000b2'
const account = countingAccount(newAccount())
let agentId: string
let positionId: string
let proxy: ServiceProxy

beforeAll(async () => {
  proxy = await startProxy(serviceUrl)
  agentId = await newAgent(account)
  const opened = await clientOf(account).agent(agentId).open({ symbol: 'AAPL', usdcAmount: '50', exits: LADDER })
  positionId = opened.positionId
})
afterAll(() => proxy.stop())
beforeEach(() => {
  proxy.set({})
  account.signatures = 0
})

/** Makes the proxy change the typed data of each quote, and digest and body with it; and what it says of intents. */
function lie(change: (quote: Body) => void, changeIntent?: (intent: Body) => void) {
  proxy.set({
    onResponse({ path }, response) {
      if (path.startsWith('/intents/')) changeIntent?.(response.body)
      if (!path.includes('/quote') || !response.body.typedData) return undefined
      const quote = response.body
      change(quote)
      const { typedData, body } = quote
      for (const name of Object.keys(body))
        if (name in typedData.message && !IN_WORDS.includes(name)) body[name] = typedData.message[name]
      if ('usdcAmount' in body && typedData.message.usdcAmount) body.usdcAmount = `${Number(body.usdcAmount) / 1e6}`
      const { EIP712Domain: _, ...types } = typedData.types
      quote.nonce = typedData.message.nonce
      quote.digest = hashTypedData({ ...typedData, types })
      return response
    },
  })
}
const inMessage = (field: string, value: unknown) => (quote: Body) => {
  quote.typedData.message[field] = value
}
const inDomain = (field: string, value: unknown) => (quote: Body) => {
  quote.typedData.domain[field] = value
}

const lies: [what: string, code: string, change: (quote: Body) => void][] = [
  ['vault', 'QUOTE_VAULT_MISMATCH', inMessage('vault', STRANGER)],
  ['token', 'QUOTE_TOKEN_MISMATCH', inMessage('token', deployment.tokens.AAPL)],
  ['amount', 'QUOTE_USDC_AMOUNT_MISMATCH', inMessage('usdcAmount', '900000000')],
  ['exits', 'QUOTE_EXITS_HASH_MISMATCH', inMessage('exitsHash', `0x${'11'.repeat(32)}`)],
  ['nonce', 'QUOTE_NONCE_MISMATCH', inMessage('nonce', '7')],
  ['deadline', 'QUOTE_DEADLINE_MISMATCH', inMessage('deadline', '4102444800')],
  ['slippage', 'QUOTE_MAX_SLIPPAGE_BPS_MISMATCH', inMessage('maxSlippageBps', 5_000)],
  ['minimum', 'QUOTE_MIN_TOKEN_OUT_MISMATCH', inMessage('minTokenOut', '1')],
  ['agent', 'QUOTE_AGENT_ID_MISMATCH', inMessage('agentId', '999')],
  ['chain', 'QUOTE_CHAIN_ID_MISMATCH', inDomain('chainId', 1)],
  ['contract', 'QUOTE_CONTRACT_MISMATCH', inDomain('verifyingContract', STRANGER)],
  ['name of the domain', 'QUOTE_DOMAIN_MISMATCH', inDomain('name', 'USD Coin')],
  ['version of the domain', 'QUOTE_DOMAIN_MISMATCH', inDomain('version', '2')],
  ['salt of the domain', 'QUOTE_DOMAIN_MISMATCH', inDomain('salt', `0x${'22'.repeat(32)}`)],
  [
    'order of the types',
    'QUOTE_TYPES_MISMATCH',
    ({ typedData }) => {
      typedData.types.OpenPosition.reverse()
    },
  ],
  [
    'list of fields',
    'QUOTE_TYPES_MISMATCH',
    ({ typedData }) => {
      typedData.types.OpenPosition.push({ name: 'recipient', type: 'address' })
      typedData.message.recipient = STRANGER
    },
  ],
  [
    'primary type',
    'QUOTE_PRIMARY_TYPE_MISMATCH',
    ({ typedData }) => {
      typedData.types.OfferOwnership = typedData.types.OpenPosition
      typedData.primaryType = 'OfferOwnership'
    },
  ],
]

const trusting: Partial<ClientOptions> = { rpcUrl: undefined, pins: {} } as never

it.each(lies)('a quote with another %s gets no signature', async (what, code, change) => {
  const clients = [clientOf(account, { baseUrl: proxy.url })]
  // Without a node, only the service knows the next nonce.
  if (what !== 'nonce') clients.push(clientOf(account, { baseUrl: proxy.url, ...trusting }))
  for (const client of clients) {
    proxy.set({})
    await client.agent(agentId).prepareOpen({ symbol: 'NVDA', usdcAmount: '40', exits: LADDER })
    lie(change)
    const posts = proxy.requests.length
    const error = await client
      .agent(agentId)
      .open({ symbol: 'NVDA', usdcAmount: '40', exits: LADDER })
      .catch(error => error)
    expect(error).toBeInstanceOf(UntrustedQuoteError)
    expect(error).toMatchObject({ code, kind: 'untrusted-quote', retryable: false })
    expect(error.details.mismatches.length).toBeGreaterThan(0)
    if (what === 'deadline') expect(error.remedy).toMatch(/^Do not sign this/)
    expect(account.signatures).toBe(0)
    expect(proxy.requests.slice(posts).filter(({ method }) => method !== 'GET')).toEqual([])
  }
})

const orderLies: [what: string, code: string, change: (quote: Body) => void][] = [
  ['agent', 'QUOTE_AGENT_ID_MISMATCH', inMessage('agentId', '999')],
  ['side', 'QUOTE_SIDE_MISMATCH', inMessage('side', 1)],
  ['token', 'QUOTE_TOKEN_MISMATCH', inMessage('token', deployment.tokens.AAPL)],
  ['position', 'QUOTE_POSITION_ID_MISMATCH', inMessage('positionId', '99')],
  ['amount', 'QUOTE_USDC_AMOUNT_MISMATCH', inMessage('usdcAmount', '900000000')],
  ['share', 'QUOTE_EXIT_BPS_MISMATCH', inMessage('exitBps', 10_000)],
  ['ladder', 'QUOTE_EXITS_HASH_MISMATCH', inMessage('exitsHash', `0x${'11'.repeat(32)}`)],
  ['slippage', 'QUOTE_MAX_SLIPPAGE_BPS_MISMATCH', inMessage('maxSlippageBps', 5_000)],
  ['condition', 'QUOTE_CONDITION_MISMATCH', inMessage('condition', 2)],
  ['price', 'QUOTE_PRICE_MISMATCH', inMessage('price', '99900000000')],
  ['trail', 'QUOTE_TRAIL_BPS_MISMATCH', inMessage('trailBps', 100)],
  ['start', 'QUOTE_VALID_AFTER_MISMATCH', inMessage('validAfter', '1')],
  ['end', 'QUOTE_VALID_UNTIL_MISMATCH', inMessage('validUntil', `${2 ** 40 - 1}`)],
  ['number of parts', 'QUOTE_PARTS_MISMATCH', inMessage('parts', 9)],
  ['interval', 'QUOTE_INTERVAL_MISMATCH', inMessage('interval', '60')],
  ['key', 'QUOTE_KEY_MISMATCH', inMessage('key', '7')],
  ['nonce', 'QUOTE_NONCE_MISMATCH', inMessage('nonce', '7')],
  ['deadline', 'QUOTE_DEADLINE_MISMATCH', inMessage('deadline', '4102444800')],
  ['contract', 'QUOTE_CONTRACT_MISMATCH', inDomain('verifyingContract', deployment.contracts.TradeRouter)],
  ['name of the domain', 'QUOTE_DOMAIN_MISMATCH', inDomain('name', 'Service TradeRouter')],
]
const ENTRY: OrderRequest = { type: 'limit', symbol: 'NVDA', usdcAmount: '40', price: '1.5', exits: LADDER }

it.each(orderLies)('a quote of an order with another %s gets no signature', async (what, code, change) => {
  const clients = [clientOf(account, { baseUrl: proxy.url })]
  if (what !== 'nonce') clients.push(clientOf(account, { baseUrl: proxy.url, ...trusting }))
  for (const client of clients) {
    const { orders } = client.agent(agentId)
    proxy.set({})
    await orders.preparePlace(ENTRY)
    lie(change)
    const posts = proxy.requests.length
    await expect(orders.place(ENTRY)).rejects.toMatchObject({ code, kind: 'untrusted-quote' })
    expect(account.signatures).toBe(0)
    expect(proxy.requests.slice(posts).filter(({ method }) => method !== 'GET')).toEqual([])
  }
})

it('a quote that cancels another order, or sells another share at another distance, gets no signature', async () => {
  const { orders } = clientOf(account, { baseUrl: proxy.url }).agent(agentId)
  const orderId = `0x${'44'.repeat(32)}`
  lie(inMessage('orderId', `0x${'55'.repeat(32)}`))
  await expect(orders.cancel({ orderId })).rejects.toMatchObject({ code: 'QUOTE_ORDER_ID_MISMATCH' })
  const sale: OrderRequest = { type: 'trailingStop', positionId, exitBps: 5_000, trailPercent: '5' }
  lie(inMessage('exitBps', 10_000))
  await expect(orders.place(sale)).rejects.toMatchObject({ code: 'QUOTE_EXIT_BPS_MISMATCH' })
  lie(inMessage('trailBps', 1))
  await expect(orders.place(sale)).rejects.toMatchObject({ code: 'QUOTE_TRAIL_BPS_MISMATCH' })
  expect(account.signatures).toBe(0)
})

it('a service that denies that it placed an order gets no signature for a trade or another order', async () => {
  const options = { ...remembering(), ...trusting, baseUrl: proxy.url }
  const agent = () => clientOf(account, options).agent(agentId)
  proxy.set({
    onResponse: ({ method }, response) =>
      method === 'POST' ? { ...response, status: 400, body: { error: 'No.', code: 'MARKET_CLOSED' } } : undefined,
  })
  await expect(agent().orders.place(ENTRY)).rejects.toMatchObject({ code: 'MARKET_CLOSED' })
  proxy.set({})
  const refused = { code: 'QUOTE_NONCE_MISMATCH' }
  await expect(agent().add({ positionId, usdcAmount: '10' })).rejects.toMatchObject(refused)
  await expect(agent().orders.place({ ...ENTRY, price: '1.4' })).rejects.toMatchObject(refused)
  expect(account.signatures).toBe(1)
  const placed = await clientOf(account, options).resume(options.submissions[0] as Submission)
  expect(placed).toMatchObject({ state: 'open' })
  await agent().orders.cancel({ orderId: `${placed.orderId}` })
})

it('a service that sizes a trade beyond the loss that was asked for gets no signature', async () => {
  lie(inMessage('usdcAmount', '900000000'))
  const agent = clientOf(account, { baseUrl: proxy.url }).agent(agentId)
  for (const trade of [
    () => agent.open({ symbol: 'NVDA', maxLossUsdc: '8', stopLossPercent: '8' }),
    () => agent.add({ positionId, maxLossUsdc: '40' }),
  ])
    await expect(trade()).rejects.toMatchObject({ kind: 'untrusted-quote', code: 'QUOTE_USDC_AMOUNT_MISMATCH' })
  expect(account.signatures).toBe(0)
})

it('a service that denies an execution gets no signature for a second one, with a node or without', async () => {
  const options = { ...remembering(), baseUrl: proxy.url }
  const add = (more: Partial<ClientOptions>) =>
    clientOf(account, { ...options, ...more })
      .agent(agentId)
      .add({ positionId, usdcAmount: '10' })
  proxy.set({
    onResponse: ({ method }, response) =>
      method === 'POST' ? { ...response, status: 400, body: { error: 'No.', code: 'MARKET_CLOSED' } } : undefined,
  })
  await expect(add(trusting)).rejects.toMatchObject({ code: 'MARKET_CLOSED' })
  proxy.set({})
  for (const more of [trusting, {}])
    await expect(add(more)).rejects.toMatchObject({
      code: 'QUOTE_NONCE_MISMATCH',
      remedy: expect.stringMatching(/^Resume that message/),
    })
  expect(account.signatures).toBe(1)
  await clientOf(account, options).resume(options.submissions[0] as Submission)
  await add(trusting)
  expect(account.signatures).toBe(2)
})

it('a service that denies a registration gets no signature for a second one, and no second fee', async () => {
  const [signer, payer] = [countingAccount(newAccount()), newPayer()]
  let payments = 0
  const counting = {
    ...payer,
    pay(required: unknown) {
      payments++
      return payer.pay(required)
    },
  }
  const options = { ...remembering(), ...trusting, baseUrl: proxy.url }
  const register = () =>
    clientOf(signer, options).register({
      vault: 'genesis',
      name: 'denied',
      metadataURI: 'https://agents.example',
      payer: counting,
    })
  proxy.set({
    onResponse: ({ method }, response) =>
      method === 'POST' && response.status === 201
        ? { ...response, status: 400, body: { error: 'No.', code: 'REGISTRATION_PAUSED' } }
        : undefined,
  })
  await expect(register()).rejects.toMatchObject({ code: 'REGISTRATION_PAUSED' })
  proxy.set({})
  await expect(register()).rejects.toMatchObject({ code: 'QUOTE_NONCE_MISMATCH' })
  expect({ payments, signatures: signer.signatures }).toEqual({ payments: 1, signatures: 1 })
  const [submission] = options.submissions as [Submission]
  expect(await clientOf(signer, options).resume(submission)).toMatchObject({ agentId: expect.any(String) })
})

it('a service that names a later nonce first gets no signature for the present one', async () => {
  const options = { ...remembering(), ...trusting, baseUrl: proxy.url }
  const add = () => clientOf(account, options).agent(agentId).add({ positionId, usdcAmount: '10' })
  lie(({ typedData: { message } }) => {
    message.nonce = `${Number(message.nonce) + 1}`
  })
  await expect(add()).rejects.toMatchObject({ code: 'INVALID_NONCE' })
  proxy.set({})
  await expect(add()).rejects.toMatchObject({ code: 'QUOTE_NONCE_MISMATCH' })
  expect(account.signatures).toBe(1)
})

it('a nonce that was used is signed again only if the service says that a reorg has undone its message', async () => {
  const options = { ...remembering(), ...trusting, baseUrl: proxy.url }
  const add = (usdcAmount = '11') => clientOf(account, options).agent(agentId).add({ positionId, usdcAmount })
  proxy.set({})
  await add('10')
  const [first] = options.submissions as [Submission]
  const nonce = `${first.body.nonce}`
  lie(inMessage('nonce', nonce))
  await expect(add()).rejects.toMatchObject({ code: 'QUOTE_NONCE_MISMATCH' })
  expect(account.signatures).toBe(1)
  lie(inMessage('nonce', nonce), intent => {
    intent.state = 'rejected'
  })
  // The chain executes no second message with that nonce.
  await expect(add()).rejects.toMatchObject({ code: 'INVALID_NONCE' })
  expect(account.signatures).toBe(2)
})

it('trades of one agent at the same time wait for each other', async () => {
  const agent = clientOf(account, remembering()).agent(agentId)
  const [first, second] = [agent.reduce({ positionId, exitBps: 100 }), agent.reduce({ positionId, exitBps: 200 })]
  const outcomes = await Promise.allSettled([first, second])
  expect(outcomes.map(({ status }) => status)).toContain('fulfilled')
  // Whichever lost the nonce to the other can be sent again at once.
  await agent.reduce({ positionId, exitBps: 300 })
})

/** What a program keeps between its runs: nonces as JSON, and what was posted. */
function remembering() {
  const stored = new Map<string, string>()
  const submissions: Submission[] = []
  return {
    submissions,
    onSubmission: (submission: Submission) => void submissions.push(submission),
    nonceStore: {
      read: (holder: string) => JSON.parse(stored.get(holder) ?? 'null') ?? undefined,
      write: (holder: string, record: NonceRecord) => void stored.set(holder, JSON.stringify(record)),
    },
  }
}

it('a quote whose digest, body or typed data alone lies gets no signature', async () => {
  const one = async (code: string, change: (quote: Body) => void) => {
    proxy.set({
      onResponse({ path }, response) {
        if (path.includes('/quote')) change(response.body)
        return response
      },
    })
    const client = clientOf(account, { baseUrl: proxy.url })
    const open = client.agent(agentId).open({ symbol: 'NVDA', usdcAmount: '40', exits: LADDER })
    await expect(open).rejects.toMatchObject({ code })
  }
  await one('QUOTE_DIGEST_MISMATCH', quote => {
    quote.digest = `0x${'33'.repeat(32)}`
  })
  await one('QUOTE_BODY_MISMATCH', quote => {
    quote.body.symbol = 'AAPL'
  })
  await one('QUOTE_NONCE_MISMATCH', quote => {
    quote.body.nonce = '9'
  })
  await one('QUOTE_CHAIN_ID_MISMATCH', quote => {
    delete quote.typedData
  })
  await one('WRONG_ACCOUNT', quote => {
    quote.signer = STRANGER
  })
  expect(account.signatures).toBe(0)
})

it('other positions, shares, owners, mandates and registrations than those asked for get no signature', async () => {
  const client = clientOf(account, { baseUrl: proxy.url })
  const agent = client.agent(agentId)
  const owner = client.owner(agentId)
  const cases: [code: string, field: string, value: unknown, call: () => Promise<unknown>][] = [
    ['QUOTE_POSITION_ID_MISMATCH', 'positionId', '99', () => agent.add({ positionId, usdcAmount: '10' })],
    ['QUOTE_EXIT_BPS_MISMATCH', 'exitBps', 10_000, () => agent.reduce({ positionId, exitBps: 100 })],
    [
      'QUOTE_EXITS_HASH_MISMATCH',
      'exitsHash',
      `0x${'11'.repeat(32)}`,
      () => agent.setLadder({ positionId, exits: LADDER }),
    ],
    ['QUOTE_NEW_OWNER_MISMATCH', 'newOwner', STRANGER, () => owner.transfer({ newOwner: zeroAddress })],
    ['QUOTE_SIGNER_MISMATCH', 'signer', STRANGER, () => owner.setSigner({ newSigner: account.address })],
    ['QUOTE_AGENT_IDS_MISMATCH', 'agentIds', [agentId, '1'], () => owner.stop({ action: 'flatten' })],
    ['QUOTE_UNTIL_NONCE_MISMATCH', 'untilNonce', '60', () => owner.cancel()],
    [
      'QUOTE_MAX_TRADE_USDC_MISMATCH',
      'maxTradeUsdc',
      '0',
      () => owner.setMandate({ mode: 'trade', maxTradeUsdc: '100' }),
    ],
    [
      'QUOTE_METADATA_URI_MISMATCH',
      'metadataURI',
      'https://stranger.example',
      () => client.register({ vault: 'genesis', name: 'x', metadataURI: 'https://agents.example', payer: newPayer() }),
    ],
  ]
  for (const [code, field, value, call] of cases) {
    lie(inMessage(field, value))
    await expect(call(), field).rejects.toMatchObject({ code })
  }
  expect(account.signatures).toBe(0)
})

it('pins that the service or the chain contradict get no signature', async () => {
  const open = (options: Partial<ClientOptions>) =>
    clientOf(account, options).agent(agentId).open({ symbol: 'NVDA', usdcAmount: '40', exits: LADDER })
  const other = { ...pins, vault: STRANGER } as const
  await expect(open({ pins: other })).rejects.toMatchObject({ code: 'QUOTE_VAULT_MISMATCH' })
  const { AAPL, NVDA } = deployment.tokens
  await expect(open({ pins: { ...pins, tokens: { NVDA: AAPL ?? NVDA ?? '0x' } } })).rejects.toMatchObject({
    code: 'QUOTE_TOKEN_MISMATCH',
  })
  await expect(open({ pins: { ...pins, chainId: 1 } })).rejects.toMatchObject({ code: 'CHAIN_ID_NOT_CONFIRMED' })
  const noContract = { ...pins, tradeRouter: STRANGER } as const
  await expect(open({ pins: noContract })).rejects.toMatchObject({ code: 'CONTRACT_NOT_CONFIRMED' })
  // A service that names another router is caught by the chain, or by the pin.
  proxy.set({
    onResponse({ path }, response) {
      if (path === '/') response.body.contracts.TradeRouter = STRANGER
      return response
    },
  })
  await expect(open({ baseUrl: proxy.url, pins: {} })).rejects.toMatchObject({ code: 'CONTRACT_NOT_CONFIRMED' })
  expect(account.signatures).toBe(0)
})

it('a payer pays neither another asset, chain or payee nor more than the fee, nor for longer than it may', async () => {
  const lies: [field: string, value: unknown][] = [
    ['asset', STRANGER],
    ['amount', '1000001'],
    ['network', 'eip155:1'],
    ['scheme', 'upto'],
    ['maxTimeoutSeconds', 86_400],
  ]
  const payer = countingAccount(newAccount())
  for (const [field, value] of lies) {
    proxy.set({
      onResponse({ path }, response) {
        if (path.includes('/register/quote')) response.body.x402.requirements[field] = value
        for (const offered of response.body.accepts ?? []) offered[field] = value
        return response
      },
    })
    const fresh = countingAccount(newAccount())
    const register = clientOf(fresh, { baseUrl: proxy.url }).register({
      vault: 'genesis',
      name: 'x',
      metadataURI: 'https://agents.example',
      payer: newPayer(1_000_000n, payer),
    })
    const remedy = expect.stringContaining(field === 'maxTimeoutSeconds' ? 'maxValiditySeconds' : 'not to be trusted')
    await expect(register, field).rejects.toMatchObject({ code: 'PAYMENT_NOT_ALLOWED', remedy })
    expect(fresh.signatures).toBe(0)
  }
  // The same when only the 402 lies, after a true quote.
  proxy.set({
    onResponse(_, response) {
      for (const offered of response.body.accepts ?? []) offered.amount = '1000001'
      return response
    },
  })
  const register = clientOf(newAccount(), { baseUrl: proxy.url }).register({
    vault: 'genesis',
    name: 'x',
    metadataURI: 'https://agents.example',
    payer: newPayer(1_000_000n, payer),
  })
  await expect(register).rejects.toMatchObject({ code: 'PAYMENT_NOT_ALLOWED' })
  expect(payer.signatures).toBe(0)
})
