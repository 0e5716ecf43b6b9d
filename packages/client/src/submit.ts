import type { Hex } from 'viem'
import {
  type AgentTradingError,
  AgentTradingError as AnyError,
  errorOfResponse,
  NotFoundError,
  PaymentError,
  type Submission,
  UnknownOutcomeError,
} from './errors.ts'
import type { components } from './generated/openapi.ts'
import { createRetry, fillPath, type Http } from './http.ts'

type Intent = components['schemas']['Intent']

/** Pays what a 402 response requires. */
export type Payer = {
  /** Throws unless these requirements are exactly what the payer may pay. */
  assertAccepts(requirements: unknown): void
  /** Signs the payment that the body of a 402 response requires, and returns the headers that carry it. */
  pay(required: unknown): Promise<Record<string, string>>
}

/** After these errors the service has not accepted the message; after any other failure it may have. */
const NOT_ACCEPTED = [
  'RATE_LIMITED',
  'GAS_BUDGET_EXHAUSTED',
  'GAS_PRICE_TOO_HIGH',
  'EXECUTOR_BUSY',
  'EXECUTOR_PAUSED',
  'EXECUTOR_OUT_OF_FUNDS',
  'SUBMISSION_FAILED',
  'TOO_MANY_REVERTS',
]

/**
 * Posts a signed message until its outcome is known. Only the identical body is posted again, which the service
 * executes at most once, and a payment is signed at most once. Throws an `UnknownOutcomeError` if the outcome is still
 * open when the budget is spent.
 */
export async function submit<Receipt>(http: Http, submission: Submission, payer?: Payer): Promise<Receipt> {
  const { method, path, body } = submission
  const retry = createRetry(http.retryBudgetMs)
  let headers: Record<string, string> | undefined
  let mayBeExecuted = false
  for (;;)
    try {
      return await http.once<Receipt>(path, { method, body, ...(headers && { headers }) })
    } catch (error) {
      if (!(error instanceof AnyError)) throw error
      if (error instanceof PaymentError && payer && headers === undefined) {
        headers = await payer.pay(error.details)
        continue
      }
      mayBeExecuted ||= isOpen(error)
      if (error.retryable && (await retry.wait(error))) continue
      if (!mayBeExecuted) throw error
      const found = await lookUp<Receipt>(http, submission)
      if (found.kind === 'executed') return found.receipt
      if (found.kind === 'refused') throw found.error
      // The service refused the message itself, and has no trace of an earlier post.
      if (found.kind === 'absent' && !error.retryable) throw error
      if (found.kind === 'pending' && (await retry.wait({ retryAfterSeconds: 1 }))) continue
      throw new UnknownOutcomeError(submission, error)
    }
}

const isOpen = ({ kind, status = 0, code }: AgentTradingError) =>
  kind === 'network' || (status >= 500 && !NOT_ACCEPTED.includes(code))

type Found<Receipt> =
  | { kind: 'executed'; receipt: Receipt }
  | { kind: 'refused'; error: AgentTradingError }
  | { kind: 'pending' | 'absent' | 'unknown' }

/** Reads what became of a message by its digest. Messages of owners and about webhooks have no record there. */
async function lookUp<Receipt>(http: Http, { digest, kind, path }: Submission): Promise<Found<Receipt>> {
  if (kind === 'owner' || kind === 'webhook') return { kind: 'unknown' }
  let intent: Intent
  try {
    intent = await http.get<Intent>(fillPath('/intents/{digest}', { digest }))
  } catch (error) {
    return { kind: error instanceof NotFoundError ? 'absent' : 'unknown' }
  }
  const { state, refusal } = intent
  if (state === 'mined' || state === 'final') return { kind: 'executed', receipt: receiptOf(intent, path) as Receipt }
  if (state === 'rejected' || state === 'reverted' || state === 'dropped')
    return { kind: 'refused', error: errorOfResponse(400, new Headers(), refusal) }
  return { kind: 'pending' }
}

/** Returns of an executed intent what the response to its submission would have been. */
function receiptOf({ agentId, positionId, transactionHash, blockNumber, ...intent }: Intent, path: string) {
  const { digest, kind, fill, realizedPnlUsdc, pendingRules } = intent
  if (kind === 'order') return { agentId, orderId: digest, state: 'open', transactionHash, blockNumber }
  if (kind === 'cancelOrder')
    return { agentId, orderId: path.split('/').at(-2), state: 'cancelled', transactionHash, blockNumber }
  return { agentId, positionId, transactionHash, blockNumber, fill, realizedPnlUsdc, pendingRules }
}

/**
 * Whether the service says that a message, which was executed once, is not on the chain any more and will not be again.
 */
export async function isVoid(http: Http, digest: Hex): Promise<boolean> {
  const state = await stateOf(http, digest)
  return state === undefined || state === 'rejected' || state === 'reverted' || state === 'dropped'
}

/** Whether the service says that a message is executed, by any poster. */
export async function isExecuted(http: Http, digest: Hex): Promise<boolean> {
  const state = await stateOf(http, digest)
  return state === 'mined' || state === 'final'
}

/** Returns what the service says of a message; undefined if it does not know it. */
async function stateOf(http: Http, digest: Hex): Promise<Intent['state'] | undefined> {
  try {
    return (await http.get<Intent>(fillPath('/intents/{digest}', { digest }))).state
  } catch (error) {
    if (error instanceof NotFoundError) return undefined
    throw error
  }
}
