import { abortAllDurableObjects, evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { authorizationTypes } from '@x402/evm'
import { type Address, encodeFunctionData, type Hex, multicall3Abi } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterEach, beforeEach, describe, expect, inject, test, vi } from 'vitest'
import { payerOf } from '../../client/payer.ts'
import { feeManagerAbi } from '../../contracts-abi/fee-manager.ts'
import { usdcTokenAbi } from '../../contracts-abi/usdc-token.ts'
import { chain as devnet, FRONTIER, registrationOf } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import type { Behaviour } from '../support/facilitator.ts'
import { type Books, balanceOf, openBooks, purse } from '../support/fee-ledger.ts'
import { appWith, callOverHttp as call, deployment, type Fetch, type Input, request } from '../support/surfaces.ts'

// HTTP only: payments are sent in HTTP headers; mcp-clients.node.test.ts pays over MCP.

const { contracts, chainId, accounts } = deployment
const FEE = { network: `eip155:${chainId}`, asset: contracts.USDC } as const
const facilitatorUrl = inject('facilitatorUrl')

/** The Worker is its own facilitator here; in `hosted` the facilitator is another server, which a test can lead astray. */
const app = appWith({ X402_ENABLED: 'true' })
const hosted = appWith({
  X402_ENABLED: 'true',
  X402_FACILITATOR_URL: facilitatorUrl,
  X402_FACILITATOR_TIMEOUT_MS: '1500',
})

const newAccount = () => privateKeyToAccount(generatePrivateKey())
const encode = (value: unknown) => btoa(JSON.stringify(value))
const decode = (header: string | null) => JSON.parse(atob(header ?? ''))

/** Posts like an agent whose wallet pays what a 402 asks. */
const payingAs = (payer: PrivateKeyAccount, fetch: Fetch = app): Fetch => payerOf(payer, FEE, fetch).fetch
/** Posts with a payment in a header. */
const carrying =
  (payment: unknown, fetch: Fetch = app, header = 'PAYMENT-SIGNATURE'): Fetch =>
  request => {
    const headers = new Headers(request.headers)
    headers.set(header, typeof payment === 'string' ? payment : encode(payment))
    return fetch(new Request(request, { headers }))
  }

/** A payment that the protocol's client signs for the quote's requirements; `changes` are made before signing. */
async function paymentOf(payer: PrivateKeyAccount, changes: Input = {}): Promise<Body> {
  const { body } = await call('getRegistrationQuote', {}, app)
  const accepts = [{ ...body.x402.requirements, ...changes }]
  const headers = await payerOf(payer, FEE).sign({ x402Version: 2, resource: { url: '' }, accepts })
  return decode(headers['PAYMENT-SIGNATURE'] ?? null)
}

const register = (body: Body, fetch: Fetch) => call('registerAgent', body, fetch)
const facilitator = (behaviour: Partial<Record<'verify' | 'settle', Behaviour>> = {}) =>
  fetch(`${facilitatorUrl}/control`, { method: 'POST', body: JSON.stringify(behaviour) }).then(
    response => response.json() as Promise<{ verify: number; settle: number }>,
  )
/** How many settlements the hosted facilitator has been asked for since it was told how to behave. */
const settlements = async () => {
  const response = await fetch(`${facilitatorUrl}/calls`)
  return (await response.json<{ settle: number }>()).settle
}
const evictLedger = () => evictDurableObject(env.PAYMENT_LEDGER.get(env.PAYMENT_LEDGER.idFromName('registrations')))

let books: Books
beforeEach(async () => {
  await facilitator()
  books = await openBooks()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await books.balance()
})

