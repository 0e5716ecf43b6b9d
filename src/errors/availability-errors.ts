import type { Hex } from 'viem'
import { row } from './refusal.ts'

/** What the deployment cannot do: not configured, not reachable, at capacity, or broken. */
export const availabilityErrors = {
  CHAIN_UNREACHABLE: row({
    status: 502,
    sentence: () => 'The chain cannot be reached.',
    remedy: 'Try again in a moment.',
    retryAfterSeconds: 2,
  }),
  NODES_BEHIND: row<{ minBlock: bigint; newestBlock: bigint }>({
    status: 502,
    sentence: ({ minBlock, newestBlock }) =>
      `Block ${minBlock} has been shown already; the nodes are at block ${newestBlock}, and older state is not returned.`,
    remedy: 'Try again in a moment.',
    retryAfterSeconds: 1,
    level: 'warn',
  }),
  HISTORY_UNAVAILABLE: row({
    status: 503,
    sentence: () => 'The history is not indexed yet, or its database cannot be reached.',
    remedy: 'Try again in a moment; `history` of /health/ready shows how far the indexer is.',
    toolRemedy: 'Try again in a moment; reads of the present work without the history.',
    retryAfterSeconds: 2,
  }),
  TOO_MANY_STREAMS: row({
    status: 503,
    sentence: () => 'The maximum number of event streams of this deployment is open.',
    remedy: 'Try again in a moment; one stream of GET /events can replace several streams of single agents.',
    toolRemedy: 'Try again in a moment.',
    retryAfterSeconds: 5,
    level: 'warn',
  }),
  TOO_MANY_STREAMS_OF_CLIENT: row({
    status: 429,
    sentence: () => 'Your address has the maximum number of event streams open.',
    remedy: 'Close some of them; one stream of GET /events can replace several streams of single agents.',
    toolRemedy: 'Close some of them.',
    retryAfterSeconds: 15,
  }),
  CHAIN_NOT_CONFIGURED: row({
    status: 500,
    sentence: () => 'This deployment has no chain configuration.',
    remedy: 'The operator must set CHAIN_ID, RPC_URL and CONTRACTS.',
  }),
  TRADING_NOT_CONFIGURED: row({
    status: 503,
    sentence: () => 'This deployment has no trade router.',
    remedy: 'The operator must name TradeRouter, PositionManager and their companions in CONTRACTS.',
  }),
  EXECUTOR_NOT_CONFIGURED: row({
    status: 503,
    sentence: () => 'This deployment has no executor account.',
    remedy: 'The operator must set EXECUTOR_PRIVATE_KEY.',
  }),
  RELAYER_NOT_CONFIGURED: row({
    status: 503,
    sentence: () => 'This deployment has no relayer account for registrations.',
    remedy: 'The operator must set RELAYER_PRIVATE_KEY; a signer can also call selfRegisterAgent directly.',
  }),
  PRICE_UPDATER_NOT_CONFIGURED: row({
    status: 503,
    sentence: () => 'This deployment has no account that can post prices.',
    remedy: 'The operator must set ORACLE_UPDATER_PRIVATE_KEY.',
  }),
  PRICE_PROVIDER_NOT_CONFIGURED: row({
    status: 503,
    sentence: () => 'This deployment has no market-data provider.',
    remedy: 'The operator must set PRICE_PROVIDER; until then only others post prices.',
  }),
  INTAKE_CLOSED: row<{ kind: string; reason: string; since: string }>({
    status: 503,
    sentence: ({ kind, reason }) => `The operator has closed the intake of \`${kind}\`: ${reason}`,
    remedy:
      'Nothing was sent. Other kinds are not affected; `closedIntake` of GET /health shows when it is open again.',
    toolRemedy: 'Nothing was sent. Other kinds are not affected; try again later.',
    retryAfterSeconds: 60,
    level: 'warn',
  }),
  INTAKE_SWITCHES_UNREACHABLE: row({
    status: 503,
    sentence: () => 'The intake switches cannot be changed at the moment; nothing was changed.',
    remedy: 'Try again in a moment.',
    retryAfterSeconds: 2,
  }),
  OPERATOR_NOT_CONFIGURED: row({
    status: 503,
    sentence: () => 'This deployment has no secret of its operator.',
    remedy: 'The operator must set OPERATOR_SECRET.',
    level: 'warn',
  }),
  PRICE_REFRESH_DISABLED: row({
    status: 503,
    sentence: () => 'This deployment refreshes prices by itself; requests for it are disabled.',
    remedy: 'The operator must set PRICE_REFRESH_SECRET to allow requests with that bearer token.',
  }),
  NOT_READY: row<{ problem: string; [name: string]: unknown }>({
    status: 503,
    sentence: ({ problem }) => `Trading is not possible: ${problem}.`,
    remedy: 'See details for the state of every component; reads may still work.',
    retryAfterSeconds: 10,
  }),
  INTERNAL: row({
    status: 500,
    sentence: () => 'The service failed unexpectedly.',
    remedy: 'Report the requestId to the operator.',
  }),
}

const SEND_AGAIN = 'Send the identical signed body again'
const NOT_ACCEPTED_YET = 'until one is accepted, GET /intents/{digest} returns 404'

