import { x402Client, x402HTTPClient } from '@x402/core/client'
import type { PaymentRequired } from '@x402/core/types'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { type Address, getAddress } from 'viem'
import type { Account } from './account.ts'
import { type QuoteMismatch, UntrustedQuoteError } from './errors.ts'
import type { Payer } from './submit.ts'

export type { Payer }

/** What a payer may pay, and nothing else. */
export type PayerTerms = {
  /** The account that holds the asset; it may be another than the agent's. */
  account: Account
  /** The chain of the payment. */
  chainId: number
  /** The token in which the deployment takes its fee, on that chain. */
  asset: Address
  /** The largest payment, in base units of the asset: the deployment's registration fee. */
  maxAmount: bigint
  /** The only recipient; any recipient by default. */
  payTo?: Address
  /** How long a payment may be valid, in seconds from now by this machine's clock; 900 by default. */
  maxValiditySeconds?: number
}

const MAX_VALIDITY_SECONDS = 900

/** A payer, and what a program without this package's client needs of it. */
export type X402Payer = Payer & {
  /** Sends a request; if the response is 402, pays once and sends it again with the payment. */
  fetch(request: Request): Promise<Response>
}

/**
 * Creates a payer on the official x402 client. That client pays only in the assets that it knows, which refuses every
 * deployment with another one, such as the embedded chain. Its spend controls are set to exactly this asset and amount,
 * and each authorization is compared with the terms again before it is signed.
 * @example
 * const payer = createPayer({ account, chainId: 421614, asset: usdc, maxAmount: 1_000_000n })
 */
export function createPayer(
  terms: PayerTerms,
  send: (request: Request) => Promise<Response> = request => fetch(request),
): X402Payer {
  const { account, chainId, maxAmount } = terms
  const network = `eip155:${chainId}` as const
  const asset = getAddress(terms.asset)
  const signer = {
    address: account.address,
    async signTypedData(typedData: Parameters<Account['signTypedData']>[0]) {
      assertAuthorization(typedData, { ...terms, asset })
      return account.signTypedData(typedData)
    },
  }
  const client = new x402HTTPClient(
    x402Client.fromConfig({
      schemes: [{ network, client: new ExactEvmScheme(signer) }],
      spendControls: { allowedAssets: [{ network, asset, maxAmountPerPayment: `${maxAmount}` }] },
      policies: [(_, offered) => offered.filter(requirements => mismatchesOf(requirements, terms).length === 0)],
    }),
  )

  function assertAccepts(requirements: unknown): void {
    const mismatches = mismatchesOf(requirements as Record<string, unknown>, terms)
    if (mismatches.length > 0) throw notAllowed(mismatches)
  }

  async function pay(required: unknown): Promise<Record<string, string>> {
    const { accepts } = required as PaymentRequired
    // Names what differs, which the x402 client would not.
    if (!accepts?.some(offered => mismatchesOf(offered, terms).length === 0)) assertAccepts(accepts?.[0] ?? {})
    return client.encodePaymentSignatureHeader(await client.createPaymentPayload(required as PaymentRequired))
  }

  return {
    assertAccepts,
    pay,
    async fetch(request) {
      const again = request.clone()
      const response = await send(request)
      if (response.status !== 402) return response
      const required = client.getPaymentRequiredResponse(name => response.headers.get(name), await response.json())
      const headers = new Headers(again.headers)
      for (const [name, value] of Object.entries(await pay(required))) headers.set(name, value)
      return send(new Request(again, { headers }))
    },
  }
}

type Limits = Omit<PayerTerms, 'account'>

/** Returns the payment requirements that differ from the terms. */
function mismatchesOf(given: Record<string, unknown>, limits: Limits): QuoteMismatch[] {
  const { chainId, asset, maxAmount, payTo, maxValiditySeconds = MAX_VALIDITY_SECONDS } = limits
  const mismatches: QuoteMismatch[] = []
  const compare = (field: string, expected: string) => {
    if (String(given[field]).toLowerCase() !== expected.toLowerCase())
      mismatches.push({ field, expected, given: given[field] })
  }
  compare('scheme', 'exact')
  compare('network', `eip155:${chainId}`)
  compare('asset', asset)
  if (payTo !== undefined) compare('payTo', payTo)
  if (!isAtMost(given.amount, maxAmount))
    mismatches.push({ field: 'amount', expected: `at most ${maxAmount}`, given: given.amount })
  const { maxTimeoutSeconds } = given
  if (typeof maxTimeoutSeconds !== 'number' || !(maxTimeoutSeconds <= maxValiditySeconds))
    mismatches.push({ field: 'maxTimeoutSeconds', expected: `at most ${maxValiditySeconds}`, given: maxTimeoutSeconds })
  return mismatches
}

/** Throws unless the typed data transfers at most the amount, in the asset, from the account, on the chain, soon. */
function assertAuthorization(
  { domain, primaryType, message }: Parameters<Account['signTypedData']>[0],
  { account, ...limits }: PayerTerms,
): void {
  const given = {
    scheme: primaryType === 'TransferWithAuthorization' ? 'exact' : primaryType,
    network: `eip155:${domain.chainId}`,
    asset: domain.verifyingContract,
    payTo: message.to,
    amount: message.value,
    maxTimeoutSeconds: Number(message.validBefore) - Math.floor(Date.now() / 1000),
  }
  const mismatches = mismatchesOf(given, limits)
  if (String(message.from).toLowerCase() !== account.address.toLowerCase())
    mismatches.push({ field: 'from', expected: account.address, given: message.from })
  if (mismatches.length > 0) throw notAllowed(mismatches)
}

const notAllowed = (mismatches: readonly QuoteMismatch[]) =>
  new UntrustedQuoteError(
    'PAYMENT_NOT_ALLOWED',
    mismatches,
    mismatches.every(({ field }) => field === 'maxTimeoutSeconds') ? VALIDITY_REMEDY : undefined,
  )

const VALIDITY_REMEDY =
  "Do not sign this. If the chain's clock is ahead of this machine's, as on a development chain, raise `maxValiditySeconds` by the difference."

const isAtMost = (amount: unknown, maximum: bigint): boolean =>
  (typeof amount === 'bigint' || (typeof amount === 'string' && /^\d+$/.test(amount))) && BigInt(amount) <= maximum