describe('what is asked', () => {
  test('a registration without a payment is answered 402 with the requirements, in the header and in the body', async () => {
    const body = await registrationOf(newAccount())
    const { status, headers, body: answer } = await register(body, app)
    expect(status).toBe(402)
    expect(answer).toMatchObject({
      code: 'PAYMENT_REQUIRED',
      x402Version: 2,
      resource: { url: `${deployment.baseUrl}/agents/register` },
      accepts: [
        {
          scheme: 'exact',
          network: FEE.network,
          asset: contracts.USDC,
          amount: `${books.fee}`,
          payTo: accounts.treasury.address,
          extra: { name: 'USD Coin', version: '2' },
        },
      ],
    })
    expect(answer).toMatchObject(decode(headers.get('PAYMENT-REQUIRED')))
    expect(headers.get('cache-control')).toBe('no-store')
    await books.expect({ payments: 0, registrations: 0 })
  })

  test('pages of other origins may send a payment and read what is asked', async () => {
    const origin = 'https://agents.example'
    const preflight = await request(
      '/agents/register',
      {
        method: 'OPTIONS',
        headers: {
          origin,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'content-type,payment-signature',
        },
      },
      app,
    )
    expect(preflight.headers.get('access-control-allow-headers')).toMatch(/payment-signature/i)
    const answer = await request('/health', { headers: { origin } }, app)
    const exposed = answer.headers.get('access-control-expose-headers')?.split(',')
    expect(exposed).toEqual(expect.arrayContaining(['PAYMENT-REQUIRED', 'PAYMENT-RESPONSE', 'X-PAYMENT-RESPONSE']))
  })

  test('the quote names network, payee and requirements where the fee is paid, and nothing where it is not', async () => {
    const { body } = await call('getRegistrationQuote', {}, app)
    expect(body.x402).toMatchObject({
      enabled: true,
      network: FEE.network,
      payTo: accounts.treasury.address,
      facilitatorUrl: `${deployment.baseUrl}/facilitator`,
      requirements: { amount: body.registrationFee.amount },
    })
    const elsewhere = await call('getRegistrationQuote', {}, hosted)
    expect(elsewhere.body.x402.facilitatorUrl).toBe(facilitatorUrl)
    const { body: free } = await call('getRegistrationQuote')
    expect(free.x402).toEqual({
      ...{ enabled: false, network: null, payTo: null, facilitatorUrl: null, httpRoute: 'POST /agents/register' },
    })
  })

  test('nobody is asked to pay for a registration that would be refused', async () => {
    const body = await registrationOf(newAccount())
    expect(await register({ ...body, name: '' }, app)).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } })
    expect(await register({ ...body, name: 'another' }, app)).toMatchObject({
      status: 400,
      body: { code: 'INVALID_SIGNATURE' },
    })
    const nowhere = await registrationOf(newAccount(), { vault: contracts.USDC })
    expect((await register(nowhere, app)).status).toBe(400)
  })

  test('a fee of zero asks for nothing', async () => {
    const setFee = (fee: bigint) =>
      devnet.send(accounts.admin, {
        ...{ address: contracts.FeeManager, abi: feeManagerAbi, functionName: 'setRegistrationFee', args: [fee] },
      } as never)
    await setFee(0n)
    try {
      const { body } = await call('getRegistrationQuote', {}, app)
      expect(body.x402.enabled).toBe(false)
      expect((await register(await registrationOf(newAccount()), app)).status).toBe(201)
    } finally {
      await setFee(books.fee)
    }
  })

  test.each([
    { X402_ENABLED: 'yes' },
    { X402_ENABLED: 'true', X402_NETWORK: 'base' },
    { X402_ENABLED: 'true', X402_NETWORK: 'eip155:8453' },
    { X402_ENABLED: 'true', X402_PAY_TO: '0x1' },
  ])('a deployment that is to be paid and cannot be registers nobody: %o', async variables => {
    const body = await registrationOf(newAccount())
    expect(await register(body, appWith(variables))).toMatchObject({
      status: 503,
      body: { code: 'PAYMENT_NOT_CONFIGURED' },
    })
    await books.expect({ payments: 0, registrations: 0 })
  })
})

