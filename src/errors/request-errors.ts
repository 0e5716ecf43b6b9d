import { didYouMean } from '@agent-trading-service/protocol/nearest-name'
import type { Address, Hex } from 'viem'
import { row } from './refusal.ts'

/** What is wrong with one field: what came, and an example of what would pass. */
type InputProblem = { path: string; problem: string; given?: string; example?: unknown }

/** Requests that are malformed, or that name something that does not exist. */
export const requestErrors = {
  INVALID_REQUEST: row<{ problem: string; problems: readonly InputProblem[] }>({
    sentence: ({ problem }) => `The request is invalid: ${problem}${problem.endsWith('?') ? '' : '.'}`,
    remedy: 'Correct what `problems` names and send it again; /docs/swagger.json has every field.',
    toolRemedy: 'Correct what `problems` names and call the tool again; its input schema has every field.',
  }),
  MIN_BLOCK_AHEAD: row<{ minBlock: bigint; newestBlock: bigint }>({
    sentence: ({ minBlock, newestBlock }) =>
      `Min-Block is ${minBlock}, but the chain's newest block is ${newestBlock}.`,
    remedy: 'Send the X-As-Of-Block of an earlier response of this deployment, or leave Min-Block out.',
  }),
  MALFORMED_JSON: row({
    sentence: () => 'The request body is not well-formed JSON.',
    remedy: 'Send one JSON object with Content-Type: application/json.',
  }),
  UNSUPPORTED_CONTENT_TYPE: row({
    sentence: () => 'The request body is not declared as JSON.',
    remedy: 'Send the header Content-Type: application/json.',
  }),
  UNSUPPORTED_CONTENT_ENCODING: row<{ encoding: string }>({
    status: 415,
    sentence: ({ encoding }) => `The request body has the content encoding ${encoding}; bodies are not decoded.`,
    remedy: 'Send the body as plain JSON, without the header Content-Encoding.',
  }),
  BODY_TOO_LARGE: row<{ limitBytes: number }>({
    status: 413,
    sentence: ({ limitBytes }) => `The request body is larger than ${limitBytes} bytes.`,
    remedy: 'Send only the fields that the operation defines.',
  }),
  BODY_TOO_SLOW: row<{ limitSeconds: number }>({
    status: 408,
    sentence: ({ limitSeconds }) => `The request body did not arrive within ${limitSeconds} seconds.`,
    remedy: 'Nothing was done. Send the whole body at once, over a faster connection if this happens again.',
    retryable: true,
  }),
  RATE_LIMITED: row<{ limit: string; requests: number; seconds: number }>({
    status: 429,
    sentence: ({ limit, requests, seconds }) =>
      limit === 'parallel'
        ? `Your address has had ${requests} requests or more under way for ${seconds} seconds (limit \`parallel\`).`
        : `${limit === 'signer' ? 'The signer' : 'Your address'} has made more than ${requests} requests in ${seconds} seconds (limit \`${limit}\`).`,
    remedy: 'Wait for retryAfterSeconds. One stream of GET /events replaces polling, and a list replaces single reads.',
    toolRemedy: 'Wait for retryAfterSeconds. A subscription to a resource replaces polling, a list single reads.',
    retryAfterSeconds: 60,
  }),
  UNKNOWN_PATH: row<{ path: string }>({
    status: 404,
    sentence: ({ path }) => `There is no endpoint at ${path}.`,
    remedy: 'GET / lists every endpoint.',
    toolRemedy: 'Call a tool that tools/list names.',
  }),
  METHOD_NOT_ALLOWED: row<{ method: string; allowed: readonly string[] }>({
    status: 405,
    sentence: ({ method, allowed }) => `The method ${method} is not allowed here; allowed: ${allowed.join(', ')}.`,
    remedy: 'Use a method that the Allow header lists.',
  }),
  UNAUTHORIZED: row({
    status: 401,
    sentence: () => 'The refresh secret is missing or wrong.',
    remedy: 'Send the header Authorization: Bearer <PRICE_REFRESH_SECRET>.',
  }),
  OPERATOR_ONLY: row({
    status: 401,
    sentence: () => "The operator's secret is missing or wrong.",
    remedy: 'Send the header Authorization: Bearer <OPERATOR_SECRET>.',
  }),
  LANE_NOT_FOUND: row<{ address: Address }>({
    status: 404,
    sentence: ({ address }) => `The deployment has no key of ${address}, so it has no lane of that account.`,
    remedy: 'Name one of the accounts with lanes, which the readiness lists.',
  }),
  TOO_MANY_POINTS: row<{ from: number; to: number; interval: string; points: number; limit: number }>({
    sentence: ({ from, to, interval, points, limit }) =>
      `The range from ${from} to ${to} has ${points} intervals of ${interval}; a response holds at most ${limit}.`,
    remedy: 'Request a shorter range, page by page, or use interval=1d.',
  }),
  INVALID_AMOUNT: row<{ field: string; given: string; problem: string }>({
    sentence: ({ field, given, problem }) => `${field} ${given} is not a valid amount: ${problem}.`,
    remedy: 'Send a positive decimal string with at most as many decimals as the asset has; amounts are not rounded.',
  }),
  UNKNOWN_SYMBOL: row<{ symbol: string; nearest?: string | undefined }>({
    sentence: ({ symbol, nearest }) => `There is no token with the symbol ${symbol}.${didYouMean(nearest)}`,
    remedy: 'GET /tokens lists the symbols.',
  }),
  AGENT_NOT_FOUND: row<{ agentId: bigint }>({
    status: 404,
    sentence: ({ agentId }) => `There is no agent ${agentId}.`,
    remedy: 'Use an agent id from POST /agents/register or GET /agents/by-owner/{owner}.',
  }),
  FEEDBACK_NOT_FOUND: row<{ agentId: bigint; weekStart: number }>({
    status: 404,
    sentence: ({ agentId, weekStart }) => `There is no feedback about agent ${agentId} for the week from ${weekStart}.`,
    remedy: 'Files exist for weeks that ended, of agents with real capital and a linked ERC-8004 identity.',
  }),
  NO_AGENT_FOR_ERC8004: row<{ erc8004AgentId: bigint }>({
    status: 404,
    sentence: ({ erc8004AgentId }) => `No agent is linked to the ERC-8004 token ${erc8004AgentId}.`,
    remedy: 'POST /agents/{agentId}/erc8004/link links an agent to it.',
  }),
  VAULT_NOT_FOUND: row<{ id: string; nearest?: string | undefined }>({
    status: 404,
    sentence: ({ id, nearest }) => `There is no vault ${id}.${didYouMean(nearest)}`,
    remedy: 'GET /vaults lists the vaults; an id is a slug or a contract address.',
  }),
  TRANSACTION_NOT_FOUND: row<{ txHash: Hex }>({
    status: 404,
    sentence: ({ txHash }) => `The chain has no transaction ${txHash}.`,
    remedy: 'If it was sent just now, query again in a second; a rejected intent has no transaction.',
  }),
  INTENT_NOT_FOUND: row<{ digest: Hex }>({
    status: 404,
    sentence: ({ digest }) => `There is no intent with the digest ${digest}.`,
    remedy:
      'If it was never accepted, send the signed body. Rejected intents are deleted after an hour, others a day after their deadline: GET /agents/{agentId}/trades shows what was executed.',
  }),
  EVENT_ID_UNKNOWN: row<{ lastEventId: string | undefined }>({
    sentence: ({ lastEventId }) => `A stream cannot resume after the event ${lastEventId}.`,
    remedy:
      'The event is too old or from another deployment. Open the stream without it, and read what you missed from GET /agents/{agentId}/trades.',
  }),
}
