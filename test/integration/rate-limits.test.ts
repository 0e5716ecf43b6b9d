import { env } from 'cloudflare:workers'
import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { createTestClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { connect } from '../../devnet/sender.ts'
import { newTrader, openPosition, sign, signedIntent, submit } from '../support/actors.ts'
import { appWith, callOverHttp, deployment, type Fetch, request } from '../support/surfaces.ts'

// HTTP only: limits depend on headers. MCP is called with raw messages.
// Every app counts for itself, as isolates do. Requests without a client address are not counted. The service's clock
// stands still during a test, so that no budget refills, however slow the machine is.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: Date.now() }))
afterEach(() => void vi.useRealTimers())

/** Returns the service as a client at an address sees it. */
const from =
  (address: string, app: Fetch): Fetch =>
  sent => {
    const headers = new Headers(sent.headers)
    headers.set('cf-connecting-ip', address)
    return app(new Request(sent, { headers }))
  }

const limited = (limit: string) => ({ status: 429, body: { code: 'RATE_LIMITED', details: { limit } } })

it('a response says what is left, a refusal when to come back, and no other address is affected', async () => {
  const app = appWith({ REQUEST_BUDGET_ADDRESS: '2' })
  const client = from('192.0.2.10', app)
  for (const remaining of [1, 0]) {
    const { status, headers } = await callOverHttp('listVaults', {}, client)
    expect(status).toBe(200)
    expect(headers.get('ratelimit-policy')).toBe('"reads";q=2;w=60')
    expect(headers.get('ratelimit')).toMatch(new RegExp(`^"reads";r=${remaining};t=\\d+$`))
  }
  const refused = await callOverHttp('listVaults', {}, client)
  expect(refused).toMatchObject(limited('reads'))
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60)
  expect((await callOverHttp('listVaults', {}, from('192.0.2.11', app))).status).toBe(200)
})

it('one budget pays for all kinds of requests, each at its price, and 0 is no limit', async () => {
  const { agentId } = await newTrader()
  const unlimited = from('192.0.2.12', appWith({ REQUEST_BUDGET_ADDRESS: '0' }))
  for (let reads = 0; reads < 5; reads++) expect((await callOverHttp('listTokens', {}, unlimited)).status).toBe(200)
  const client = from('192.0.2.12', appWith({ REQUEST_BUDGET_ADDRESS: '60' }))
  expect((await callOverHttp('getTradeIntentQuote', { agentId }, client)).status).toBe(200) // 4
  expect((await callOverHttp('registerAgent', {}, client)).status).toBe(400) // 40, and 6 for a body of undeclared length
  const opened = await request('/events', {}, client) // 8
  expect(opened.status).toBe(200)
  await opened.body?.cancel()
  expect(await callOverHttp('registerAgent', {}, client)).toMatchObject(limited('registrations'))
  expect((await callOverHttp('listTokens', {}, client)).status).toBe(200)
})

/**
 * Returns a block for which a read waits: how far ahead one may be depends on the pace of the last hundred blocks, in
 * which other tests have moved the clock.
 */
async function blockAhead(client: Fetch): Promise<bigint> {
  await createTestClient({ mode: 'anvil', transport: http(deployment.rpcUrl) }).mine({ blocks: 128, interval: 0 })
  const { headers } = await callOverHttp('listVaults', {}, client)
  return BigInt(headers.get('x-as-of-block') ?? 0) + 20n
}

/** What a response says is left of a budget. */
const leftIn = (headers: Headers) => Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1])

/** Adds the records of 600 agents, which the leaderboard reads. Returns what deletes them. */
async function addTrackRecords() {
  await newTrader() // the index has its tables then
  const vault = deployment.vaults.genesis
  const record = { hour: 1, lastTrade: 0, cash: '0n', holdings: {}, pnl: '0n', scores: {} }
  const records = Array.from({ length: 600 }, (_, index) => ({
    ...{ agentId: 1_000_000 + index, capitalMode: CapitalMode.Real, vault, track: 0, cap: '1n', record },
  }))
  const hour = Math.floor(Date.now() / 3_600_000)
  const insert = 'INSERT INTO track_records (hour, part, from_block, block, content) VALUES (?, 9, 1, 1, ?)'
  await env.HISTORY.prepare(insert).bind(hour, JSON.stringify(records)).run()
  return () => env.HISTORY.prepare('DELETE FROM track_records WHERE part = 9').run()
}

