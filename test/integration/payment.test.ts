import { hashTypedData } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { feeManagerAbi } from '../../contracts-abi/fee-manager.ts'
import { usdcTokenAbi } from '../../contracts-abi/usdc-token.ts'
import { chain as devnet, registrationOf, sign } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { balanceOf, fundedPayer } from '../support/fee-ledger.ts'
import {
  app,
  carrying,
  decode,
  facilitatorUrl,
  hosted,
  NETWORK,
  newAccount,
  payingAs,
  paymentOf,
  register,
  setFacilitator,
  useFeeLedger,
} from '../support/paid-registration.ts'
import { appWith, callOverHttp as call, deployment, type Input, request } from '../support/surfaces.ts'

// HTTP only: payments are sent in HTTP headers; mcp-clients.node.test.ts pays over MCP.

const { contracts, accounts } = deployment
const ledger = useFeeLedger()

test('a payer signs the typed data of the quote, and the payment that the quote has pays for the registration', async () => {
  const [signer, payer] = [newAccount(), await fundedPayer()]
  const given = { vault: 'genesis', name: 'paid', metadataURI: 'https://agents.example/paid.json' }
  const { body: quote } = await call(
    'getRegistrationQuote',
    { signer: signer.address, payer: payer.address, ...given },
    app,
  )
  const { typedData, digest, payment } = quote.x402.authorization
  expect(hashTypedData(typedData)).toBe(digest)
  payment.payload.signature = await sign(payer, typedData)
  const body = { ...quote.body, signature: await sign(signer, quote.typedData) }
  expect(await register(body, carrying(payment))).toMatchObject({ status: 201, body: { agentId: expect.any(String) } })
  await ledger.expect({ payments: 1, registrations: 1 })
})

test('the signing vectors have a payment on the domain of the asset', async () => {
  const { body } = await call('getSigningVectors', {}, app)
  const { typedData, digest, signature } = body.payment
  expect(typedData).toMatchObject({
    primaryType: 'TransferWithAuthorization',
    domain: { name: 'USD Coin', version: '2', verifyingContract: contracts.USDC },
    message: { from: body.signer, to: accounts.treasury.address },
  })
  expect(hashTypedData(typedData)).toBe(digest)
  expect(await sign(privateKeyToAccount(body.privateKey), typedData)).toBe(signature)
})

describe('payment requirements', () => {
  test('a registration without a payment is a 402 with the requirements in header and body', async () => {
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
          network: NETWORK,
          asset: contracts.USDC,
          amount: `${ledger.fee}`,
          payTo: accounts.treasury.address,
          extra: { name: 'USD Coin', version: '2' },
        },
      ],
    })
    expect(answer).toMatchObject(decode(headers.get('PAYMENT-REQUIRED')))
    expect(headers.get('cache-control')).toBe('no-store')
    await ledger.expect({ payments: 0, registrations: 0 })
  })

  test('pages of other origins may send a payment and read the requirements', async () => {
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

  test('the quote names network, payee and requirements, unless payment is disabled', async () => {
    const { body } = await call('getRegistrationQuote', {}, app)
    expect(body.x402).toMatchObject({
      enabled: true,
      network: NETWORK,
      payTo: accounts.treasury.address,
      facilitatorUrl: `${deployment.baseUrl}/facilitator`,
      requirements: { amount: body.registrationFee.amount },
    })
    const elsewhere = await call('getRegistrationQuote', {}, hosted)
    expect(elsewhere.body.x402.facilitatorUrl).toBe(facilitatorUrl)
    const { body: free } = await call('getRegistrationQuote')
    expect(free.x402).toEqual({
      enabled: false,
      network: null,
      payTo: null,
      facilitatorUrl: null,
      httpRoute: 'POST /agents/register',
    })
  })

  test('a registration that would fail is rejected before a payment is requested', async () => {
    const body = await registrationOf(newAccount())
    expect(await register({ ...body, name: '' }, app)).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } })
    expect(await register({ ...body, name: 'another' }, app)).toMatchObject({
      status: 400,
      body: { code: 'INVALID_SIGNATURE' },
    })
    const nowhere = await registrationOf(newAccount(), { vault: contracts.USDC })
    expect((await register(nowhere, app)).status).toBe(400)
  })

  test('a fee of zero requires no payment', async () => {
    const setFee = (fee: bigint) =>
      devnet.administer({
        address: contracts.FeeManager,
        abi: feeManagerAbi,
        functionName: 'setRegistrationFee',
        args: [fee],
      })
    await setFee(0n)
    try {
      const { body } = await call('getRegistrationQuote', {}, app)
      expect(body.x402.enabled).toBe(false)
      expect((await register(await registrationOf(newAccount()), app)).status).toBe(201)
    } finally {
      await setFee(ledger.fee)
    }
  })

  test.each([
    { X402_ENABLED: 'yes' },
    { X402_ENABLED: 'true', X402_NETWORK: 'base' },
    { X402_ENABLED: 'true', X402_NETWORK: 'eip155:8453' },
    { X402_ENABLED: 'true', X402_PAY_TO: '0x1' },
  ])('a deployment with an invalid payment configuration registers no agent: %o', async variables => {
    const body = await registrationOf(newAccount())
    expect(await register(body, appWith(variables))).toMatchObject({
      status: 503,
      body: { code: 'PAYMENT_NOT_CONFIGURED' },
    })
    await ledger.expect({ payments: 0, registrations: 0 })
  })
})

