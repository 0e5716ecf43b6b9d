import { abortAllDurableObjects } from 'cloudflare:test'
import { authorizationTypes } from '@x402/evm'
import { type Address, encodeFunctionData, type Hex, multicall3Abi } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { describe, expect, test, vi } from 'vitest'
import { usdcTokenAbi } from '../../contracts-abi/usdc-token.ts'
import { chain as devnet, registrationOf } from '../support/actors.ts'
import { fundedPayer } from '../support/fee-ledger.ts'
import {
  carrying,
  decode,
  facilitatorUrl,
  hosted,
  hostedInHaste,
  newAccount,
  payingAs,
  paymentOf,
  register,
  setFacilitator,
  settlementRequests,
  useFeeLedger,
} from '../support/paid-registration.ts'
import { appWith, callOverHttp, deployment, type Fetch } from '../support/surfaces.ts'

// HTTP only: payments are sent in HTTP headers; mcp-clients.node.test.ts pays over MCP.

const { contracts, chainId, accounts } = deployment
const ledger = useFeeLedger()

describe('a facilitator that', () => {
  test('a facilitator that is unreachable charges nothing', async () => {
    const away = appWith({ X402_ENABLED: 'true', X402_FACILITATOR_URL: 'http://127.0.0.1:1' })
    const body = await registrationOf(newAccount())
    const payment = await paymentOf(await fundedPayer())
    expect(await register(body, carrying(payment, away))).toMatchObject({
      status: 502,
      body: { code: 'FACILITATOR_UNAVAILABLE', retryable: true },
    })
    await ledger.expect({ payments: 0, registrations: 0 })
    expect(await register(body, carrying(payment, hosted))).toMatchObject({ status: 201 })
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  test('a facilitator that is the Worker without a node charges nothing', async () => {
    const cutOff = appWith({ X402_ENABLED: 'true', X402_RPC_URL: 'http://127.0.0.1:1' })
    const body = await registrationOf(newAccount())
    expect(await register(body, carrying(await paymentOf(await fundedPayer()), cutOff))).toMatchObject({
      status: 502,
      body: { code: 'FACILITATOR_UNAVAILABLE' },
    })
    await ledger.expect({ payments: 0, registrations: 0 })
  })

  test.each(['fail', 'hang'] as const)('a facilitator that fails to verify (%s) charges nothing', async how => {
    await setFacilitator({ verify: how })
    const body = await registrationOf(newAccount())
    const payment = await paymentOf(await fundedPayer())
    expect(await register(body, carrying(payment, hostedInHaste))).toMatchObject({
      status: 502,
      body: { code: 'FACILITATOR_UNAVAILABLE' },
    })
    await setFacilitator()
    expect(await register(body, carrying(payment, hosted))).toMatchObject({ status: 201 })
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  test('a facilitator that takes its time keeps nobody from their turn', async () => {
    await setFacilitator({ verify: 'hang' })
    const service = appWith({
      X402_ENABLED: 'true',
      X402_FACILITATOR_URL: facilitatorUrl,
      X402_FACILITATOR_TIMEOUT_MS: '2500',
      MAX_PARALLEL_REQUESTS: '2',
    })
    const from =
      (address: string): Fetch =>
      request => {
        const headers = new Headers(request.headers)
        headers.set('cf-connecting-ip', address)
        return service(new Request(request, { headers }))
      }
    let isWaiting = true
    const paid = ['192.0.2.1', '192.0.2.2'].map(async address => {
      const carried = carrying(await paymentOf(await fundedPayer()), from(address))
      const { status } = await callOverHttp('registerAgent', await registrationOf(newAccount()), carried)
      isWaiting = false
      return status
    })
    const verifications = async () => (await (await fetch(`${facilitatorUrl}/calls`)).json<{ verify: number }>()).verify
    await vi.waitUntil(async () => (await verifications()) > 1, { timeout: 20_000, interval: 20 })
    const honest = await callOverHttp('listVaults', {}, from('192.0.2.3'))
    expect(isWaiting).toBe(true)
    expect(honest.status).toBe(200)
    expect(await Promise.all(paid)).toEqual([502, 502])
    await setFacilitator()
  })

  test('a facilitator that refuses a payment returns the reason; another payment is accepted', async () => {
    const body = await registrationOf(newAccount())
    for (const behaviour of [{ verify: 'refuse' }, { settle: 'refuse' }] as const) {
      await setFacilitator(behaviour)
      const answer = await register(body, carrying(await paymentOf(await fundedPayer()), hosted))
      expect(answer).toMatchObject({
        status: 402,
        body: { code: 'PAYMENT_REFUSED', details: { problem: 'blocked_payer' } },
      })
      expect(answer.headers.has('PAYMENT-REQUIRED')).toBe(true)
    }
    await ledger.expect({ payments: 0, registrations: 0 })
    await setFacilitator()
    expect(await register(body, payingAs(await fundedPayer(), hosted))).toMatchObject({ status: 201 })
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  test.each(['fail', 'hang', 'pend'] as const)(
    'a facilitator that does not report a settlement that it did not make (%s) charges once, when the same body is posted again',
    async how => {
      const payer = await fundedPayer()
      const body = await registrationOf(newAccount())
      const payment = await paymentOf(payer)
      await setFacilitator({ settle: how })
      const another = await paymentOf(payer)
      for (const fetch of [carrying(payment, hostedInHaste), hostedInHaste, carrying(another, hostedInHaste)])
        expect(await register(body, fetch)).toMatchObject({
          status: 502,
          body: { code: 'PAYMENT_PENDING', retryable: true },
        })
      await ledger.expect({ payments: 0, registrations: 0 })
      await setFacilitator()
      expect(await register(body, carrying(await paymentOf(payer), hosted))).toMatchObject({ status: 201 })
      await ledger.expect({ payments: 1, registrations: 1 })
    },
  )

  test.each(['lose', 'pend-settled', 'refuse-settled'] as const)(
    'a facilitator that loses or denies a settlement that it made (%s) is corrected by the chain',
    async how => {
      await setFacilitator({ settle: how })
      const body = await registrationOf(newAccount())
      const payment = await paymentOf(await fundedPayer())
      const answer = await register(body, carrying(payment, hosted))
      expect(answer).toMatchObject({ status: 201 })
      expect(decode(answer.headers.get('PAYMENT-RESPONSE'))).toMatchObject({ success: true })
      expect((await register(body, carrying(payment, hosted))).status).toBe(200)
      await ledger.expect({ payments: 1, registrations: 1 })
    },
  )

  test('a facilitator that refuses many payments of a signer makes the next one no dearer', async () => {
    await setFacilitator({ settle: 'refuse' })
    const body = await registrationOf(newAccount())
    const payer = await fundedPayer()
    let requests = 0
    const { fetch } = globalThis
    vi.spyOn(globalThis, 'fetch').mockImplementation((input, init) => {
      requests++
      return fetch(input, init)
    })
    const costs: number[] = []
    for (let refusals = 0; refusals < 12; refusals++) {
      const payment = await paymentOf(payer)
      requests = 0
      expect((await register(body, carrying(payment, hosted))).status).toBe(402)
      costs.push(requests)
    }
    // The cheapest of some, because the objects make requests in the background.
    expect(Math.min(...costs.slice(8))).toBeLessThanOrEqual(Math.min(...costs.slice(1, 5)) + 2)
    await ledger.expect({ payments: 0, registrations: 0 })
  })

  test('a facilitator that denies a settlement that it makes later does not charge twice', async () => {
    await setFacilitator({ settle: 'refuse-late' })
    const payer = await fundedPayer()
    const body = await registrationOf(newAccount())
    expect((await register(body, carrying(await paymentOf(payer), hosted))).status).toBe(402)
    await vi.waitFor(() => ledger.expect({ payments: 1, registrations: 0 }), 120_000)
    await setFacilitator()
    expect(await register(body, payingAs(payer, hosted))).toMatchObject({ status: 201 })
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  test('a facilitator that reports an error and settles only after the next payment does not charge twice', async () => {
    await setFacilitator({ settle: 'err-late' })
    const payer = await fundedPayer()
    const body = await registrationOf(newAccount())
    const first = await register(body, carrying(await paymentOf(payer), hosted))
    await setFacilitator()
    expect(await register(body, carrying(await paymentOf(payer), hosted))).toMatchObject({ status: 201 })
    expect(first).toMatchObject({ status: 502, body: { code: 'PAYMENT_PENDING', retryable: true } })
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  test('a facilitator that does not settle a payment before it expires accepts a new one', async () => {
    await setFacilitator({ settle: 'pend' })
    const payer = await fundedPayer()
    const body = await registrationOf(newAccount(), { deadline: '9000000000' })
    expect((await register(body, carrying(await paymentOf(payer), hosted))).status).toBe(502)
    await devnet.increaseTime(1_000)
    expect(await register(body, hosted)).toMatchObject({ status: 402, body: { code: 'PAYMENT_REQUIRED' } })
    await setFacilitator()
    expect(await register(body, payingAs(payer, hosted))).toMatchObject({ status: 201 })
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  describe('does not settle an authorization gets nothing when the payer', () => {
    const domain = { name: 'USD Coin', version: '2', chainId, verifyingContract: contracts.USDC }
    const usdc = { address: contracts.USDC, abi: usdcTokenAbi } as const

    /** Posts a registration whose payment is not settled. Returns both, and the payment's nonce. */
    async function pending(payer: PrivateKeyAccount) {
      await setFacilitator({ settle: 'pend' })
      const body = await registrationOf(newAccount())
      const payment = await paymentOf(payer)
      expect((await register(body, carrying(payment, hosted))).status).toBe(502)
      await setFacilitator()
      return { body, payment, nonce: payment.payload.authorization.nonce as Hex }
    }

    test('a facilitator that does not settle an authorization gets nothing when the payer cancels it', async () => {
      const payer = await fundedPayer()
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
      await ledger.expect({ payments: 0, registrations: 0 })
    })

    test('a facilitator that does not settle an authorization gets nothing when the payer uses its nonce for a transfer to itself, next to a payment in the same transaction', async () => {
      const payer = await fundedPayer()
      const { body, payment, nonce } = await pending(payer)
      const transferOf = async (to: Address, nonce: Hex) => {
        const message = {
          from: payer.address,
          to,
          value: ledger.fee,
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
        address: contracts.Multicall3,
        abi: multicall3Abi,
        functionName: 'aggregate3',
        args: [calls],
      } as const)
      expect((await register(body, carrying(payment, hosted))).status).toBe(502)
      await ledger.expect({ payments: 1, registrations: 0 })
    })
  })

  test.each([
    ['before it settled', 'hang'],
    ['after it settled', 'hang-settled'],
  ] as const)('a facilitator that is settling during a restart %s completes the settlement', async (_, how) => {
    await setFacilitator({ settle: how })
    const body = await registrationOf(newAccount())
    const lost = register(body, carrying(await paymentOf(await fundedPayer()), hostedInHaste))
    await vi.waitFor(async () => expect(await settlementRequests()).toBe(1), { timeout: 120_000, interval: 20 })
    if (how === 'hang-settled') await vi.waitFor(() => ledger.expect({ payments: 1, registrations: 0 }), 120_000)
    await abortAllDurableObjects()
    expect([201, 502]).toContain((await lost).status)
    await setFacilitator()
    expect([200, 201]).toContain((await register(body, hosted)).status)
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  test('a facilitator that is the Worker and restarts after it sent the settlement completes it', async () => {
    const body = await registrationOf(newAccount())
    const payment = await paymentOf(await fundedPayer())
    const { fetch } = globalThis
    let sent = 0
    vi.spyOn(globalThis, 'fetch').mockImplementation((input, init) => {
      if (`${init?.body}`.includes('eth_sendRawTransaction')) sent++
      return fetch(input, init)
    })
    const lost = register(body, carrying(payment))
    await vi.waitFor(() => expect(sent).toBeGreaterThanOrEqual(1), { timeout: 120_000, interval: 5 })
    await abortAllDurableObjects()
    expect([201, 502]).toContain((await lost).status)
    vi.restoreAllMocks()
    expect([200, 201]).toContain((await register(body, carrying(payment))).status)
    await ledger.expect({ payments: 1, registrations: 1 })
  })
})