it('a page of the leaderboard and the statistics of a vault also count what grows with the number of agents', async () => {
  const forget = await addTrackRecords()
  const headersAfter = async (read: (client: Fetch) => ReturnType<typeof callOverHttp>, address: string) => {
    const client = from(address, appWith({ REQUEST_BUDGET_ADDRESS: '60' }))
    expect((await read(client)).status).toBe(200)
    return (await callOverHttp('listVaults', {}, client)).headers
  }
  const headers = await headersAfter(client => callOverHttp('getLeaderboard', {}, client), '192.0.2.17')
  expect(leftIn(headers)).toBe(60 - 10 - 10 - 1)
  const stats = await headersAfter(client => callOverHttp('getVaultStats', { id: 'genesis' }, client), '192.0.2.18')
  expect(leftIn(stats)).toBeLessThan(60 - 10 - 1)
  await forget()
})

it('what a read turns out to cost counts although less was left, and the next one waits for it', async () => {
  const forget = await addTrackRecords()
  const client = from('192.0.2.20', appWith({ REQUEST_BUDGET_ADDRESS: '15' }))
  expect((await callOverHttp('getLeaderboard', { minTrades: '0' }, client)).status).toBe(200)
  expect(await callOverHttp('listVaults', {}, client)).toMatchObject(limited('reads'))
  await forget()
})

it('a page of the leaderboard costs ten units, over both surfaces', async () => {
  const client = from('192.0.2.15', appWith({ REQUEST_BUDGET_ADDRESS: '25' }))
  const page = await callOverHttp('getLeaderboard', {}, client)
  expect(leftIn(page.headers)).toBe(15)
  const called = await request(
    '/mcp',
    {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'svc_get_leaderboard', arguments: {} },
      }),
    },
    client,
  )
  expect(leftIn(called.headers)).toBe(1) // its body of undeclared length costs four more
  await called.body?.cancel()
  expect(await callOverHttp('getLeaderboard', {}, client)).toMatchObject(limited('reads'))
})

it('verifying a payment costs five units: it calls a node as often', async () => {
  const client = from('192.0.2.19', appWith({ REQUEST_BUDGET_ADDRESS: '25' }))
  const verify = () =>
    callOverHttp('verifyPayment', { x402Version: 2, paymentPayload: {}, paymentRequirements: {} }, client)
  // Its body of undeclared length costs six more.
  expect(leftIn((await verify()).headers)).toBe(14)
  expect(leftIn((await verify()).headers)).toBe(3)
  expect(await verify()).toMatchObject(limited('reads'))
})

it('time series and candles cost by their size', async () => {
  const { agentId } = await newTrader()
  const client = from('192.0.2.16', appWith({ REQUEST_BUDGET_ADDRESS: '50' }))
  expect((await callOverHttp('getEquityHistory', { agentId }, client)).status).toBe(200)
  expect(await callOverHttp('getEquityHistory', { agentId }, client)).toMatchObject(limited('reads'))
  expect((await callOverHttp('listVaults', {}, client)).status).toBe(200)
  expect(await callOverHttp('getVaultStats', { id: 'genesis' }, client)).toMatchObject(limited('reads'))
  const long = { symbol: 'NVDA', interval: '15m', limit: 1_000 }
  expect(await callOverHttp('getCandles', long, client)).toMatchObject(limited('reads'))
})

it('a client that shares a read with one over its limit is not refused with it', async () => {
  await newTrader()
  const app = appWith({ REQUEST_BUDGET_ADDRESS: '30', READ_LEASE_MS: '60000' })
  const [stranger, honest] = [from('192.0.2.21', app), from('192.0.2.22', app)]
  for (let reads = 0; reads < 20; reads++) await callOverHttp('listAgents', {}, stranger)
  // A day counts as 24 further reads.
  const day = { symbol: 'NVDA', interval: '15m', limit: 96 }
  const [refused, read] = await Promise.all([stranger, honest].map(client => callOverHttp('getCandles', day, client)))
  expect(refused).toMatchObject(limited('reads'))
  expect(read?.status).toBe(200)
})