/** Outcomes of sending a signed intent to the chain. */
export const relayErrors = {
  NONCE_IN_FLIGHT: row<{ agentId: string; nonce: string; digest: Hex }>({
    sentence: ({ agentId, nonce }) => `Another intent of agent ${agentId} with the nonce ${nonce} is being executed.`,
    remedy: 'Wait for that intent (GET /intents/{digest} shows it), then fetch a fresh quote.',
  }),
  INTENT_REFUSED: row<{ problem: string }>({
    sentence: ({ problem }) => `The chain rejected the call: ${problem}.`,
    remedy: 'Nothing was executed. Fetch a fresh quote and compare its checks.',
  }),
  SUBMISSION_REVERTED: row<{ transactionHash: Hex; problem: string }>({
    sentence: ({ transactionHash, problem }) =>
      `The transaction ${transactionHash} was mined and reverted: ${problem}.`,
    remedy: 'Nothing was traded. The market or a limit moved after the check: fetch a fresh quote.',
  }),
  SUBMISSION_UNKNOWN: row<{ digest: Hex; transactionHash: Hex | undefined }>({
    status: 502,
    sentence: ({ transactionHash }) =>
      transactionHash === undefined
        ? 'The outcome of the intent is not known yet.'
        : 'The transaction was sent to the chain and its outcome is not known yet.',
    remedy: `${SEND_AGAIN}: it is never executed twice, and the response is the outcome. GET /intents/{digest} shows it too.`,
    retryAfterSeconds: 2,
  }),
  SUBMISSION_FAILED: row<{ digest: Hex }>({
    status: 502,
    sentence: () => 'No node accepted the transaction; nothing was executed.',
    remedy: `${SEND_AGAIN}; ${NOT_ACCEPTED_YET}.`,
    retryAfterSeconds: 2,
  }),
  TRANSACTION_DROPPED: row<{ digest: Hex | undefined }>({
    status: 502,
    sentence: () =>
      'Nodes accepted the transaction several times, but no node knows it: the sequencer leaves it out. Nothing was executed, and nothing will be.',
    remedy:
      'Do not sign it again in the same form: the chain filters transactions that touch certain addresses. Ask the operator, and trade another token.',
  }),
  EXECUTOR_BUSY: row<{ digest: Hex }>({
    status: 503,
    sentence: () => 'The executor is at capacity; the intent was not accepted.',
    remedy: `${SEND_AGAIN} after retryAfterSeconds; ${NOT_ACCEPTED_YET}.`,
    retryAfterSeconds: 1,
  }),
  TOO_MANY_REVERTS: row<{ digest: Hex }>({
    status: 503,
    sentence: () => "The signer's last transactions were mined and reverted; its next intent must wait.",
    remedy:
      'Every revert costs gas: fetch a fresh quote after retryAfterSeconds and send only an intent that passes its checks.',
    retryAfterSeconds: 60,
    level: 'warn',
  }),
  GAS_BUDGET_EXHAUSTED: row<{
    digest?: Hex
    budget: string
    window: 'minute' | 'hour' | 'day'
    limitGas: number
    leftGas: number
  }>({
    status: 429,
    sentence: ({ budget, window, limitGas, leftGas }) =>
      `The gas budget \`${budget}\` of this ${window} has ${leftGas} of ${limitGas} gas left, which is too little; nothing was sent.`,
    remedy: `${SEND_AGAIN} after retryAfterSeconds. Reductions have a reserve of their own.`,
    retryAfterSeconds: 60,
  }),
  GAS_PRICE_TOO_HIGH: row<{ digest?: Hex; gasPriceWei: string; maxGasPriceWei: string }>({
    status: 503,
    sentence: ({ gasPriceWei, maxGasPriceWei }) =>
      `Gas costs ${gasPriceWei} wei at the moment, with its data on L1, and this service pays at most ${maxGasPriceWei} for this; nothing was sent.`,
    remedy: `${SEND_AGAIN} later: gas prices fall within minutes to hours. Reductions, exit ladders and stops are sent at any price.`,
    retryAfterSeconds: 60,
    level: 'warn',
  }),
  EXECUTOR_UNREACHABLE: row<{ digest?: Hex; txHash?: Hex }>({
    status: 502,
    sentence: () => "The executor's journal cannot be read at the moment.",
    remedy: 'Try again in a moment.',
    retryAfterSeconds: 2,
  }),
  EXECUTOR_OUT_OF_FUNDS: row<{ digest: Hex }>({
    status: 503,
    sentence: () => 'The executor account cannot pay for gas; the intent was not accepted.',
    remedy: `The operator must fund the executor account. ${SEND_AGAIN} later; ${NOT_ACCEPTED_YET}.`,
    retryAfterSeconds: 60,
  }),
  EXECUTOR_PAUSED: row<{ digest: Hex }>({
    status: 503,
    sentence: () => 'Someone else also uses the executor account; the intent was not accepted.',
    remedy: `The operator must stop a second copy of the service, or replace the key. ${SEND_AGAIN} later.`,
    retryAfterSeconds: 60,
  }),
}
