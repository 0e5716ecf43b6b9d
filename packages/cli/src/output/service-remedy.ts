import { type ReadId, readDescriptions } from '@agent-trading-service/client'
import type { Remedy } from '../failure.ts'
import { readCommandName } from './read-command-name.ts'

// The service words its remedies for programs that use HTTP. A person has commands, a model the tools of `ats mcp`.

type Remedies = Exclude<Remedy, string>
const both = (command: string, tool = command): Remedies => ({ command, tool })

const RUN_AGAIN = both('Run the command again: it takes a fresh quote.', 'Call the tool again: it takes a fresh quote.')
const FIND_OUTCOME = both(
  'Run `ats outcome` until it says what became of it.',
  'Call `resume` until it says what became of it.',
)
const TRY_AGAIN = both('Try again in a moment.')
const WITHIN_LIMIT = both(
  'Trade at most the largest amount that `ats quote open` shows.',
  'Trade at most what `limit` of the details leaves.',
)
const WAIT_FOR_PRICE = both(
  'Wait for a fresh price: `ats prices` shows it.',
  'Wait for a fresh price: svc_get_prices shows it.',
)
const OTHER_SERVICE = both(
  'Check --url: what responds there is another service, or another version of it.',
  'Ask the user to check ATS_URL of this server: another service responds there, or another version of it.',
)
const CHANGED_ON_THE_WAY = both('Try again. If it happens again, a proxy changes what is sent.')
const NO_LINK = both('The owner of an agent can link one, over the API.')
const PAY_AGAIN = both(
  'Nothing was charged. Check that the key of --payer holds the fee, then run the command again.',
  'Nothing was charged. Ask the user whether the key that pays holds the fee, then call register again.',
)
const OPERATOR_ONLY = both('Only the operator of the service can do this, with its OPERATOR_SECRET.')