it('statistics count as reads by the trades that they are computed from', async () => {
  const [idle, trader] = [await newTrader(), await newTrader()]
  const positionId = await openPosition(trader)
  for (let sold = 0; sold < 12; sold++) await submit(trader, 'submitReduceIntent', { positionId, exitBps: 100 })
  const readsLeft = async ({ agentId }: typeof trader, address: string) => {
    const client = from(address, appWith({ REQUEST_BUDGET_ADDRESS: '50' }))
    expect((await callOverHttp('getAgentStats', { agentId }, client)).status).toBe(200)
    const { headers } = await callOverHttp('listVaults', {}, client)
    return leftIn(headers)
  }
  expect(await readsLeft(trader, '192.0.2.17')).toBeLessThan(await readsLeft(idle, '192.0.2.18'))
})

it('a lookup in all lanes counts as a read for each of them', async () => {
  const unknown = `0x${'7'.repeat(64)}`
  const leftAfter = async (operation: 'getIntent' | 'getTransaction', input: object, address: string) => {
    const client = from(address, appWith({ REQUEST_BUDGET_ADDRESS: '60' }))
    expect((await callOverHttp(operation, { ...input }, client)).status).toBe(404)
    const { headers } = await callOverHttp('listAgents', {}, client)
    return leftIn(headers)
  }
  // The executor and the relayer have intents; the updater and the keeper send transactions too.
  expect(await leftAfter('getIntent', { digest: unknown }, '192.0.2.70')).toBeLessThanOrEqual(60 - 2)
  expect(await leftAfter('getTransaction', { txHash: unknown }, '192.0.2.71')).toBeLessThanOrEqual(60 - 4)
})

it('a transaction counts as reads by the gas that its replay takes: its sender chooses that', async () => {
  const sender = privateKeyToAccount(deployment.accounts.keeper.privateKey)
  const rpc = connect(deployment.rpcUrl, deployment.chainId)
  const serializedTransaction = await sender.signTransaction({
    type: 'eip1559',
    chainId: deployment.chainId,
    nonce: await rpc.getTransactionCount({ address: sender.address }),
    data: '0x5b5f56', // creates a contract, and loops until no gas is left
    gas: 8_000_000n,
    maxFeePerGas: 1_000_000_000_000n,
    maxPriorityFeePerGas: 0n,
  })
  const txHash = await rpc.sendRawTransaction({ serializedTransaction })
  await rpc.waitForTransactionReceipt({ hash: txHash })
  const client = from('192.0.2.72', appWith({ REQUEST_BUDGET_ADDRESS: '60' }))
  const read = await callOverHttp('getTransaction', { txHash }, client)
  expect(read).toMatchObject({ status: 200, body: { status: 'reverted' } })
  const { headers } = await callOverHttp('listAgents', {}, client)
  expect(leftIn(headers)).toBe(50)
})

it('lists count as reads by the rows that are looked through, however few are returned', async () => {
  const [{ agentId, account }, other] = [await newTrader(), await newTrader()]
  const { body: controls } = await callOverHttp('getMandateQuote', { agentId })
  const add = (table: string, columns: string, values: string) =>
    env.HISTORY.prepare(
      `WITH RECURSIVE place (log_index) AS (SELECT 1000 UNION ALL SELECT log_index + 1 FROM place LIMIT 400)
      INSERT INTO ${table} (log_index, transaction_hash, timestamp, ${columns}) SELECT log_index, '0x', 1, ${values} FROM place`,
    ).run()
  const trade = `1, ${agentId}, 0, 'PositionReduced', 'intent', '0x', '0x', ''`
  await add('trades', 'block, agent_id, position_id, type, source, token, vault, book', trade)
  await add(
    'events',
    'block, agent_id, contract, name, args',
    `1, ${other.agentId}, '0x', 'AllocationCapUpdated', '{}'`,
  )
  await add('events', 'block, contract, name, args', `2, '${controls.ownerControls}', 'OwnershipOffered', '{}'`)
  const reads = [
    ['getTradeHistory', { agentId, type: 'ExitExecuted' }],
    ['listTrades', { type: 'ExitExecuted' }],
    ['listOwnerEvents', { agentId: other.agentId, limit: '1' }],
    ['listOffers', { owner: account.address }],
  ] as const
  for (const [index, [operation, input]] of reads.entries()) {
    const client = from(`192.0.2.${60 + index}`, appWith({ REQUEST_BUDGET_ADDRESS: '60' }))
    expect.soft((await callOverHttp(operation, input, client)).status, operation).toBe(200)
    const { headers } = await callOverHttp('listVaults', {}, client)
    expect.soft(leftIn(headers), operation).toBeLessThanOrEqual(60 - 1 - Math.floor(400 / 60))
  }
  for (const table of ['trades', 'events'])
    await env.HISTORY.prepare(`DELETE FROM ${table} WHERE block <= 2 AND log_index >= 1000`).run()
})