describe('a payment', () => {
  test('is taken once and registers once', async () => {
    const payer = await purse()
    const before = await balanceOf(payer.address)
    const body = await registrationOf(newAccount())
    const paid = await register(body, payingAs(payer))
    expect(paid).toMatchObject({ status: 201, body: { agentId: expect.stringMatching(/^\d+$/) } })
    expect(await balanceOf(payer.address)).toBe(before - books.fee)
    const receipt = decode(paid.headers.get('PAYMENT-RESPONSE'))
    expect(receipt).toEqual({
      success: true,
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      network: FEE.network,
      payer: payer.address,
    })
    expect(decode(paid.headers.get('X-PAYMENT-RESPONSE'))).toEqual(receipt)
    const { body: settled } = await call('getTransaction', { txHash: receipt.transaction })
    expect(settled).toMatchObject({ status: 'success', from: accounts.relayer.address, to: contracts.USDC })
    await books.expect({ payments: 1, registrations: 1 })
  })

  test('may come with the first post, made from the quote', async () => {
    const body = await registrationOf(newAccount())
    expect(await register(body, carrying(await paymentOf(await purse())))).toMatchObject({ status: 201 })
    await books.expect({ payments: 1, registrations: 1 })
  })

  test('may come under the older header, in the older version', async () => {
    const { payload } = await paymentOf(await purse())
    const older = { x402Version: 1, scheme: 'exact', network: FEE.network, payload }
    const { status, headers } = await register(await registrationOf(newAccount()), carrying(older, app, 'X-PAYMENT'))
    expect(status).toBe(201)
    expect(decode(headers.get('X-PAYMENT-RESPONSE'))).toMatchObject({ success: true })

    const newer = await paymentOf(await purse())
    const answer = await register(await registrationOf(newAccount()), carrying(newer, app, 'X-PAYMENT'))
    expect(answer.status).toBe(201)
    await books.expect({ payments: 2, registrations: 2 })
  })

  test('can be verified by the facilitator of the quote, where nothing moves, and then pays for a registration', async () => {
    const payer = await purse()
    const paymentPayload = await paymentOf(payer)
    const { body: quote } = await call('getRegistrationQuote', {}, app)
    const asked = { x402Version: 2, paymentPayload, paymentRequirements: quote.x402.requirements }
    expect((await call('getFacilitatorSupport', {}, app)).body).toMatchObject({
      kinds: [{ x402Version: 2, scheme: 'exact', network: FEE.network }],
    })
    expect((await call('verifyPayment', asked, app)).body).toEqual({ isValid: true, payer: payer.address })
    const other = { ...asked, paymentRequirements: { ...quote.x402.requirements, payTo: payer.address } }
    expect((await call('verifyPayment', other, app)).body.isValid).toBe(false)
    await books.expect({ payments: 0, registrations: 0 })

    expect(await register(await registrationOf(newAccount()), carrying(paymentPayload))).toMatchObject({ status: 201 })
    await books.expect({ payments: 1, registrations: 1 })
  })

  test('is settled by the facilitator that is configured', async () => {
    const body = await registrationOf(newAccount())
    expect(await register(body, payingAs(await purse(), hosted))).toMatchObject({ status: 201 })
    expect(await facilitator()).toEqual({ verify: 1, settle: 1 })
    await books.expect({ payments: 1, registrations: 1 })
  })

  test('of many payers at once are each taken once', async () => {
    const bodies = await Promise.all(Array.from({ length: 6 }, () => registrationOf(newAccount())))
    const payers = await Promise.all(bodies.map(() => purse()))
    const answers = await Promise.all(bodies.map((body, index) => register(body, payingAs(payers[index] as never))))
    expect(answers.map(({ status }) => status)).toEqual(bodies.map(() => 201))
    expect(new Set(answers.map(({ body }) => body.agentId)).size).toBe(bodies.length)
    await books.expect({ payments: 6, registrations: 6 })
  })
})

