/**
 * Every refusal the service itself knows. The key is the stable `code` of the wire; the row says the HTTP status, the
 * sentence for the caller (from the facts) and, where there is one, the remedy. What a contract refuses is mapped in
 * chain/reverts.ts.
 */
type Row = {
  status: number
  sentence: (facts: Facts) => string
  remedy?: string
  retryable?: boolean
  retryAfterSeconds?: number
}
/** Facts of a refusal as they go to the wire: limits, what was given, what was expected. */
export type Facts = Record<string, unknown>

const rows = {
  INVALID_REQUEST: {
    status: 400,
    sentence: f => `The request is not valid: ${f.problem}.`,
    remedy: 'Compare the request with /docs/swagger.json and send it again.',
  },
  MALFORMED_JSON: {
    status: 400,
    sentence: () => 'The request body is not well-formed JSON.',
    remedy: 'Send one JSON object with Content-Type: application/json.',
  },
  UNSUPPORTED_CONTENT_TYPE: {
    status: 400,
    sentence: () => 'The request body must be JSON.',
    remedy: 'Send the header Content-Type: application/json.',
  },
  BODY_TOO_LARGE: {
    status: 413,
    sentence: f => `The request body is larger than ${f.limitBytes} bytes.`,
    remedy: 'Send only the fields that the operation names.',
  },
  UNKNOWN_PATH: {
    status: 404,
    sentence: f => `There is nothing at ${f.path}.`,
    remedy: 'GET / lists every endpoint.',
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    sentence: f => `${f.method} is not allowed here.`,
    remedy: 'The Allow header names the methods of this path.',
  },
  TOO_MANY_POINTS: {
    status: 400,
    sentence: f =>
      `The range from ${f.from} to ${f.to} has ${f.points} intervals of ${f.interval}; an answer has at most ${f.limit}.`,
    remedy: 'Ask for a shorter range, page by page, or with interval=1d.',
  },
  INVALID_AMOUNT: {
    status: 400,
    sentence: f => `${f.field} ${f.given} is not an amount: ${f.problem}.`,
    remedy: 'Send a positive decimal string with at most as many decimals as the asset has; nothing is rounded.',
  },
  INVALID_EXIT_RULES: {
    status: 400,
    sentence: f => `The exit ladder is not valid: ${f.problem}.`,
    remedy:
      'Send 1 to 5 rules; stop-losses (negative triggerBps) each deeper than the one before, take-profits (positive) each higher, the last rule with exitBps 10000.',
  },
  EXPIRED_DEADLINE: {
    status: 400,
    sentence: f => `The deadline ${f.given} has passed; the chain's time is ${f.serverTime}.`,
    remedy: 'Fetch a fresh quote, sign its suggestedDeadline and send the intent again.',
  },
  DEADLINE_IN_MILLISECONDS: {
    status: 400,
    sentence: f => `The deadline ${f.given} is in milliseconds.`,
    remedy: 'Deadlines are Unix seconds: divide by 1000, sign again and resend.',
  },
  INVALID_NONCE: {
    status: 400,
    sentence: f => `The nonce ${f.given} is not the agent's next nonce ${f.expected}.`,
    remedy: 'Fetch a fresh quote, sign its nonce and send the intent again.',
  },
  INVALID_SIGNATURE: {
    status: 400,
    sentence: f => `The signature is not the signer's: ${f.problem}.`,
    remedy: "Sign the quote's typedData with the agent's signer key (eth_signTypedData_v4) and send the same values.",
  },
  UNKNOWN_SYMBOL: {
    status: 400,
    sentence: f => `No token with the symbol ${f.symbol} is known here.`,
    remedy: 'GET /tokens lists the symbols.',
  },
  TOKEN_NOT_ALLOWED: {
    status: 400,
    sentence: f => `${f.symbol} may not be traded in this agent's vault.`,
    remedy: "The quote's allowedSymbols lists what the vault allows.",
  },
  VAULT_NOT_REGISTERED: {
    status: 400,
    sentence: f => `${f.vault} is not a registered vault.`,
    remedy: 'GET /vaults lists the vaults; send the contractAddress of one.',
  },
  INVALID_ERC8004_LINK: {
    status: 400,
    sentence: f => `The identity link is not valid: ${f.problem}.`,
    remedy: 'Send linkERC8004 true with the id of a token that the signer holds, or false with erc8004AgentId "0".',
  },
  AGENT_NOT_FOUND: {
    status: 404,
    sentence: f => `There is no agent ${f.agentId}.`,
    remedy: 'Agent ids come from POST /agents/register and GET /agents/by-owner/{owner}.',
  },
  NO_AGENT_FOR_ERC8004: {
    status: 404,
    sentence: f => `No agent is linked to the ERC-8004 token ${f.erc8004AgentId}.`,
    remedy: 'POST /agents/{agentId}/erc8004/link links one.',
  },
  VAULT_NOT_FOUND: {
    status: 404,
    sentence: f => `There is no vault ${f.id}.`,
    remedy: 'GET /vaults lists the vaults; an id is a slug or a contract address.',
  },
  POSITION_NOT_FOUND: {
    status: 404,
    sentence: f => `Agent ${f.agentId} has no position ${f.positionId}.`,
    remedy: "GET /agents/{agentId}/positions lists the agent's open positions.",
  },
  POSITION_NOT_OPEN: {
    status: 400,
    sentence: f => `Position ${f.positionId} is closed.`,
    remedy: 'Only an open position can be changed; open a new one.',
  },
  TRANSACTION_NOT_FOUND: {
    status: 404,
    sentence: f => `The chain knows no transaction ${f.txHash}.`,
    remedy: 'If it was sent just now, ask again in a second; a refused intent has no transaction.',
  },
  INTENT_NOT_FOUND: {
    status: 404,
    sentence: f => `No intent with the digest ${f.digest} is known here.`,
    remedy:
      'It was never taken: send the signed body. Or it was forgotten a day after its deadline: GET /agents/{agentId}/trades shows what was executed.',
  },
  NONCE_IN_FLIGHT: {
    status: 400,
    sentence: f => `Another intent of agent ${f.agentId} with the nonce ${f.nonce} is being executed.`,
    remedy: 'Wait for that intent (GET /intents/{digest} shows it), then fetch a fresh quote.',
  },
  INTENT_REFUSED: {
    status: 400,
    sentence: f => `The chain refused the call: ${f.problem}.`,
    remedy: 'Nothing was executed. Fetch a fresh quote and compare its checks.',
  },
  SUBMISSION_REVERTED: {
    status: 400,
    sentence: f => `The transaction ${f.transactionHash} was mined and reverted: ${f.problem}.`,
    remedy: 'Nothing was traded. The market or the limits moved since the check: fetch a fresh quote.',
  },
  SUBMISSION_UNKNOWN: {
    status: 502,
    sentence: () => 'The transaction was handed to the chain and its outcome is not known yet.',
    remedy:
      'Send the identical signed body again: it is never executed twice, and the answer is the outcome. GET /intents/{digest} shows it too.',
    retryable: true,
    retryAfterSeconds: 2,
  },
  SUBMISSION_FAILED: {
    status: 502,
    sentence: () => 'The chain did not take the transaction; nothing was executed.',
    remedy: 'Send the identical signed body again; until one is taken GET /intents/{digest} is 404.',
    retryable: true,
    retryAfterSeconds: 2,
  },
  EXECUTOR_BUSY: {
    status: 503,
    sentence: () => 'The executor has as much in flight as it may; the intent was not taken.',
    remedy:
      'Send the identical signed body again after the given time; until one is taken GET /intents/{digest} is 404.',
    retryable: true,
    retryAfterSeconds: 1,
  },
  TOO_MANY_REVERTS: {
    status: 503,
    sentence: () => "The signer's last transactions were mined and reverted; its next one has to wait.",
    remedy: 'Every revert costs gas: fetch a fresh quote after the given time and send only what passes its checks.',
    retryable: true,
    retryAfterSeconds: 60,
  },
  EXECUTOR_UNREACHABLE: {
    status: 502,
    sentence: () => 'What the executor remembers cannot be read at present.',
    remedy: 'Ask again in a moment.',
    retryable: true,
    retryAfterSeconds: 2,
  },
  EXECUTOR_OUT_OF_FUNDS: {
    status: 503,
    sentence: () => 'The executor account cannot pay for gas; the intent was not taken.',
    remedy:
      'The operator must fund the executor account. Send the identical signed body again later; until one is taken GET /intents/{digest} is 404.',
    retryable: true,
    retryAfterSeconds: 60,
  },
  EXECUTOR_PAUSED: {
    status: 503,
    sentence: () => 'The executor account is used by somebody else too; the intent was not taken.',
    remedy: 'The operator must replace the key. Send the identical signed body again later.',
    retryable: true,
    retryAfterSeconds: 60,
  },
  PAYMENT_REQUIRED: {
    status: 402,
    sentence: () => 'The registration fee must be paid.',
    remedy:
      'Pay what `accepts` asks (x402) and send the identical body again with the payment in PAYMENT-SIGNATURE; over MCP in _meta["x402/payment"].',
  },
  PAYMENT_REFUSED: {
    status: 402,
    sentence: f => `The payment was not accepted: ${f.problem}.`,
    remedy: 'Nothing was charged. Sign exactly what `accepts` asks and send the identical body again.',
  },
  PAYMENT_ALREADY_USED: {
    status: 402,
    sentence: () => 'The payment belongs to another registration.',
    remedy: 'Nothing was charged again. Sign a new payment for this registration.',
  },
  INVALID_PAYMENT: {
    status: 400,
    sentence: f => `The payment cannot be read: ${f.problem}.`,
    remedy:
      'Send the x402 payload (version 2 or 1) as base64 of JSON; an EIP-3009 authorization of the scheme `exact`.',
  },
  PAYMENT_PENDING: {
    status: 502,
    sentence: () => 'The payment was handed over and its settlement is not known yet.',
    remedy: 'Send the identical body again, with or without the payment: nothing is charged twice.',
    retryable: true,
    retryAfterSeconds: 2,
  },
  FACILITATOR_UNAVAILABLE: {
    status: 502,
    sentence: () => 'The payment cannot be verified or settled at present; nothing was charged.',
    remedy: 'Send the identical body with the same payment again.',
    retryable: true,
    retryAfterSeconds: 2,
  },
  REGISTRATION_IN_FLIGHT: {
    status: 409,
    sentence: () => 'Another registration of this signer is under way with the fee that was paid.',
    remedy: 'Wait for its answer, then send this one again.',
    retryable: true,
    retryAfterSeconds: 2,
  },
  PAYMENT_NOT_CONFIGURED: {
    status: 503,
    sentence: () => 'The registration fee is to be paid over x402, which this deployment is not configured for.',
    remedy: 'The operator must correct the X402 variables.',
  },
  CHAIN_UNREACHABLE: {
    status: 502,
    sentence: () => 'The chain cannot be reached.',
    remedy: 'Try again in a moment.',
    retryable: true,
    retryAfterSeconds: 2,
  },
  HISTORY_UNAVAILABLE: {
    status: 503,
    sentence: () => 'The history is not indexed yet, or its database cannot be reached.',
    remedy: 'Try again in a moment; `history` of /health/ready shows how far the index is.',
    retryable: true,
    retryAfterSeconds: 2,
  },
  EVENT_ID_UNKNOWN: {
    status: 400,
    sentence: f => `No stream can go on from the event ${f.lastEventId}.`,
    remedy:
      'It is too old, or of another deployment. Open the stream without it, and read what happened meanwhile from GET /agents/{agentId}/trades.',
  },
  TOO_MANY_STREAMS: {
    status: 503,
    sentence: () => 'As many event streams are open as this deployment holds.',
    remedy: 'Try again in a moment; one stream of GET /events can stand for many of single agents.',
    retryable: true,
    retryAfterSeconds: 5,
  },
  CHAIN_NOT_CONFIGURED: {
    status: 500,
    sentence: () => 'This deployment has no chain configuration.',
    remedy: 'The operator must set CHAIN_ID, RPC_URL and CONTRACTS.',
  },
  TRADING_NOT_CONFIGURED: {
    status: 503,
    sentence: () => 'This deployment has no trade router configured.',
    remedy: 'The operator must name TradeRouter, PositionManager and their companions in CONTRACTS.',
  },
  EXECUTOR_NOT_CONFIGURED: {
    status: 503,
    sentence: () => 'This deployment has no executor account.',
    remedy: 'The operator must set EXECUTOR_PRIVATE_KEY.',
  },
  RELAYER_NOT_CONFIGURED: {
    status: 503,
    sentence: () => 'This deployment has no relayer account for registrations.',
    remedy: 'The operator must set RELAYER_PRIVATE_KEY; a signer can also call selfRegisterAgent directly.',
  },
  PRICE_UPDATER_NOT_CONFIGURED: {
    status: 503,
    sentence: () => 'This deployment has no account that may post prices.',
    remedy: 'The operator must set ORACLE_UPDATER_PRIVATE_KEY.',
  },
  PRICE_PROVIDER_NOT_CONFIGURED: {
    status: 503,
    sentence: () => 'This deployment has no market-data provider.',
    remedy: 'The operator must set PRICE_PROVIDER; prices are then posted by others only.',
  },
  PRICE_PROVIDER_FAILED: {
    status: 502,
    sentence: f => `The market-data provider ${f.provider} gave no usable price: ${f.problem}.`,
    remedy: 'No price was changed. Try again in a moment.',
    retryable: true,
    retryAfterSeconds: 10,
  },
  UNAUTHORIZED: {
    status: 401,
    sentence: () => 'The refresh secret is missing or wrong.',
    remedy: 'Send the header Authorization: Bearer <REFRESH_SECRET>.',
  },
  NOT_READY: {
    status: 503,
    sentence: f => `Trading is not possible: ${f.problem}.`,
    remedy: 'details names what was looked at; reads may still work.',
    retryable: true,
    retryAfterSeconds: 10,
  },
  REGISTRATION_PAUSED: {
    status: 503,
    sentence: () => 'The agent registry is paused: registrations and new risk are refused.',
    remedy: 'Reducing and closing positions still works; try again when the operator has unpaused it.',
    retryable: true,
  },
  INTERNAL: {
    status: 500,
    sentence: () => 'The service failed unexpectedly.',
    remedy: 'Report the requestId to the operator.',
  },
} satisfies Record<string, Row>