it('a verified signature adds to the budget of its address, a repeated body does not', async () => {
  const trader = await newTrader()
  const positionId = await openPosition(trader)
  const app = appWith({ REQUEST_BUDGET_ADDRESS: '1' })
  const [client, stranger] = [from('192.0.2.13', app), from('192.0.2.14', app)]
  expect((await callOverHttp('listVaults', {}, client)).status).toBe(200)
  expect(await callOverHttp('listVaults', {}, client)).toMatchObject(limited('reads'))

  const body = await signedIntent(trader, 'submitReduceIntent', { positionId, exitBps: 100 })
  expect((await callOverHttp('submitReduceIntent', body, client)).status).toBe(201)
  const raised = await callOverHttp('listVaults', {}, client)
  expect(raised.status).toBe(200)
  expect(raised.headers.get('ratelimit-policy')).toBe('"reads";q=2;w=60')

  expect((await callOverHttp('submitReduceIntent', body, stranger)).status).toBe(201)
  expect((await callOverHttp('listVaults', {}, stranger)).headers.get('ratelimit-policy')).toBe('"reads";q=1;w=60')
})

it('a signed body that others send again raises no address, however long it is valid', async () => {
  const { agentId, account } = await newTrader()
  const app = appWith({ REQUEST_BUDGET_ADDRESS: '100' })
  const quote = await callOverHttp('getWebhookListQuote', { agentId })
  const body = { agentId, ...quote.body.body, signature: await sign(account, quote.body.typedData) }
  const quotaAfterSending = async (address: string) => {
    const client = from(address, app)
    expect((await callOverHttp('listWebhooks', body, client)).status).toBe(200)
    return (await callOverHttp('listVaults', {}, client)).headers.get('ratelimit-policy')
  }
  expect(await quotaAfterSending('192.0.2.50')).toBe('"reads";q=200;w=60')
  expect(await quotaAfterSending('192.0.2.51')).toBe('"reads";q=100;w=60')
  expect(await quotaAfterSending('2001:db8::1')).toBe('"reads";q=100;w=60')
})

it('a signed body that others send again uses up no limit of its signer', async () => {
  const trader = await newTrader()
  const { agentId, account } = trader
  const positionId = await openPosition(trader)
  const app = appWith({ REQUEST_BUDGET_ACCOUNT: '8' })
  const quote = await callOverHttp('getWebhookListQuote', { agentId })
  const body = { agentId, ...quote.body.body, signature: await sign(account, quote.body.typedData) }
  for (const address of ['192.0.2.56', '192.0.2.57', '2001:db8:7::1'])
    expect((await callOverHttp('listWebhooks', body, from(address, app))).status).toBe(200)
  const intent = await signedIntent(trader, 'submitAddIntent', { positionId, usdcAmount: '10' })
  expect((await callOverHttp('submitAddIntent', intent, from('192.0.2.58', app))).status).toBe(201)
  const other = await callOverHttp('getWebhookListQuote', {
    agentId,
    deadline: `${Number(quote.body.serverTime) + 1_000}`,
  })
  const next = { agentId, ...other.body.body, signature: await sign(account, other.body.typedData) }
  expect(await callOverHttp('listWebhooks', next, from('192.0.2.56', app))).toMatchObject(limited('signer'))
})