describe('a payment is refused, and nothing is charged', () => {
  const STRANGER = newAccount().address
  const now = () => Math.floor(Date.now() / 1000)
  const accepted = (changes: Input) => (payment: Body) => ({
    ...payment,
    accepted: { ...payment.accepted, ...changes },
  })
  const authorized = (changes: Input) => (payment: Body) => ({
    ...payment,
    payload: { ...payment.payload, authorization: { ...payment.payload.authorization, ...changes } },
  })
  const same = (payment: Body) => payment

  const refusals: [what: string, code: string, change: (payment: Body) => unknown, before?: Input][] = [
    ['a smaller amount', 'PAYMENT_REFUSED', same, { amount: '999999' }],
    ['a larger amount', 'PAYMENT_REFUSED', same, { amount: '1000001' }],
    ['an amount that was not signed', 'PAYMENT_REFUSED', authorized({ value: '1' })],
    ['another asset', 'PAYMENT_REFUSED', accepted({ asset: contracts.AgentRegistry })],
    ['another network', 'PAYMENT_REFUSED', accepted({ network: 'eip155:8453' })],
    ['another recipient', 'PAYMENT_REFUSED', same, { payTo: STRANGER }],
    ['a recipient that was not signed', 'PAYMENT_REFUSED', authorized({ to: STRANGER })],
    ['another scheme', 'PAYMENT_REFUSED', accepted({ scheme: 'upto' })],
    ['an authorization that has expired', 'PAYMENT_REFUSED', same, { maxTimeoutSeconds: -1000 }],
    ['an authorization that expires at once', 'PAYMENT_REFUSED', same, { maxTimeoutSeconds: 3 }],
    ['an authorization that lives too long', 'PAYMENT_REFUSED', same, { maxTimeoutSeconds: 100_000_000 }],
    [
      'an authorization that is not valid yet',
      'PAYMENT_REFUSED',
      payment => authorized({ validAfter: `${now() + 100_000_000}` })(payment),
    ],
    ['a signature over something else', 'PAYMENT_REFUSED', authorized({ nonce: `0x${'12'.repeat(32)}` })],
    [
      'a signing domain that is not the asset’s',
      'PAYMENT_REFUSED',
      same,
      { extra: { name: 'USD Coin', version: '1' } },
    ],
    ['no JSON', 'INVALID_PAYMENT', () => 'not base64'],
    ['no payload', 'INVALID_PAYMENT', ({ payload: _, ...rest }) => rest],
    ['an unknown version', 'INVALID_PAYMENT', payment => ({ ...payment, x402Version: 3 })],
    ['a number too large', 'INVALID_PAYMENT', authorized({ value: `1${'0'.repeat(80)}` })],
    ['a short nonce', 'INVALID_PAYMENT', authorized({ nonce: '0x12' })],
    [
      'the older version on another network',
      'PAYMENT_REFUSED',
      ({ payload }) => ({
        ...{ x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload },
      }),
    ],
  ]
  test.each(refusals)('%s', async (_, code, change, before) => {
    const payment = await paymentOf(await purse(), before)
    const answer = await register(await registrationOf(newAccount()), carrying(change(payment)))
    expect(answer).toMatchObject({ status: code === 'INVALID_PAYMENT' ? 400 : 402, body: { code } })
    expect(answer.headers.has('PAYMENT-REQUIRED')).toBe(code === 'PAYMENT_REFUSED')
    expect(answer.headers.has('PAYMENT-RESPONSE')).toBe(false)
    await books.expect({ payments: 0, registrations: 0 })
  })

  test('an empty purse', async () => {
    const answer = await register(await registrationOf(newAccount()), carrying(await paymentOf(newAccount())))
    expect(answer).toMatchObject({
      status: 402,
      body: { code: 'PAYMENT_REFUSED', details: { problem: expect.stringMatching(/^invalid_exact_evm_/) } },
    })
    await books.expect({ payments: 0, registrations: 0 })
  })

  test('a payment that was refused can be made good', async () => {
    const payer = newAccount()
    const body = await registrationOf(newAccount())
    const payment = await paymentOf(payer)
    expect((await register(body, carrying(payment))).status).toBe(402)
    const mint = { address: contracts.USDC, abi: usdcTokenAbi, functionName: 'mint' } as const
    await devnet.send(accounts.admin, { ...mint, args: [payer.address, books.fee] })
    expect((await register(body, carrying(payment))).status).toBe(201)
    await books.expect({ payments: 1, registrations: 1 })
  })

  test('a registration that the contracts refuse leaves its payment unused', async () => {
    const payment = await paymentOf(await purse())
    const nowhere = await registrationOf(newAccount(), { vault: contracts.USDC })
    expect((await register(nowhere, carrying(payment))).status).toBe(400)
    await books.expect({ payments: 0, registrations: 0 })
    expect((await register(await registrationOf(newAccount()), carrying(payment))).status).toBe(201)
    await books.expect({ payments: 1, registrations: 1 })
  })
})