describe('a payment', () => {
  test('a payment is charged once and registers one agent', async () => {
    const payer = await fundedPayer()
    const before = await balanceOf(payer.address)
    const body = await registrationOf(newAccount())
    const paid = await register(body, payingAs(payer))
    expect(paid).toMatchObject({ status: 201, body: { agentId: expect.stringMatching(/^\d+$/) } })
    expect(await balanceOf(payer.address)).toBe(before - ledger.fee)
    const receipt = decode(paid.headers.get('PAYMENT-RESPONSE'))
    expect(receipt).toEqual({
      success: true,
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      network: NETWORK,
      payer: payer.address,
    })
    expect(decode(paid.headers.get('X-PAYMENT-RESPONSE'))).toEqual(receipt)
    const { body: settled } = await call('getTransaction', { txHash: receipt.transaction })
    expect(settled).toMatchObject({ status: 'success', from: accounts.relayer.address, to: contracts.USDC })
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  test('a payment made from the quote may come with the first request', async () => {
    const body = await registrationOf(newAccount())
    expect(await register(body, carrying(await paymentOf(await fundedPayer())))).toMatchObject({ status: 201 })
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  test('a payment may come in the older header and in the older version', async () => {
    const { payload } = await paymentOf(await fundedPayer())
    const older = { x402Version: 1, scheme: 'exact', network: NETWORK, payload }
    const { status, headers } = await register(await registrationOf(newAccount()), carrying(older, app, 'X-PAYMENT'))
    expect(status).toBe(201)
    expect(decode(headers.get('X-PAYMENT-RESPONSE'))).toMatchObject({ success: true })

    const newer = await paymentOf(await fundedPayer())
    const answer = await register(await registrationOf(newAccount()), carrying(newer, app, 'X-PAYMENT'))
    expect(answer.status).toBe(201)
    await ledger.expect({ payments: 2, registrations: 2 })
  })

  test('a payment can be verified by the facilitator in the quote, without being charged, and then pays for a registration', async () => {
    const payer = await fundedPayer()
    const paymentPayload = await paymentOf(payer)
    const { body: quote } = await call('getRegistrationQuote', {}, app)
    const asked = { x402Version: 2, paymentPayload, paymentRequirements: quote.x402.requirements }
    expect((await call('getFacilitatorSupport', {}, app)).body).toMatchObject({
      kinds: [{ x402Version: 2, scheme: 'exact', network: NETWORK }],
    })
    expect((await call('verifyPayment', asked, app)).body).toEqual({ isValid: true, payer: payer.address })
    const other = { ...asked, paymentRequirements: { ...quote.x402.requirements, payTo: payer.address } }
    expect((await call('verifyPayment', other, app)).body.isValid).toBe(false)
    const textless = { ...asked, paymentRequirements: { ...quote.x402.requirements, payTo: { toString: 1 } } }
    expect((await call('verifyPayment', textless, app)).body.isValid).toBe(false)
    await ledger.expect({ payments: 0, registrations: 0 })

    expect(await register(await registrationOf(newAccount()), carrying(paymentPayload))).toMatchObject({ status: 201 })
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  test('a payment is settled by the configured facilitator', async () => {
    const body = await registrationOf(newAccount())
    expect(await register(body, payingAs(await fundedPayer(), hosted))).toMatchObject({ status: 201 })
    expect(await setFacilitator()).toEqual({ verify: 1, settle: 1 })
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  test('a payment of each of many payers at once is charged once', async () => {
    const bodies = await Promise.all(Array.from({ length: 6 }, () => registrationOf(newAccount())))
    const payers = await Promise.all(bodies.map(() => fundedPayer()))
    const answers = await Promise.all(bodies.map((body, index) => register(body, payingAs(payers[index] as never))))
    expect(answers.map(({ status }) => status)).toEqual(bodies.map(() => 201))
    expect(new Set(answers.map(({ body }) => body.agentId)).size).toBe(bodies.length)
    await ledger.expect({ payments: 6, registrations: 6 })
  })
})

describe('a payment is refused without a charge for', () => {
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
    ['a signing domain other than the asset’s', 'PAYMENT_REFUSED', same, { extra: { name: 'USD Coin', version: '1' } }],
    ['a header without JSON', 'INVALID_PAYMENT', () => 'not base64'],
    ['a missing payload', 'INVALID_PAYMENT', ({ payload: _, ...rest }) => rest],
    ['an unknown version', 'INVALID_PAYMENT', payment => ({ ...payment, x402Version: 3 })],
    ['a number above 2^256', 'INVALID_PAYMENT', authorized({ value: `1${'0'.repeat(80)}` })],
    ['a short nonce', 'INVALID_PAYMENT', authorized({ nonce: '0x12' })],
    [
      'the older version on another network',
      'PAYMENT_REFUSED',
      ({ payload }) => ({
        x402Version: 1,
        scheme: 'exact',
        network: 'base-sepolia',
        payload,
      }),
    ],
  ]
  test.each(refusals)('%s', async (_, code, change, before) => {
    const payment = await paymentOf(await fundedPayer(), before)
    const answer = await register(await registrationOf(newAccount()), carrying(change(payment)))
    expect(answer).toMatchObject({ status: code === 'INVALID_PAYMENT' ? 400 : 402, body: { code } })
    expect(answer.headers.has('PAYMENT-REQUIRED')).toBe(code === 'PAYMENT_REFUSED')
    expect(answer.headers.has('PAYMENT-RESPONSE')).toBe(false)
    await ledger.expect({ payments: 0, registrations: 0 })
  })

  test('a payment is refused without a charge for a payer without funds', async () => {
    const answer = await register(await registrationOf(newAccount()), carrying(await paymentOf(newAccount())))
    expect(answer).toMatchObject({
      status: 402,
      body: { code: 'PAYMENT_REFUSED', details: { problem: expect.stringMatching(/^invalid_exact_evm_/) } },
    })
    await ledger.expect({ payments: 0, registrations: 0 })
  })

  test('a payment is refused without a charge for a payer without funds, who may post the payment again once funded', async () => {
    const payer = newAccount()
    const body = await registrationOf(newAccount())
    const payment = await paymentOf(payer)
    expect((await register(body, carrying(payment))).status).toBe(402)
    const mint = { address: contracts.USDC, abi: usdcTokenAbi, functionName: 'mint' } as const
    await devnet.send(accounts.admin, { ...mint, args: [payer.address, ledger.fee] })
    expect((await register(body, carrying(payment))).status).toBe(201)
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  test('a payment is refused without a charge for a registration that the contracts reject; the payment stays usable', async () => {
    const payment = await paymentOf(await fundedPayer())
    const nowhere = await registrationOf(newAccount(), { vault: contracts.USDC })
    expect((await register(nowhere, carrying(payment))).status).toBe(400)
    await ledger.expect({ payments: 0, registrations: 0 })
    expect((await register(await registrationOf(newAccount()), carrying(payment))).status).toBe(201)
    await ledger.expect({ payments: 1, registrations: 1 })
  })
})