it('a reduction is exempt from limits once it was sent to the chain, and not before', async () => {
  const trader = await newTrader()
  const positionId = await openPosition(trader)
  const client = from('192.0.2.52', appWith({ REQUEST_BUDGET_ADDRESS: '20' }))
  for (let sent = 0; sent < 3; sent++) {
    const body = await signedIntent(trader, 'submitReduceIntent', { positionId, exitBps: 100 })
    expect((await callOverHttp('submitReduceIntent', body, client)).status).toBe(201)
  }
  const body = await signedIntent(trader, 'submitReduceIntent', { positionId, exitBps: 100 })
  const forged = { ...body, signature: `0x${'5f'.repeat(64)}1b` }
  const statuses = []
  for (let sent = 0; sent < 3; sent++) statuses.push((await callOverHttp('submitReduceIntent', forged, client)).status)
  // With a body of undeclared length, each costs ten; the verified signatures have doubled the budget.
  for (let sent = 0; sent < 2; sent++) statuses.push((await callOverHttp('submitReduceIntent', forged, client)).status)
  expect(statuses).toEqual([400, 400, 400, 400, 429])
  expect((await callOverHttp('submitReduceIntent', body, from('192.0.2.53', appWith({})))).status).toBe(201)
})

it('a reduction that is refused counts, although its signature is valid', async () => {
  const trader = await newTrader()
  const { agentId, account } = trader
  const positionId = await openPosition(trader)
  const client = from('192.0.2.54', appWith({ REQUEST_BUDGET_ADDRESS: '20' }))
  const statuses = []
  for (let sent = 0; sent < 5; sent++) {
    const { body: quote } = await callOverHttp('getReduceIntentQuote', { agentId, positionId, exitBps: 100 })
    const other = { positionId: `${1_000_000 + sent}` }
    const typedData = { ...quote.typedData, message: { ...quote.typedData.message, ...other } }
    const body = { agentId, ...quote.body, ...other, signature: await sign(account, typedData) }
    statuses.push((await callOverHttp('submitReduceIntent', body, client)).status)
  }
  // With a body of undeclared length, each costs ten; the verified signatures have doubled the budget.
  expect(statuses.map(status => status === 429)).toEqual([false, false, false, false, true])
})

it('a signature is explained a few times a minute, also where it is refused', async () => {
  const trader = await newTrader()
  const app = appWith({ REQUEST_BUDGET_ADDRESS: '480' })
  const order = { symbol: 'NVDA', usdcAmount: '10', exits: '-800:10000' }
  const quote = await callOverHttp('getTradeIntentQuote', { agentId: trader.agentId, ...order })
  const { typedData } = quote.body
  const otherChain = { ...typedData, domain: { ...typedData.domain, chainId: 1 } }
  const mistaken = { agentId: trader.agentId, ...quote.body.body, signature: await sign(trader.account, otherChain) }
  const verify = { primaryType: 'OpenPosition', message: typedData.message, signature: mistaken.signature }
  const [client, other] = [from('192.0.2.54', app), from('192.0.2.55', app)]
  expect((await callOverHttp('verifySignature', verify, client)).body).toMatchObject({ mistake: 'otherChainId' })
  expect(await callOverHttp('verifySignature', verify, client)).toMatchObject(limited('signatureSearches'))
  const refused = await callOverHttp('submitTradeIntent', mistaken, client)
  expect(refused).toMatchObject({ status: 400, body: { code: 'INVALID_SIGNATURE' } })
  expect(refused.body.details).not.toHaveProperty('mistake')
  expect((await callOverHttp('submitTradeIntent', mistaken, other)).body).toMatchObject({ code: 'INVALID_SIGNATURE' })
})

it('an address that sends too much at once is refused, another one and an agent that signs are not', async () => {
  const trader = await newTrader()
  const positionId = await openPosition(trader)
  const app = appWith({ REQUEST_BUDGET_ADDRESS: '180', MAX_PARALLEL_REQUESTS: '0' })
  const [client, other] = [from('192.0.2.30', app), from('192.0.2.31', app)]
  const read = async (client: Fetch) => {
    const response = await request('/agents/by-owner/0x', {}, client) // a 400, which costs the chain nothing
    return { status: response.status, retryAfter: response.headers.get('retry-after'), body: await response.json() }
  }
  const results = await Promise.all(Array.from({ length: 200 }, () => read(client)))
  expect(results.slice(0, 60).map(({ status }) => status)).toEqual(Array(60).fill(400))
  const refused = results.filter(({ status }) => status === 429)
  expect(refused.length).toBeGreaterThan(1)
  // The first refusal comes from the app, the others reuse its header fields.
  for (const { retryAfter, body } of [refused[0], refused.at(-1)].flatMap(result => result ?? []))
    expect({ retryAfter, body }).toMatchObject({
      retryAfter: '1',
      body: {
        code: 'RATE_LIMITED',
        details: { limit: 'reads', requests: 60, seconds: 20 },
        requestId: expect.anything(),
      },
    })
  expect((await read(other)).status).toBe(400)
  const body = await signedIntent(trader, 'submitReduceIntent', { positionId, exitBps: 100 })
  expect((await callOverHttp('submitReduceIntent', body, client)).status).toBe(201)
  expect((await read(client)).status).toBe(400)
})

