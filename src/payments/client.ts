import type { Address, Hex } from 'viem'
import type { PaymentConfig } from '../config.ts'
import { refuse } from '../errors/catalogue.ts'
import type { Refusal } from '../errors/refusal.ts'
import type { Executor } from '../executor/client.ts'
import type { RelayOutcome, RelayRequest } from '../executor/intent.ts'
import type { PaymentLedger, Receipt, Taken } from './object.ts'
import { parsePayment } from './parse-payment.ts'
import { type Fee, type PaymentRequirements, paymentRequired, requirementsOf } from './requirements.ts'
import type { Registration } from './store.ts'

export type Payments = ReturnType<typeof createPayments>

/** A fee that must be paid before a registration is relayed. */
export type Due = { requirements: PaymentRequirements; chainTime: bigint; facilitatorUrl: string | undefined }

/** Payment of the registration fee over x402. `resourceUrl` is what is paid for. */
export function createPayments(
  config: PaymentConfig,
  namespace: DurableObjectNamespace<PaymentLedger>,
  resourceUrl: string,
) {
  const ledger = () => namespace.get(namespace.idFromName('registrations'))
  const { rpcUrls, facilitatorUrl, facilitatorTimeoutMs } = config

  const demand = ({ requirements }: Due, refusal: Refusal): Refusal => {
    refusal.payment = { required: { ...paymentRequired(requirements, resourceUrl), error: refusal.body.error } }
    return refusal
  }

  /**
   * Sees to it that a registration is paid for, with what its signer has paid before or with the given payment, and
   * answers the payment's receipt. Nothing is charged twice: the same call again is safe. Throws PAYMENT_REQUIRED,
   * PAYMENT_REFUSED, PAYMENT_ALREADY_USED (with the requirements), INVALID_PAYMENT, REGISTRATION_IN_FLIGHT,
   * PAYMENT_PENDING, FACILITATOR_UNAVAILABLE.
   */
  async function take(registration: Registration, due: Due, given: unknown): Promise<Receipt> {
    const parsed = given === undefined ? undefined : parsePayment(given, due.requirements, due.chainTime)
    if (parsed && 'malformed' in parsed) throw refuse('INVALID_PAYMENT', { problem: parsed.malformed })
    const payment = parsed && 'payment' in parsed ? parsed.payment : undefined
    const taken = await ask(ledger =>
      ledger.take({
        ...{ registration, payment, requirements: due.requirements },
        route: { rpcUrls, facilitatorUrl, facilitatorTimeoutMs },
      }),
    )
    switch (taken.is) {
      case 'paid':
        return taken.receipt
      case 'due':
        if (parsed === undefined) throw demand(due, refuse('PAYMENT_REQUIRED'))
        if (!('mismatch' in parsed)) throw new Error('The ledger passed over a payment')
        throw demand(
          due,
          refuse('PAYMENT_REFUSED', { problem: `${parsed.mismatch.field} is not as required`, ...parsed.mismatch }),
        )
      case 'refused':
        throw demand(due, refuse('PAYMENT_REFUSED', { problem: taken.reason }))
      case 'used':
        throw demand(due, refuse('PAYMENT_ALREADY_USED'))
      case 'held':
        throw refuse('REGISTRATION_IN_FLIGHT', { digest: taken.digest })
      case 'pending':
        throw refuse('PAYMENT_PENDING')
      case 'unavailable':
        throw refuse('FACILITATOR_UNAVAILABLE')
    }
  }

  /** A ledger that broke on the way has written down what it began, and asking it again is safe. */
  async function ask(question: (stub: DurableObjectStub<PaymentLedger>) => Promise<Taken>): Promise<Taken> {
    try {
      return await question(ledger())
    } catch {
      return question(ledger()).catch((error: unknown) => {
        // Only the class is logged: a message can carry RPC URLs.
        const cause = error instanceof Error ? error.name : typeof error
        console.error(JSON.stringify({ level: 'error', event: 'payment ledger', cause }))
        return { is: 'pending' }
      })
    }
  }

  return {
    /** What a registration costs here; undefined where it is free. */
    dueOf(fee: Fee, chainTime: bigint): Due | undefined {
      const requirements = requirementsOf(config, fee, chainTime)
      return requirements && { requirements, chainTime, facilitatorUrl }
    },
    take,
    /** The receipt of a registration that is on the chain, if it was paid for here. */
    receiptOf: (signer: Address, digest: Hex): Promise<Receipt | undefined> =>
      Promise.resolve(ledger().receipt({ signer, digest })).catch(() => undefined),
    /** The relayer of a paid registration: it tells the ledger what became of it. */
    relaying: (relayer: Executor, signer: Address): Executor => ({
      ...relayer,
      async relay(relay: RelayRequest) {
        const outcome = await relayer.relay(relay)
        const executed = executionOf(outcome)
        // The ledger finds out by itself when it is not told.
        if (executed !== undefined)
          await Promise.resolve(ledger().conclude({ signer, digest: relay.digest }, executed)).catch(() => {})
        return outcome
      },
    }),
  }
}

function executionOf({ state }: RelayOutcome): boolean | undefined {
  if (state === 'mined') return true
  return state === 'rejected' || state === 'reverted' ? false : undefined
}
