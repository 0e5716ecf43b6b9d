import type { Hex } from 'viem'
import { row } from './error-row.ts'

const SEND_AGAIN = 'Send the identical signed body again'
const NOT_ACCEPTED_YET = 'until one is accepted, GET /intents/{digest} returns 404'

/** Outcomes of sending a signed intent to the chain. */
export const relayErrors = {
  NONCE_IN_FLIGHT: row<{ agentId: string; nonce: string; digest: Hex }>({
    status: 400,
    sentence: ({ agentId, nonce }) => `Another intent of agent ${agentId} with the nonce ${nonce} is being executed.`,
    remedy: 'Wait for that intent (GET /intents/{digest} shows it), then fetch a fresh quote.',
  }),
  INTENT_REFUSED: row<{ problem: string }>({
    status: 400,
    sentence: ({ problem }) => `The chain rejected the call: ${problem}.`,
    remedy: 'Nothing was executed. Fetch a fresh quote and compare its checks.',
  }),
  SUBMISSION_REVERTED: row<{ transactionHash: Hex; problem: string }>({
    status: 400,
    sentence: ({ transactionHash, problem }) =>
      `The transaction ${transactionHash} was mined and reverted: ${problem}.`,
    remedy: 'Nothing was traded. The market or a limit moved after the check: fetch a fresh quote.',
  }),
  SUBMISSION_UNKNOWN: row<{ digest: Hex; transactionHash: Hex | undefined }>({
    status: 502,
    sentence: () => 'The transaction was sent to the chain and its outcome is not known yet.',
    remedy: `${SEND_AGAIN}: it is never executed twice, and the response is the outcome. GET /intents/{digest} shows it too.`,
    retryable: true,
    retryAfterSeconds: 2,
  }),
  SUBMISSION_FAILED: row<{ digest: Hex }>({
    status: 502,
    sentence: () => 'No node accepted the transaction; nothing was executed.',
    remedy: `${SEND_AGAIN}; ${NOT_ACCEPTED_YET}.`,
    retryable: true,
    retryAfterSeconds: 2,
  }),
  EXECUTOR_BUSY: row<{ digest: Hex }>({
    status: 503,
    sentence: () => 'The executor is at capacity; the intent was not accepted.',
    remedy: `${SEND_AGAIN} after retryAfterSeconds; ${NOT_ACCEPTED_YET}.`,
    retryable: true,
    retryAfterSeconds: 1,
  }),
  TOO_MANY_REVERTS: row<{ digest: Hex }>({
    status: 503,
    sentence: () => "The signer's last transactions were mined and reverted; its next intent must wait.",
    remedy:
      'Every revert costs gas: fetch a fresh quote after retryAfterSeconds and send only an intent that passes its checks.',
    retryable: true,
    retryAfterSeconds: 60,
    level: 'warn',
  }),
  GAS_BUDGET_EXHAUSTED: row<{
    digest?: Hex
    budget: string
    window: 'minute' | 'day'
    limitGas: number
    leftGas: number
  }>({
    status: 429,
    sentence: ({ budget, window, limitGas, leftGas }) =>
      `The gas budget \`${budget}\` of this ${window} has ${leftGas} of ${limitGas} gas left, which is too little; nothing was sent.`,
    remedy: `${SEND_AGAIN} after retryAfterSeconds. Reductions have a reserve of their own.`,
    retryable: true,
    retryAfterSeconds: 60,
  }),
  EXECUTOR_UNREACHABLE: row<{ digest?: Hex; txHash?: Hex }>({
    status: 502,
    sentence: () => "The executor's journal cannot be read at the moment.",
    remedy: 'Try again in a moment.',
    retryable: true,
    retryAfterSeconds: 2,
  }),
  EXECUTOR_OUT_OF_FUNDS: row<{ digest: Hex }>({
    status: 503,
    sentence: () => 'The executor account cannot pay for gas; the intent was not accepted.',
    remedy: `The operator must fund the executor account. ${SEND_AGAIN} later; ${NOT_ACCEPTED_YET}.`,
    retryable: true,
    retryAfterSeconds: 60,
  }),
  EXECUTOR_PAUSED: row<{ digest: Hex }>({
    status: 503,
    sentence: () => 'Someone else also uses the executor account; the intent was not accepted.',
    remedy: `The operator must replace the key. ${SEND_AGAIN} later.`,
    retryable: true,
    retryAfterSeconds: 60,
  }),
}