it('a refusal does not wait for the body and has the headers of every response', async () => {
  const app = appWith({ REQUEST_BUDGET_ADDRESS: '4' })
  const client = from('192.0.2.32', app)
  const send = async () => {
    let [isRead, isCancelled] = [false, false]
    const body = new ReadableStream(
      {
        pull: () => {
          isRead = true
          return new Promise(() => {}) // never comes
        },
        cancel: () => {
          isCancelled = true
        },
      },
      { highWaterMark: 0 },
    )
    const sent = { method: 'POST', headers: { 'content-type': 'application/json', 'x-request-id': 'mine' }, body }
    const response = await request('/prices/refresh', sent, client)
    return { response, isRead, isCancelled }
  }
  await callOverHttp('refreshPrices', {}, client)
  const [first, second] = [await send(), await send()]
  expect([first.response.status, second.response.status, second.isRead, second.isCancelled]).toEqual([
    429,
    429,
    false,
    true,
  ])
  expect(Object.keys(Object.fromEntries(second.response.headers))).toEqual(
    Object.keys(Object.fromEntries(first.response.headers)),
  )
  expect(second.response.headers.get('x-request-id')).toBe('mine')
  expect(await second.response.json()).toEqual(await first.response.json())
})

it('requests that wait for a block hold no turn, and pay for the wait', async () => {
  await newTrader()
  // The budget refills by two units a second, a quarter of what a second of waiting costs.
  const app = appWith({ MAX_PARALLEL_REQUESTS: '2', READ_LEASE_MS: '0', REQUEST_BUDGET_ADDRESS: '120' })
  const block = await blockAhead(from('192.0.2.80', app))
  const order: string[] = []
  const waits = ['192.0.2.81', '192.0.2.82', '192.0.2.81', '192.0.2.82'].map(async address => {
    const response = await request('/vaults', { headers: { 'min-block': `${block}` } }, from(address, app))
    order.push('waited')
    return { status: response.status, body: await response.json() }
  })
  const honest = await Promise.all(
    Array.from({ length: 6 }, async (_, index) => {
      const result = await callOverHttp('listVaults', {}, from(`192.0.2.${83 + index}`, app))
      order.push('honest')
      return result
    }),
  )
  // There are two turns: if those who wait held them, nobody else would be first.
  expect(order[0]).toBe('honest')
  expect(honest.map(({ status }) => status)).toEqual(Array(6).fill(200))
  for (const waited of await Promise.all(waits))
    expect(waited).toMatchObject({ status: 502, body: { code: 'NODES_BEHIND' } })
  const { headers } = await callOverHttp('listVaults', {}, from('192.0.2.81', app))
  expect(leftIn(headers)).toBeLessThan(120 - 2 * 8)
})

it('two dozen requests from four addresses that wait for a block keep nobody from reading, from its health and from opening', async () => {
  const trader = await newTrader()
  const app = appWith({ READ_LEASE_MS: '0' })
  const block = await blockAhead(from('192.0.2.90', app))
  let waiting = 24
  const waits = Array.from({ length: waiting }, async (_, index) => {
    await request('/vaults', { headers: { 'min-block': `${block}` } }, from(`198.51.100.${1 + (index % 4)}`, app))
    waiting--
  })
  const opening = callOverHttp(
    'submitTradeIntent',
    await signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '10' }),
    from('192.0.2.91', app),
  )
  const statuses: number[] = []
  for (let round = 0; round < 5; round++) {
    const honest = Array.from({ length: 5 }, (_, index) => from(`203.0.113.${round * 5 + index}`, app))
    const reads = honest.map(client => callOverHttp('listVaults', {}, client))
    const health = callOverHttp('getHealth', {}, from('192.0.2.92', app))
    statuses.push(...(await Promise.all([...reads, health])).map(({ status }) => status))
  }
  expect(waiting).toBe(24)
  expect(statuses).toEqual(Array(30).fill(200))
  expect(await opening).toMatchObject({ status: 201 })
  await Promise.all(waits)
})