/** Remedies of the service that speak of requests, by code. Endpoints in the others are named by `inWordsOf`. */
const remedies: Record<string, Remedies> = {
  AGENT_NOT_FOUND: both(
    'Run `ats agents-by-owner <owner>` for the agents of an owner; `ats register` creates one.',
    'svc_list_agents_by_owner lists the agents of an owner; `register` creates one.',
  ),
  AGENT_NOT_SUSPENDED: RUN_AGAIN,
  BODY_TOO_LARGE: CHANGED_ON_THE_WAY,
  BODY_TOO_SLOW: CHANGED_ON_THE_WAY,
  BPS_OUT_OF_RANGE: both('Pass a slippage from 0 to 10000 basis points, and a share up to 100 %.'),
  DEADLINE_IN_MILLISECONDS: RUN_AGAIN,
  DEADLINE_TOO_FAR: RUN_AGAIN,
  ERC8004_IDENTITY_NOT_LINKED: NO_LINK,
  EVENT_ID_UNKNOWN: both(
    'Leave --after out; `ats trade-history` shows what you missed.',
    'Leave lastEventId out; svc_get_trade_history shows what was missed.',
  ),
  EXCEEDS_ALLOCATION_CAP: WITHIN_LIMIT,
  EXCEEDS_DAILY_TURNOVER: WITHIN_LIMIT,
  EXCEEDS_MAX_TRADE_SIZE: WITHIN_LIMIT,
  EXECUTOR_BUSY: FIND_OUTCOME,
  EXECUTOR_OUT_OF_FUNDS: FIND_OUTCOME,
  EXECUTOR_PAUSED: FIND_OUTCOME,
  EXIT_RULES_OUT_OF_BOUNDS: both(
    'Stay within the bounds of the track, which `ats vault <vault>` shows.',
    'Stay within the bounds of the track, which svc_get_vault shows.',
  ),
  EXPIRED_DEADLINE: RUN_AGAIN,
  FACILITATOR_UNAVAILABLE: FIND_OUTCOME,
  GAS_BUDGET_EXHAUSTED: FIND_OUTCOME,
  GAS_PRICE_TOO_HIGH: FIND_OUTCOME,
  HISTORY_UNAVAILABLE: both(
    'Try again in a moment; `ats readiness` shows how far the index is.',
    'Try again in a moment; reads of the present work without the history.',
  ),
  INSUFFICIENT_IDLE_ASSETS: WITHIN_LIMIT,
  INTAKE_CLOSED: both(
    'Nothing was sent. Other kinds are not affected; `ats health` shows when it is open again.',
    'Nothing was sent. Other kinds are not affected; try again later.',
  ),
  INTENT_NOT_FOUND: both(
    'Rejected intents are deleted after an hour, others a day after their deadline; `ats trade-history` shows what was executed.',
    'Rejected intents are deleted after an hour, others a day after their deadline; svc_get_trade_history shows what was executed.',
  ),
  INTENT_REFUSED: RUN_AGAIN,
  INVALID_ACCOUNT_NONCE: RUN_AGAIN,
  INVALID_AMOUNT: both('Pass a positive amount in USDC with at most six decimals; amounts are not rounded.'),
  INVALID_METADATA_URI: both('Pass a metadata URI of that length.'),
  INVALID_NAME: both('Pass a name of that length.'),
  INVALID_NONCE: RUN_AGAIN,
  INVALID_ORDER: both(
    'Correct what the message names; `ats order --help` explains the options.',
    'Correct what the message names and call place_order again.',
  ),
  INVALID_PAYMENT: PAY_AGAIN,
  INVALID_REDUCE_AMOUNT: both('Pass a larger share, or close the position.'),
  INVALID_REQUEST: both(
    'Correct what the message names; the command explains each value with --help.',
    'Correct what the message names and call the tool again; its input schema has every field.',
  ),
  INVALID_SIGNATURE: both(
    'Use the key that signs for the agent: `ats agent` names it.',
    'Ask the user to name the key that signs for the agent as ATS_KEY in the environment of this server.',
  ),
  INVALID_TRADE_AMOUNT: both('Pass a positive amount.'),
  MALFORMED_JSON: CHANGED_ON_THE_WAY,
  MESSAGE_ALREADY_USED: RUN_AGAIN,
  METHOD_NOT_ALLOWED: OTHER_SERVICE,
  MIN_BLOCK_AHEAD: TRY_AGAIN,
  NONCE_IN_FLIGHT: both('Run `ats outcome`, then run the command again.', 'Call `resume`, then call the tool again.'),
  NO_AGENT_FOR_ERC8004: NO_LINK,
  NOT_OWNER_OR_SIGNER: both("Use the key of the agent's owner or signer."),
  NO_PENDING_EXIT_RULE: RUN_AGAIN,
  ORDER_NOT_FOUND: both(
    '`ats orders` lists the open ones, `ats orders --past` the others.',
    'svc_list_orders lists them.',
  ),
  ORDER_NOT_OPEN: both(
    '`ats orders --past` says how it ended.',
    'svc_list_orders with state "past" says how it ended.',
  ),
  OPERATOR_ONLY,
  PAYMENT_ALREADY_USED: both(
    'Nothing was charged again. Run the command again: it signs another payment.',
    'Nothing was charged again. Call register again: it signs another payment.',
  ),
  PAYMENT_PENDING: FIND_OUTCOME,
  PAYMENT_REFUSED: PAY_AGAIN,
  PAYMENT_REQUIRED: PAY_AGAIN,
  RATE_LIMITED: both(
    'Wait that long, then run the command again. `ats watch` replaces polling, a list single reads.',
    'Wait for retryAfterSeconds. wait_for_event replaces polling, a list single reads.',
  ),
  REGISTRATION_IN_FLIGHT: FIND_OUTCOME,
  SLIPPAGE_ABOVE_LIMIT: both('Pass --max-slippage-bps within the limit.', 'Pass a maxSlippageBps within the limit.'),
  SLIPPAGE_EXCEEDED: both(
    'Trade a smaller amount, or pass a larger --max-slippage-bps.',
    'Trade a smaller amount, or pass a larger maxSlippageBps.',
  ),
  PRICE_UNSETTLED: WAIT_FOR_PRICE,
  STALE_PRICE: WAIT_FOR_PRICE,
  STOP_ABOVE_PRICE: both(
    'Pass a price below the present one. To sell at a higher price, place a take-profit order; to sell now, run `ats close`.',
    'Pass a price below the present one. To sell at a higher price, place an order of type takeProfit; to sell now, call `close`.',
  ),
  STOP_WITHIN_COSTS: both(
    'Pass a --stop at that limit or beyond: it is percent, while triggers of --exits are basis points. To leave a position now, run `ats reduce` or `ats close`.',
    'Pass a stopLossPercent at that limit or beyond: it is percent, while triggerBps are basis points. To leave a position now, call close.',
  ),
  SUBMISSION_FAILED: FIND_OUTCOME,
  SUBMISSION_REVERTED: RUN_AGAIN,
  SUBMISSION_UNKNOWN: FIND_OUTCOME,
  TOKEN_NOT_ALLOWED: both(
    '`ats vault-tokens <vault>` lists the tokens that the agent may trade.',
    'svc_list_vault_tokens lists the tokens that the agent may trade.',
  ),
  TOKEN_NOT_QUOTED: WAIT_FOR_PRICE,
  TOO_MANY_OPEN_ORDERS: both(
    'Cancel one with `ats order cancel`, or replace one by its --order-key.',
    'Cancel one with cancel_order, or replace one by its key.',
  ),
  TOO_MANY_POINTS: both(
    'Request a shorter range, or pass --interval 1d.',
    'Request a shorter range, page by page, or interval "1d".',
  ),
  TOO_MANY_REVERTS: both(
    'Every revert costs gas: wait that long, then trade only what passes the checks of a dry run.',
    'Every revert costs gas: wait for retryAfterSeconds, then trade only what passes its checks.',
  ),
  TOO_MANY_STREAMS: TRY_AGAIN,
  TOO_MANY_STREAMS_OF_CLIENT: both('Close some of them.'),
  TRIGGER_NOT_MET: RUN_AGAIN,
  UNAUTHORIZED: OPERATOR_ONLY,
  UNKNOWN_PATH: OTHER_SERVICE,
  UNSUPPORTED_CONTENT_ENCODING: CHANGED_ON_THE_WAY,
  UNSUPPORTED_CONTENT_TYPE: CHANGED_ON_THE_WAY,
  VAULT_MISMATCH: RUN_AGAIN,
  VAULT_NOT_REGISTERED: both('`ats vaults` lists the vaults.', 'svc_list_vaults lists the vaults.'),
  WEBHOOKS_FULL: both(
    'Use `ats watch`. The operator can free places with `ats admin webhooks`.',
    'Use wait_for_event. The operator can free places.',
  ),
  WEBHOOKS_UNAVAILABLE: TRY_AGAIN,
  WEBHOOK_DEADLINE_TOO_FAR: RUN_AGAIN,
  WEBHOOK_NOT_FOUND: both('Only the owner sees and changes the webhooks that the owner created.'),
}

