import { type TransferRefusal, transferRefusals } from '@agent-trading-service/protocol/transfer-refusal'
import { type Address, bytesToHex, concat, getAddress, type Hex, hexToBytes } from 'viem'
import { clockSeconds } from '../clock.ts'
import { withDeadline } from '../concurrency.ts'
import type { PaymentConfig } from '../config/config.ts'
import { keccak256 } from '../crypto/keccak256.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import { refusalOfUnsent } from '../executor/present-intent.ts'
import type { RelayOutcome } from '../executor/relay-types.ts'
import { logEvent } from '../log.ts'
import type { PaymentLedgerObject } from './object.ts'
import {
  type ParsedPayment,
  type Payment,
  type PaymentRequirements,
  parsePayment,
  paymentRequired,
  type RegistrationFee,
  requirementsOf,
} from './parse-payment.ts'
import type { ClaimResult, PaymentClaim, PaymentReceipt } from './payment-claim.ts'
import {
  type Authorization,
  findPaymentMistake,
  presentPayment,
  type SignedAuthorization,
  type SigningTerms,
} from './payment-signature.ts'
import type { PaidRegistration } from './store.ts'

export type Payments = ReturnType<typeof createPayments>

/**
 * A fee that must be paid before a registration is relayed. `chainTime` is that of the fee's chain, in Unix seconds.
 */
export type FeeDue = { requirements: PaymentRequirements; chainTime: bigint; facilitatorUrl: string | undefined }

/** Returns the payment of registration fees over x402. `resourceUrl` is what is paid for. */
export function createPayments(
  config: PaymentConfig,
  namespace: DurableObjectNamespace<PaymentLedgerObject>,
  resourceUrl: string,
) {
  const ledger = () => namespace.get(namespace.idFromName('registrations'))
  const { rpcUrls, facilitatorUrl, facilitatorTimeoutMs } = config

  /** Adds the payment requirements to a refusal. */
  function withRequirements(refusal: Refusal, { requirements }: FeeDue): Refusal {
    refusal.payment = { required: { ...paymentRequired(requirements, resourceUrl), error: refusal.body.error } }
    return refusal
  }

  /**
   * Makes sure that a registration is paid for, by an earlier payment of its signer or by the given one, and returns
   * the receipt. Throws PAYMENT_PENDING if that takes until after `respondBy` (epoch milliseconds). The same call again
   * charges nothing. Throws PAYMENT_REQUIRED, PAYMENT_REFUSED and PAYMENT_ALREADY_USED with the requirements,
   * INVALID_PAYMENT, REGISTRATION_IN_FLIGHT, PAYMENT_PENDING, FACILITATOR_UNAVAILABLE and what the relayer's lane
   * refuses with: TOO_MANY_REVERTS, GAS_BUDGET_EXHAUSTED, EXECUTOR_PAUSED, EXECUTOR_OUT_OF_FUNDS, EXECUTOR_BUSY.
   */
  async function take(
    registration: PaidRegistration,
    due: FeeDue,
    { payment: given, respondBy }: { payment: unknown; respondBy: number | undefined },
  ): Promise<PaymentReceipt> {
    const parsed = given === undefined ? undefined : parsePayment(given, due.requirements, due.chainTime)
    if (parsed?.kind === 'malformed') throw refuse('INVALID_PAYMENT', { problem: parsed.problem })
    const claimed = claim({
      registration,
      payment: parsed?.kind === 'valid' ? parsed.payment : undefined,
      requirements: due.requirements,
      network: { rpcUrls, facilitatorUrl, facilitatorTimeoutMs },
    })
    const result =
      respondBy === undefined
        ? await claimed
        : await withDeadline(claimed, respondBy, (): ClaimResult => ({ kind: 'pending' }))
    switch (result.kind) {
      case 'paid':
        return result.receipt
      case 'due':
        throw withRequirements(refusalOfUnpaid(parsed), due)
      case 'refused':
        throw withRequirements(refusalOfPayment(result.reason, parsed, due), due)
      case 'used':
        throw withRequirements(refuse('PAYMENT_ALREADY_USED'), due)
      case 'held':
        throw refuse('REGISTRATION_IN_FLIGHT', { digest: result.digest })
      case 'pending':
        throw refuse('PAYMENT_PENDING')
      case 'notAccepted':
        throw refusalOfUnsent(result.outcome, registration.digest)
      case 'unavailable':
        throw refuse('FACILITATOR_UNAVAILABLE')
    }
  }

  /** Claims again if the ledger breaks: it recorded what it began, so a second claim is safe. */
  async function claim(claim: PaymentClaim): Promise<ClaimResult> {
    try {
      return await ledger().claim(claim)
    } catch {
      return Promise.resolve(ledger().claim(claim)).catch((error: unknown): ClaimResult => {
        logEvent('payment ledger', { cause: error instanceof Error ? error.name : typeof error })
        return { kind: 'pending' }
      })
    }
  }

  return {
    /**
     * Returns the fee of a registration; undefined if it is free. `now` is the present time on the deployment's chain,
     * in Unix seconds.
     */
    dueOf(fee: RegistrationFee, now: bigint): FeeDue | undefined {
      const chainTime = config.isOnDeploymentChain ? now : BigInt(clockSeconds())
      const requirements = requirementsOf(config, fee, chainTime)
      return requirements && { requirements, chainTime, facilitatorUrl }
    },

    take,

    /**
     * Returns what `payer` signs to pay the fee of the registration with a digest, and the payment without its
     * signature. The nonce follows from both, so the asset accepts one payment of a payer for a registration.
     */
    paymentBy(payer: Address, { requirements, chainTime }: FeeDue, digest: Hex) {
      const { payTo, amount, maxTimeoutSeconds } = requirements
      const authorization: Authorization = {
        from: payer,
        to: getAddress(payTo),
        value: amount,
        validAfter: '0',
        validBefore: `${chainTime + BigInt(maxTimeoutSeconds)}`,
        nonce: bytesToHex(keccak256(hexToBytes(concat([digest, payer])))),
      }
      const payment = { x402Version: 2, accepted: requirements, payload: { authorization } }
      return { ...presentPayment(requirements as SigningTerms, authorization), payment }
    },

    /** Returns the receipt of a registration that is on the chain; undefined if it was not paid here. */
    receiptOf: (signer: Address, digest: Hex): Promise<PaymentReceipt | undefined> =>
      Promise.resolve(ledger().receipt({ signer, digest })).catch(() => undefined),

    /** Reports the outcome of a paid registration to the ledger. Without the report the ledger finds out by itself. */
    async conclude(signer: Address, digest: Hex, outcome: RelayOutcome): Promise<void> {
      const executed = wasExecuted(outcome)
      if (executed === undefined) return
      await Promise.resolve(ledger().conclude({ signer, digest }, executed)).catch(() => {})
    },
  }
}