it('a client waits for blocks with as many requests as it can pay for, and the rest are refused at once', async () => {
  const app = appWith({ REQUEST_BUDGET_ADDRESS: '180', READ_LEASE_MS: '0' })
  const headers = { 'min-block': `${await blockAhead(from('192.0.2.95', app))}` }
  const statuses = await Promise.all(
    Array.from({ length: 20 }, async () => (await request('/vaults', { headers }, from('192.0.2.96', app))).status),
  )
  expect(statuses.filter(status => status === 502).length).toBeLessThanOrEqual(7)
  expect(statuses.filter(status => status === 429).length).toBeGreaterThanOrEqual(13)
})

it('requests of a stranger wait for their turn, and nobody is refused for it', async () => {
  const headers = { 'cf-connecting-ip': '192.0.2.33' }
  const responses = await Promise.all(
    Array.from({ length: 6 }, (_, id) => request(`/agents/${900_000 + id}`, { headers })),
  )
  expect(responses.map(({ status }) => status)).toEqual(Array(6).fill(404))
  await Promise.all(responses.map(({ body }) => body?.cancel()))
})

it('a signer has a limit wherever its messages come from; repeated bodies and reductions do not count', async () => {
  const trader = await newTrader()
  const positionId = await openPosition(trader)
  const app = appWith({ REQUEST_BUDGET_ACCOUNT: '8' })
  const add = async (address: string) => {
    const body = await signedIntent(trader, 'submitAddIntent', { positionId, usdcAmount: '10' })
    return callOverHttp('submitAddIntent', body, from(address, app))
  }
  const [first, second, third] = [await add('192.0.2.15'), await add('192.0.2.16'), await add('192.0.2.17')]
  expect([first.status, second.status]).toEqual([201, 201])
  expect(third).toMatchObject(limited('signer'))
  expect(JSON.stringify(third)).toContain('The signer has made more than 2 requests')
  const reduction = await signedIntent(trader, 'submitReduceIntent', { positionId, exitBps: 100 })
  expect((await callOverHttp('submitReduceIntent', reduction, from('192.0.2.18', app))).status).toBe(201)
})

it('every refusal has the same header fields, also if the first one is for a page that a browser opens', async () => {
  const app = appWith({ REQUEST_BUDGET_ADDRESS: '1' })
  const client = from('192.0.2.40', app)
  await callOverHttp('listVaults', {}, client)
  const names: string[][] = []
  for (const [path, accept] of [
    ['/', 'text/html'],
    ['/app/agents', 'text/html'],
    ['/vaults', 'application/json'],
  ] as const) {
    const { status, headers, body } = await request(path, { headers: { accept } }, client).then(async response => ({
      status: response.status,
      headers: response.headers,
      body: await response.json(),
    }))
    expect({ status, body }).toMatchObject(limited('reads'))
    expect(headers.get('content-type')).toContain('application/json')
    expect(headers.get('content-security-policy')).toBe("default-src 'none'; frame-ancestors 'none'")
    names.push([...headers.keys()].sort())
  }
  expect(names[1]).toEqual(names[0])
  expect(names[2]).toEqual(names[0])
})

it('a path with escaped characters counts like the same path without them, and an unknown path counts as a read', async () => {
  const client = from('192.0.2.41', appWith({ REQUEST_BUDGET_ADDRESS: '6' }))
  const statusOf = async (path: string, method = 'GET') => {
    const response = await request(path, { method }, client)
    await response.body?.cancel()
    return response.status
  }
  expect([
    await statusOf('/%76aults'),
    await statusOf('/llms.txt'), // two, for its size
    await statusOf('/nowhere'),
    await statusOf('/%E0%A4%A'),
    await statusOf('/vaults', 'OPTIONS'),
    await statusOf('/vaults'),
    await statusOf('/%76aults'),
    await statusOf('/llms.txt'),
  ]).toEqual([200, 200, 404, 404, 204, 200, 429, 429])
})