describe('nobody pays twice, and nobody registers free', () => {
  test('an answer that was lost is had again by the same body: with its payment, without, with a new one', async () => {
    const payer = await purse()
    const body = await registrationOf(newAccount())
    const payment = await paymentOf(payer)
    const { body: first, headers } = await register(body, carrying(payment))
    for (const fetch of [carrying(payment), app, payingAs(payer), carrying(await paymentOf(payer))]) {
      const again = await register(body, fetch)
      expect(again).toMatchObject({ status: 200, body: first })
      expect(again.headers.get('PAYMENT-RESPONSE')).toBe(headers.get('PAYMENT-RESPONSE'))
    }
    await books.expect({ payments: 1, registrations: 1 })
  })

  test('a payment that is posted several times at once is taken once', async () => {
    const body = await registrationOf(newAccount())
    const payment = await paymentOf(await purse())
    const answers = await Promise.all([1, 2, 3, 4].map(() => register(body, carrying(payment))))
    expect(new Set(answers.map(({ body }) => body.agentId)).size).toBe(1)
    for (const { status } of answers) expect([200, 201]).toContain(status)
    await books.expect({ payments: 1, registrations: 1 })
  })

  test('several payments for one body at once: one is taken', async () => {
    const payer = await purse()
    const body = await registrationOf(newAccount())
    const payments = await Promise.all([1, 2, 3].map(() => paymentOf(payer)))
    const answers = await Promise.all(payments.map(payment => register(body, carrying(payment, hosted))))
    expect(new Set(answers.map(({ body }) => body.agentId)).size).toBe(1)
    expect(await facilitator()).toEqual({ verify: 1, settle: 1 })
    await books.expect({ payments: 1, registrations: 1 })
  })

  test.each([
    ['the Worker', app],
    ['a hosted facilitator', hosted],
  ])('one payment for two agents at once registers one, settled by %s', async (_, fetch) => {
    const payment = await paymentOf(await purse())
    const bodies = [await registrationOf(newAccount()), await registrationOf(newAccount())]
    const answers = await Promise.all(bodies.map(body => register(body, carrying(payment, fetch))))
    const codes = answers.map(({ status, body }) => (status === 201 ? 'registered' : body.code))
    expect(codes.sort()).toEqual(['PAYMENT_ALREADY_USED', 'registered'])
    await books.expect({ payments: 1, registrations: 1 })
  })

  test('a payment that registered one agent registers no other', async () => {
    const agent = newAccount()
    const payment = await paymentOf(await purse())
    expect((await register(await registrationOf(agent), carrying(payment))).status).toBe(201)
    for (const other of [newAccount(), agent]) {
      const body = await registrationOf(other, { name: 'another' })
      expect(await register(body, carrying(payment))).toMatchObject({
        status: 402,
        body: { code: 'PAYMENT_ALREADY_USED', accepts: [{ amount: `${books.fee}` }] },
      })
    }
    await books.expect({ payments: 1, registrations: 1 })
  })

  test('one agent may register again, and pays again', async () => {
    const agent = newAccount()
    const payer = await purse()
    expect((await register(await registrationOf(agent), payingAs(payer))).status).toBe(201)
    expect((await register(await registrationOf(agent), payingAs(payer))).status).toBe(201)
    await books.expect({ payments: 2, registrations: 2 })
  })

  test('a fee is spent by its registration even when nobody remembers the relay', async () => {
    const agent = newAccount()
    expect((await register(await registrationOf(agent), payingAs(await purse()))).status).toBe(201)
    const ledger = env.PAYMENT_LEDGER.get(env.PAYMENT_LEDGER.idFromName('registrations'))
    await runInDurableObject(ledger, (_, { storage }) => {
      storage.sql.exec(`UPDATE payment SET state = 'settled', held_since = 0 WHERE signer = ?`, agent.address)
    })
    const lane = env.EXECUTOR_LANE.get(env.EXECUTOR_LANE.idFromName(accounts.relayer.address))
    await runInDurableObject(lane, (_, { storage }) => {
      storage.sql.exec('DELETE FROM intent WHERE "group" = ?', `signer:${agent.address}`)
    })
    const another = await registrationOf(agent, { name: 'another' })
    expect(await register(another, app)).toMatchObject({ status: 402, body: { code: 'PAYMENT_REQUIRED' } })
    await books.expect({ payments: 1, registrations: 1 })
  })

  describe('a registration that fails after its fee was settled', () => {
    /** Pauses the registry between the settlement and the relay. */
    const pauseOnceSettled = () => {
      const { fetch } = globalThis
      vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
        const response = await fetch(input, init)
        if (`${input instanceof Request ? input.url : input}`.endsWith('/settle')) await devnet.pauseRegistry(true)
        return response
      })
    }
    const failed = async (agent: PrivateKeyAccount) => {
      const body = await registrationOf(agent)
      pauseOnceSettled()
      try {
        const answer = await register(body, payingAs(await purse(), hosted))
        expect(answer).toMatchObject({ status: 503 })
        expect(decode(answer.headers.get('PAYMENT-RESPONSE'))).toMatchObject({ success: true })
      } finally {
        vi.restoreAllMocks()
        await devnet.pauseRegistry(false)
      }
      await books.expect({ payments: 1, registrations: 0 })
      return body
    }

    test('is had by the same body without a payment', async () => {
      const body = await failed(newAccount())
      const answer = await register(body, hosted)
      expect(answer.status).toBe(201)
      expect(decode(answer.headers.get('PAYMENT-RESPONSE'))).toMatchObject({ success: true })
      await books.expect({ payments: 1, registrations: 1 })
    })

    test('is had by another body of the same signer, once', async () => {
      const agent = newAccount()
      const first = await failed(agent)
      await evictLedger()
      expect(await register(await registrationOf(newAccount()), app)).toMatchObject({ status: 402 })
      expect((await register(await registrationOf(agent, { vault: FRONTIER }), app)).status).toBe(201)
      expect((await register(first, app)).status).toBe(400)
      expect(await register(await registrationOf(agent), app)).toMatchObject({
        status: 402,
        body: { code: 'PAYMENT_REQUIRED' },
      })
      await books.expect({ payments: 1, registrations: 1 })
    })

    test('lets no two bodies use its fee at once', async () => {
      const agent = newAccount()
      await failed(agent)
      const bodies = [await registrationOf(agent, { name: 'one' }), await registrationOf(agent, { name: 'two' })]
      const answers = await Promise.all(bodies.map(body => register(body, app)))
      const codes = answers.map(({ status, body }) => (status === 201 ? 'registered' : body.code))
      expect(codes.sort()).toEqual(['REGISTRATION_IN_FLIGHT', 'registered'])
      await books.expect({ payments: 1, registrations: 1 })
    })
  })
})