export type RefusalCode = keyof typeof rows

/** The wire form of a refusal, the same over HTTP and MCP, without the request id that the surface adds. */
export type RefusalBody = {
  error: string
  code: string
  details?: Facts
  remedy?: string
  retryable?: boolean
  retryAfterSeconds?: number
}

/** What x402 says beside an answer: what is to be paid (PaymentRequired), what was paid (SettleResponse). */
export type PaymentAnswer = { required?: object; response?: object }

/** A refusal on its way to the caller: status and body; `cause` is for the log alone. */
export class Refusal extends Error {
  readonly status: number
  readonly body: RefusalBody
  payment: PaymentAnswer | undefined
  constructor(status: number, body: RefusalBody, cause?: unknown) {
    super(body.error, { cause })
    this.name = 'Refusal'
    this.status = status
    this.body = body
  }
}

/**
 * Logs a refusal that is not the caller's fault. Of a cause only its class and its stack frames are logged: its message
 * can carry RPC URLs, and with them keys.
 */
export function logRefusal({ status, body, cause }: Refusal, at: { requestId: string; path: string }): void {
  const failure = cause instanceof Error && { cause: cause.name, frames: framesOf(cause) }
  console.error(JSON.stringify({ level: 'error', ...at, status, code: body.code, ...failure }))
}

const framesOf = ({ stack = '' }: Error) =>
  stack
    .split('\n')
    .filter(line => /^\s+at /.test(line))
    .slice(0, 8)

/** Makes the refusal of a code from its facts; the facts also go out as `details`, `retryAfterSeconds` as the body's own. */
export function refuse(
  code: RefusalCode,
  { retryAfterSeconds, ...facts }: Facts & { retryAfterSeconds?: number } = {},
  cause?: unknown,
): Refusal {
  const row: Row = rows[code]
  const wait = retryAfterSeconds ?? row.retryAfterSeconds
  return new Refusal(
    row.status,
    {
      error: row.sentence(facts),
      code,
      ...(Object.keys(facts).length > 0 && { details: facts }),
      ...(row.remedy !== undefined && { remedy: row.remedy }),
      ...(row.retryable !== undefined && { retryable: row.retryable }),
      ...(wait !== undefined && { retryAfterSeconds: wait }),
    },
    cause,
  )
}

/** Every code with its status and remedy, for OpenAPI and `svc://errors`. */
export const refusalCodes = Object.entries(rows as Record<string, Row>).map(([code, { status, remedy }]) => ({
  code,
  status,
  ...(remedy !== undefined && { remedy }),
}))
