import { env } from 'cloudflare:workers'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterEach, beforeEach, inject, vi } from 'vitest'
import { createPayer } from '../../packages/client/src/pay.ts'
import type { Body } from './body.ts'
import type { FacilitatorBehaviour } from './facilitator.ts'
import { type FeeLedger, openFeeLedger } from './fee-ledger.ts'
import { appWith, callOverHttp as call, deployment, type Fetch, type Input } from './surfaces.ts'

/** The CAIP-2 network of the fee. */
export const NETWORK = `eip155:${deployment.chainId}`

/** The largest fee of any test. */
const MAX_FEE = 5_000_000n

/** Payers that sign any validity: what the service accepts is tested. */
const payerOf = (account: PrivateKeyAccount, fetch?: Fetch) =>
  createPayer(
    {
      account,
      chainId: deployment.chainId,
      asset: deployment.contracts.USDC,
      maxAmount: MAX_FEE,
      maxValiditySeconds: Number.POSITIVE_INFINITY,
    },
    fetch,
  )
export const facilitatorUrl = inject('facilitatorUrl')

/** The service as its own facilitator. */
export const app = appWith({ X402_ENABLED: 'true' })
const hostedWith = (changes: Record<string, string> = {}) =>
  appWith({ X402_ENABLED: 'true', X402_FACILITATOR_URL: facilitatorUrl, ...changes })
/** The service with a hosted facilitator, whose behaviour a test can change. */
export const hosted = hostedWith()
/** The same, for a facilitator that does not respond. One that works may need longer on a busy machine. */
export const hostedInHaste = hostedWith({ X402_FACILITATOR_TIMEOUT_MS: '1500' })

export const newAccount = () => privateKeyToAccount(generatePrivateKey())
export const decode = (header: string | null) => JSON.parse(atob(header ?? ''))
export const register = (body: Body, fetch: Fetch) => call('registerAgent', body, fetch)

/** Returns a fetch that pays what a 402 requires and posts again. */
export const payingAs = (payer: PrivateKeyAccount, fetch: Fetch = app): Fetch => payerOf(payer, fetch).fetch

/** Returns a fetch that adds a payment to the headers. */
export const carrying =
  (payment: unknown, fetch: Fetch = app, header = 'PAYMENT-SIGNATURE'): Fetch =>
  request => {
    const headers = new Headers(request.headers)
    headers.set(header, typeof payment === 'string' ? payment : btoa(JSON.stringify(payment)))
    return fetch(new Request(request, { headers }))
  }

/** Signs a payment for the requirements of the quote with the x402 library; `changes` are made before signing. */
export async function paymentOf(payer: PrivateKeyAccount, changes: Input = {}): Promise<Body> {
  const { body } = await call('getRegistrationQuote', {}, app)
  const accepts = [{ ...body.x402.requirements, ...changes }]
  const headers = await payerOf(payer).pay({ x402Version: 2, resource: { url: '' }, accepts })
  return decode(headers['PAYMENT-SIGNATURE'] ?? null)
}

/** Sets how the hosted facilitator behaves. Returns how many requests it had since the last call. */
export const setFacilitator = (behaviour: Partial<Record<'verify' | 'settle', FacilitatorBehaviour>> = {}) =>
  fetch(`${facilitatorUrl}/control`, { method: 'POST', body: JSON.stringify(behaviour) }).then(
    response => response.json() as Promise<{ verify: number; settle: number }>,
  )

/** Returns how many settlements were requested of the hosted facilitator since its behaviour was set. */
export async function settlementRequests() {
  const response = await fetch(`${facilitatorUrl}/calls`)
  return (await response.json<{ settle: number }>()).settle
}

export const ledgerObject = () => env.PAYMENT_LEDGER.get(env.PAYMENT_LEDGER.idFromName('registrations'))

/** Compares fees and registrations on the chain with what each test expects. */
export function useFeeLedger(): Pick<FeeLedger, 'fee' | 'expect'> {
  let current: FeeLedger
  beforeEach(async () => {
    await setFacilitator()
    current = await openFeeLedger()
  })
  afterEach(async () => {
    vi.restoreAllMocks()
    await current.expectBalanced()
  })
  return {
    get fee() {
      return current.fee
    },
    expect: expected => current.expect(expected),
  }
}
