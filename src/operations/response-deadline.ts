import type { Hex } from 'viem'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import type { Executor } from '../executor/client.ts'
import type { Payments } from '../payments/client.ts'
import { withDeadline } from '../timeout.ts'

/** How long a read may take altogether, however long it waits for its turn and however many requests to nodes it needs. */
const MAX_READ_MS = 4_500
/** What of a submission's time is left for what follows the relay. */
const AFTER_RELAY_MS = 300

/** When the request of a call arrived, in epoch milliseconds: before it waited for its turn. */
const arrivalOf = ({ client }: Context) => client?.arrivedAt ?? Date.now()

/** Resolves with the response of a read. Throws CHAIN_UNREACHABLE if it takes longer: only its nodes can be slow. */
export async function respondInTime<Response extends object>(
  context: Context,
  read: Promise<Response>,
): Promise<Response> {
  const response = await withDeadline(read, arrivalOf(context) + MAX_READ_MS, () => undefined)
  if (response === undefined) throw tooSlow()
  return response
}

/**
 * Resolves with the response of a submission. If it takes longer than `submissionTimeoutMs`, throws SUBMISSION_UNKNOWN with the digest once something
 * was relayed, PAYMENT_PENDING while the fee is being collected, and CHAIN_UNREACHABLE before; then nothing is relayed later.
 */
export async function submitInTime<Response extends object>(
  context: Context,
  submit: (context: Context) => Promise<Response>,
): Promise<Response> {
  const deadline = arrivalOf(context) + context.config.submissionTimeoutMs
  const respondBy = deadline - AFTER_RELAY_MS
  let relayed: Hex | undefined

  const bounded = (executor: Executor): Executor => ({
    ...executor,
    async relay(request) {
      if (Date.now() >= respondBy) throw tooSlow()
      relayed = request.digest
      return executor.relay(request, respondBy)
    },
  })
  const boundedPayments = (payments: Payments): Payments => ({
    ...payments,
    async take(...claim) {
      const receipt = await withDeadline(payments.take(...claim), respondBy, () => undefined)
      if (receipt === undefined) throw refuse('PAYMENT_PENDING')
      return receipt
    },
  })
  const boundedContext: Context = Object.create(context, {
    executor: { get: () => bounded(context.executor) },
    relayer: { get: () => bounded(context.relayer) },
    updater: { get: () => bounded(context.updater) },
    payments: { get: () => context.payments && boundedPayments(context.payments) },
  })
  const response = await withDeadline(submit(boundedContext), deadline, () => undefined)
  if (response !== undefined) return response
  throw relayed === undefined
    ? tooSlow()
    : refuse('SUBMISSION_UNKNOWN', { digest: relayed, transactionHash: undefined })
}

const tooSlow = () => refuse('CHAIN_UNREACHABLE', {}, { cause: new Error('the nodes took too long for a request') })