/** What there is in place of the endpoints that are not reads. */
const endpoints: Record<string, Remedies> = {
  'POST /agents/register': both('ats register', 'register'),
  'POST /agents/{agentId}/trade-intents': both('ats open', 'trade'),
  'POST /agents/{agentId}/add-intents': both('ats add', 'trade'),
  'POST /agents/{agentId}/reduce-intents': both('ats reduce', 'close'),
  'POST /agents/{agentId}/exit-ladder-intents': both('ats ladder', 'set_ladder'),
  'POST /agents/{agentId}/orders': both('ats order', 'place_order'),
  'POST /agents/{agentId}/orders/{orderId}/cancel': both('ats order cancel', 'cancel_order'),
  'GET /agents/{agentId}/orders/{orderId}': both('ats order show', 'svc_list_orders'),
  'POST /agents/{agentId}/stop': both('ats stop', 'stop'),
  'GET /events': both('ats watch', 'wait_for_event'),
  'GET /agents/{agentId}/events': both('ats watch', 'wait_for_event'),
}
const reads = new Map(
  Object.entries(readDescriptions).map(([id, { path, tool }]) => [
    `GET ${path}`,
    both(`ats ${readCommandName(id as ReadId)}`, tool ?? `GET ${path}`),
  ]),
)

/** Returns a remedy of the service for a person and for a model. */
export function serviceRemedy(code: string | undefined, remedy: string | undefined): Remedy | undefined {
  if (code !== undefined && Object.hasOwn(remedies, code)) return remedies[code]
  if (remedy === undefined) return undefined
  return both(inWordsOf('command', remedy), inWordsOf('tool', remedy))
}

/** Returns a text with commands or tools in place of endpoints. */
function inWordsOf(caller: keyof Remedies, text: string): string {
  return text.replace(/\b(?:GET|POST|PUT) \/[\w/{}-]*/g, endpoint => {
    const named = (endpoints[endpoint] ?? reads.get(endpoint))?.[caller]
    return named === undefined ? endpoint : `\`${named}\``
  })
}