describe('a facilitator that is', () => {
  test('down: nothing is charged', async () => {
    const away = appWith({ X402_ENABLED: 'true', X402_FACILITATOR_URL: 'http://127.0.0.1:1' })
    const body = await registrationOf(newAccount())
    const payment = await paymentOf(await purse())
    expect(await register(body, carrying(payment, away))).toMatchObject({
      status: 502,
      body: { code: 'FACILITATOR_UNAVAILABLE', retryable: true },
    })
    await books.expect({ payments: 0, registrations: 0 })
    expect((await register(body, carrying(payment, hosted))).status).toBe(201)
    await books.expect({ payments: 1, registrations: 1 })
  })

  test('the Worker, without a node: nothing is charged', async () => {
    const cutOff = appWith({ X402_ENABLED: 'true', X402_RPC_URL: 'http://127.0.0.1:1' })
    const body = await registrationOf(newAccount())
    expect(await register(body, carrying(await paymentOf(await purse()), cutOff))).toMatchObject({
      status: 502,
      body: { code: 'FACILITATOR_UNAVAILABLE' },
    })
    await books.expect({ payments: 0, registrations: 0 })
  })

  test.each(['fail', 'hang'] as const)('out of order when it is to verify (%s): nothing is charged', async how => {
    await facilitator({ verify: how })
    const body = await registrationOf(newAccount())
    const payment = await paymentOf(await purse())
    expect(await register(body, carrying(payment, hosted))).toMatchObject({
      status: 502,
      body: { code: 'FACILITATOR_UNAVAILABLE' },
    })
    await facilitator()
    expect((await register(body, carrying(payment, hosted))).status).toBe(201)
    await books.expect({ payments: 1, registrations: 1 })
  })

  test('against the payment: it says why, and another payment is taken', async () => {
    const body = await registrationOf(newAccount())
    for (const behaviour of [{ verify: 'refuse' }, { settle: 'refuse' }] as const) {
      await facilitator(behaviour)
      const answer = await register(body, carrying(await paymentOf(await purse()), hosted))
      expect(answer).toMatchObject({
        status: 402,
        body: { code: 'PAYMENT_REFUSED', details: { problem: 'blocked_payer' } },
      })
      expect(answer.headers.has('PAYMENT-REQUIRED')).toBe(true)
    }
    await books.expect({ payments: 0, registrations: 0 })
    await facilitator()
    expect((await register(body, payingAs(await purse(), hosted))).status).toBe(201)
    await books.expect({ payments: 1, registrations: 1 })
  })

  test.each(['fail', 'hang', 'pend'] as const)(
    'silent about a settlement that it did not make (%s): the same body finds out, whatever payment it brings',
    async how => {
      const payer = await purse()
      const body = await registrationOf(newAccount())
      const payment = await paymentOf(payer)
      await facilitator({ settle: how })
      for (const fetch of [carrying(payment, hosted), hosted, carrying(await paymentOf(payer), hosted)])
        expect(await register(body, fetch)).toMatchObject({
          status: 502,
          body: { code: 'PAYMENT_PENDING', retryable: true },
        })
      await books.expect({ payments: 0, registrations: 0 })
      await facilitator()
      expect((await register(body, carrying(await paymentOf(payer), hosted))).status).toBe(201)
      await books.expect({ payments: 1, registrations: 1 })
    },
  )

  test.each(['lose', 'pend-settled', 'refuse-settled'] as const)(
    'silent or wrong about a settlement that it made (%s): the chain tells',
    async how => {
      await facilitator({ settle: how })
      const body = await registrationOf(newAccount())
      const payment = await paymentOf(await purse())
      const answer = await register(body, carrying(payment, hosted))
      expect(answer.status).toBe(201)
      expect(decode(answer.headers.get('PAYMENT-RESPONSE'))).toMatchObject({ success: true })
      expect((await register(body, carrying(payment, hosted))).status).toBe(200)
      await books.expect({ payments: 1, registrations: 1 })
    },
  )

  test('wrong about a settlement that it makes later: no second payment is taken', async () => {
    await facilitator({ settle: 'refuse-late' })
    const payer = await purse()
    const body = await registrationOf(newAccount())
    expect((await register(body, carrying(await paymentOf(payer), hosted))).status).toBe(402)
    await vi.waitFor(() => books.expect({ payments: 1, registrations: 0 }), 10_000)
    await facilitator()
    expect((await register(body, payingAs(payer, hosted))).status).toBe(201)
    await books.expect({ payments: 1, registrations: 1 })
  })

  test('silent until the payment has expired: it is given up, and a new one is taken', async () => {
    await facilitator({ settle: 'pend' })
    const payer = await purse()
    const body = await registrationOf(newAccount(), { deadline: '9000000000' })
    expect((await register(body, carrying(await paymentOf(payer), hosted))).status).toBe(502)
    await devnet.increaseTime(1_000)
    expect(await register(body, hosted)).toMatchObject({ status: 402, body: { code: 'PAYMENT_REQUIRED' } })
    await facilitator()
    expect((await register(body, payingAs(payer, hosted))).status).toBe(201)
    await books.expect({ payments: 1, registrations: 1 })
  })

  describe('passed by: an authorization pays for nothing when its payer', () => {
    const domain = { name: 'USD Coin', version: '2', chainId, verifyingContract: contracts.USDC }
    const usdc = { address: contracts.USDC, abi: usdcTokenAbi } as const

    /** A registration whose payment is not settled yet, and that payment's nonce. */
    async function pending(payer: PrivateKeyAccount) {
      await facilitator({ settle: 'pend' })
      const body = await registrationOf(newAccount())
      const payment = await paymentOf(payer)
      expect((await register(body, carrying(payment, hosted))).status).toBe(502)
      await facilitator()
      return { body, payment, nonce: payment.payload.authorization.nonce as Hex }
    }

    test('has cancelled it', async () => {
      const payer = await purse()
      const { body, payment, nonce } = await pending(payer)
      const signature = await payer.signTypedData({
        domain,
        types: {
          CancelAuthorization: [
            { name: 'authorizer', type: 'address' },
            { name: 'nonce', type: 'bytes32' },
          ],
        },
        primaryType: 'CancelAuthorization',
        message: { authorizer: payer.address, nonce },
      })
      const cancel = { ...usdc, functionName: 'cancelAuthorization', args: [payer.address, nonce, signature] } as const
      await devnet.send(accounts.payer, cancel)
      expect((await register(body, carrying(payment, hosted))).status).toBe(502)
      await books.expect({ payments: 0, registrations: 0 })
    })

    test('has used its nonce for a transfer to itself, beside a payment in the same transaction', async () => {
      const payer = await purse()
      const { body, payment, nonce } = await pending(payer)
      const transferOf = async (to: Address, nonce: Hex) => {
        const message = {
          from: payer.address,
          to,
          value: books.fee,
          validAfter: 0n,
          validBefore: 9_000_000_000n,
          nonce,
        }
        const signature = await payer.signTypedData({
          domain,
          types: authorizationTypes,
          primaryType: 'TransferWithAuthorization',
          message,
        })
        const args = [...Object.values(message), signature] as never
        const callData = encodeFunctionData({ abi: usdcTokenAbi, functionName: 'transferWithAuthorization', args })
        return { target: contracts.USDC, allowFailure: false, callData }
      }
      const calls = [
        await transferOf(payer.address, nonce),
        await transferOf(accounts.treasury.address, `0x${'34'.repeat(32)}`),
      ]
      await devnet.send(accounts.payer, {
        ...{ address: contracts.Multicall3, abi: multicall3Abi, functionName: 'aggregate3', args: [calls] },
      } as const)
      expect((await register(body, carrying(payment, hosted))).status).toBe(502)
      await books.expect({ payments: 1, registrations: 0 })
    })
  })

  test.each([
    ['before it settled', 'hang'],
    ['after it settled', 'hang-settled'],
  ] as const)('at work when everything restarts %s: the settlement is taken up again', async (_, how) => {
    await facilitator({ settle: how })
    const body = await registrationOf(newAccount())
    const lost = register(body, carrying(await paymentOf(await purse()), hosted))
    await vi.waitFor(async () => expect(await settlements()).toBe(1), { timeout: 10_000, interval: 20 })
    if (how === 'hang-settled') await vi.waitFor(() => books.expect({ payments: 1, registrations: 0 }), 10_000)
    await abortAllDurableObjects()
    expect([201, 502]).toContain((await lost).status)
    await facilitator()
    expect([200, 201]).toContain((await register(body, hosted)).status)
    await books.expect({ payments: 1, registrations: 1 })
  })

  test('the Worker, which restarts when its settlement has been sent: it is taken up again', async () => {
    const body = await registrationOf(newAccount())
    const payment = await paymentOf(await purse())
    const { fetch } = globalThis
    let sent = 0
    vi.spyOn(globalThis, 'fetch').mockImplementation((input, init) => {
      if (`${init?.body}`.includes('eth_sendRawTransaction')) sent++
      return fetch(input, init)
    })
    const lost = register(body, carrying(payment))
    await vi.waitFor(() => expect(sent).toBe(1), { timeout: 10_000, interval: 5 })
    await abortAllDurableObjects()
    expect([201, 502]).toContain((await lost).status)
    vi.restoreAllMocks()
    expect([200, 201]).toContain((await register(body, carrying(payment))).status)
    await books.expect({ payments: 1, registrations: 1 })
  })
})