/** Returns the refusal of a registration without a usable payment. */
function refusalOfUnpaid(parsed: ParsedPayment | undefined): Refusal {
  if (parsed === undefined) return refuse('PAYMENT_REQUIRED')
  if (parsed.kind !== 'mismatch') throw new Error('The ledger ignored a payment')
  const { field, given, expected } = parsed
  return refuse('PAYMENT_REFUSED', { problem: `${field} is not as required`, field, given, expected })
}

/** The reasons of facilitators for a payer who has less than the fee. */
const POOR_PAYER = /insufficient_(funds|balance)/

/** Returns the refusal of a payment that the facilitator did not accept. */
function refusalOfPayment(problem: string, parsed: ParsedPayment | undefined, { requirements }: FeeDue): Refusal {
  if (Object.hasOwn(transferRefusals, problem))
    return refuse('TRANSFER_REFUSED', { reason: problem as TransferRefusal })
  if (parsed?.kind !== 'valid') return refuse('PAYMENT_REFUSED', { problem })
  if (!POOR_PAYER.test(problem)) return refusalOfSignature(problem, parsed.payment, requirements)
  const { amount, asset, network } = requirements
  const poorPayer = { payer: parsed.payment.payer, amount, asset, network }
  return refuse('PAYMENT_REFUSED', { problem, poorPayer }).withRemedy(
    'Nothing was charged. Send the payer the missing amount, or pay from another account, and send the identical body again.',
  )
}

/** Returns the refusal of a payment with the mistake in its signature, if that is a common one. */
function refusalOfSignature(reason: string, { payload }: Payment, requirements: PaymentRequirements): Refusal {
  const found = findPaymentMistake(reason, payload.payload as SignedAuthorization, requirements)
  if (found === undefined) return refuse('PAYMENT_REFUSED', { problem: reason })
  const { mistake, problem, remedy } = found
  const refusal = refuse('PAYMENT_REFUSED', { problem, mistake, reason })
  return remedy === undefined ? refusal : refusal.withRemedy(remedy)
}

/** Returns whether a registration was executed; undefined if that is not certain. */
function wasExecuted({ state }: RelayOutcome): boolean | undefined {
  if (state === 'mined') return true
  return state === 'rejected' || state === 'reverted' ? false : undefined
}