const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
}
const post = (body: unknown, client: Fetch, more: Record<string, string> = {}) => {
  const text = JSON.stringify(body)
  const length = { 'content-length': `${text.length}` }
  return request('/mcp', { method: 'POST', headers: { ...headers, ...length, ...more }, body: text }, client)
}
async function openSession(client: Fetch): Promise<{ 'mcp-session-id': string }> {
  const response = await post(initialize, client)
  await response.text()
  const session = { 'mcp-session-id': response.headers.get('mcp-session-id') ?? '' }
  await (await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, client, session)).text()
  return session
}
async function replyOf(response: Response) {
  const text = await response.text()
  return { status: response.status, text, fields: response.headers.get('ratelimit') }
}

it('each call of an MCP batch counts with its own kind', async () => {
  const { agentId } = await newTrader()
  const app = appWith({ REQUEST_BUDGET_ADDRESS: '60' })
  const client = from('192.0.2.20', app)
  const session = await openSession(client)
  const quote = (id: number) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: 'svc_get_trade_intent_quote', arguments: { agentId } },
  })
  const passed = await replyOf(
    await post([quote(11), { ...quote(12), method: 'tools/list', params: {} }], client, session),
  )
  expect(passed).toMatchObject({ status: 200, fields: expect.stringMatching(/"quotes";r=\d+;.*"reads";r=\d+/) })
  const refused = await replyOf(await post([13, 14, 15, 16, 17, 18].map(quote), client, session))
  expect(refused).toMatchObject({ status: 429, text: expect.stringContaining('limit `quotes`') })
  const other = await replyOf(await post([{ ...quote(19), method: 'tools/list', params: {} }], client, session))
  expect(other.status).toBe(200)
})

it('a new MCP session costs as much as thirty-two reads', async () => {
  const client = from('192.0.2.21', appWith({ REQUEST_BUDGET_ADDRESS: '60' }))
  const session = await openSession(client)
  expect(await replyOf(await post(initialize, client))).toMatchObject({
    status: 429,
    text: expect.stringContaining('limit `mcpSessions`'),
  })
  expect((await replyOf(await post({ jsonrpc: '2.0', id: 2, method: 'ping' }, client, session))).status).toBe(200)
})

it('a session id that the service did not issue has no limit of its own: its messages count for the address', async () => {
  const client = from('192.0.2.22', appWith({ REQUEST_BUDGET_ADDRESS: '2' }))
  const ping = (id: string) =>
    post({ jsonrpc: '2.0', id: 1, method: 'ping' }, client, { 'mcp-session-id': id }).then(replyOf)
  for (const remaining of [1, 0])
    expect(await ping(`${remaining}`.repeat(10_000))).toMatchObject({
      status: 404,
      fields: expect.stringMatching(new RegExp(`^"reads";r=${remaining};t=\\d+$`)),
    })
  expect((await ping('another')).status).toBe(429)
})

it('a tool name that is no text is refused, and a failure has a JSON-RPC error and a line in the log', async () => {
  const client = from('192.0.2.23', appWith({}))
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: { toString: 1 }, arguments: {} } }
  expect(await replyOf(await post(call, client))).toMatchObject({ text: expect.stringContaining('"code":-32602') })

  const session = await openSession(client)
  const broken = {
    idFromString: (id: string) => env.MCP_SESSION.idFromString(id),
    get: () => ({ fetch: () => Promise.reject(new Error('secret reset')) }),
  }
  const failing = from('192.0.2.23', appWith({}, { MCP_SESSION: broken as unknown as Env['MCP_SESSION'] }))
  const log = vi.spyOn(console, 'error').mockImplementation(() => {})
  const reply = await replyOf(await post({ jsonrpc: '2.0', id: 2, method: 'ping' }, failing, session))
  const logged = JSON.stringify(log.mock.calls)
  log.mockRestore()
  expect(reply).toMatchObject({ status: 500, text: expect.stringContaining('"code":-32603') })
  expect(logged).toContain('/mcp')
  expect(reply.text + logged).not.toContain('secret')
})
