import type { Address, Hex } from 'viem'
import { row } from './refusal.ts'

const CHECK_MANDATE = "Stay within the agent's mandate, or have its owner sign a wider one"

/** What the owner of an agent does not allow, and messages of owners that are refused. Amounts are USDC base units. */
export const mandateErrors = {
  MANDATE_STOPS_BUYING: row<{ agentId: bigint; mode: bigint; validUntil: bigint }>({
    sentence: ({ agentId, mode, validUntil }) =>
      mode === 0n
        ? `The mandate of agent ${agentId} ended at ${validUntil}, so the agent cannot buy.`
        : `The owner of agent ${agentId} lets it ${mode === 1n ? 'only reduce positions' : 'buy nothing'}.`,
    remedy: 'Reducing and exits still work; the owner signs a new mandate to let the agent buy again.',
  }),
  MANDATE_FORBIDS_LOOSER_LADDER: row<{ positionId: bigint }>({
    sentence: ({ positionId }) =>
      `The owner stopped the agent: the new stop-losses of position ${positionId} protect less than the present ones.`,
    remedy: 'Sign stop-losses that sell as much at the same price or earlier.',
  }),
  TOKEN_OUTSIDE_MANDATE: row<{ agentId: bigint; token: Address }>({
    sentence: ({ agentId, token }) => `The mandate of agent ${agentId} does not include the token ${token}.`,
    remedy: `${CHECK_MANDATE}.`,
  }),
  EXCEEDS_MANDATE_TRADE: row<{ agentId: bigint; tradeSize: bigint; max: bigint }>({
    sentence: ({ agentId, tradeSize, max }) =>
      `The trade has ${tradeSize} USDC base units; the mandate of agent ${agentId} allows ${max} per trade.`,
    remedy: `${CHECK_MANDATE}.`,
  }),
  EXCEEDS_MANDATE_TURNOVER: row<{ agentId: bigint; turnover: bigint; max: bigint }>({
    sentence: ({ agentId, turnover, max }) =>
      `The day's turnover of agent ${agentId} would be ${turnover} USDC base units; its mandate allows ${max}.`,
    remedy: `${CHECK_MANDATE}, or wait for the next UTC day.`,
  }),
  EXCEEDS_MANDATE_EXPOSURE: row<{ agentId: bigint; exposure: bigint; max: bigint }>({
    sentence: ({ agentId, exposure, max }) =>
      `The positions of agent ${agentId} would cost ${exposure} USDC base units; its mandate allows ${max}.`,
    remedy: `${CHECK_MANDATE}, or reduce a position first.`,
  }),
  MANDATE_NOT_FOUND: row<{ agentId: bigint }>({
    sentence: ({ agentId }) => `The limits of the mandate of agent ${agentId} are not known to the present contract.`,
    remedy: 'The owner signs the mandate again; reducing and exits still work.',
  }),
  MANDATE_OUT_OF_RANGE: row<{ field: bigint; value: bigint; max: bigint }>({
    sentence: ({ field, value, max }) => `Field ${field} of the mandate is ${value}; the maximum is ${max}.`,
    remedy: 'Sign a mandate with a smaller value.',
  }),
  NO_AGENTS: row({
    sentence: () => 'The list of agents is empty.',
    remedy: 'Sign a message for at least one agent.',
  }),
  MESSAGE_ALREADY_USED: row<{ digest: Hex }>({
    sentence: ({ digest }) => `The message ${digest} has taken effect before.`,
    remedy: 'Fetch a fresh quote and sign it, if the agents are to be stopped again.',
  }),
  NO_OWNERSHIP_OFFER: row<{ agentId: bigint }>({
    sentence: ({ agentId }) => `The owner of agent ${agentId} offers it to nobody.`,
    remedy: 'The owner signs an offer first.',
  }),
  INVALID_CANCELLATION: row<{ agentId: bigint; nextNonce: bigint; untilNonce: bigint }>({
    sentence: ({ agentId, nextNonce, untilNonce }) =>
      `The next nonce of agent ${agentId} is ${nextNonce}; its intents cannot be cancelled up to nonce ${untilNonce}.`,
    remedy: 'Sign an untilNonce above the next nonce, by at most 64.',
  }),
  FIRST_LOSS_BOUND: row<{ agentId: bigint; locked: bigint; shares: bigint }>({
    sentence: ({ agentId, locked, shares }) =>
      `${locked} vault shares answer for the losses of agent ${agentId}; they cannot be reduced to ${shares} while it has real capital.`,
    remedy: 'Lock at least as many shares. Or close its positions, then lock 0, which gives its allocation back.',
  }),
  INSUFFICIENT_SHARES: row<{ owner: Address; available: bigint; shares: bigint }>({
    sentence: ({ owner, available, shares }) =>
      `The owner ${owner} has ${available} vault shares that answer for no agent; ${shares} more are needed.`,
    remedy: 'Deposit into the vault first, or lock fewer shares.',
  }),
  OWNER_CONTROLS_NOT_SET: row({
    status: 503,
    sentence: () => 'The contracts of this deployment lack OwnerControls, which verifies messages of owners.',
    remedy: 'The owner calls the agent registry directly; register agents without an owner.',
  }),
  ONLY_OWNER_CONTROLS: row<{ caller: Address }>({
    sentence: ({ caller }) => `Only the contract for messages of owners may call this, not ${caller}.`,
    remedy: 'Sign a message as the owner of the agent.',
  }),
  OWNER_IS_SIGNER: row<{ owner: Address }>({
    sentence: ({ owner }) => `The owner ${owner} is also the signer.`,
    remedy: 'Name another owner, or register without one: the signer then owns the agent.',
  }),
}

/** Webhooks that cannot be created, found or reached. */
export const webhookErrors = {
  WEBHOOK_URL_REFUSED: row<{ url: string; problem: string }>({
    sentence: ({ url, problem }) => `Events cannot be posted to ${url}: ${problem}.`,
    remedy: 'Use an https URL on port 443 whose host has public addresses only.',
  }),
  WEBHOOK_NOT_FOUND: row<{ agentId: bigint; webhookId: Hex }>({
    status: 404,
    sentence: ({ agentId, webhookId }) => `Agent ${agentId} has no webhook ${webhookId} that the signer may see.`,
    remedy:
      'POST /agents/{agentId}/webhooks/list lists the webhooks; only the owner sees and changes those that the owner created.',
  }),
  WEBHOOK_DEADLINE_TOO_FAR: row<{ deadline: bigint; latestDeadline: bigint }>({
    sentence: ({ deadline, latestDeadline }) =>
      `The deadline is ${deadline}; messages about webhooks may be valid until ${latestDeadline} at most.`,
    remedy: "Sign the quote's suggestedDeadline.",
  }),
  TOO_MANY_WEBHOOKS: row<{ agentId: bigint; max: number; party: 'owner' | 'signer' }>({
    status: 409,
    sentence: ({ agentId, max, party }) => `The ${party} of agent ${agentId} has ${max} webhooks for it, the maximum.`,
    remedy: 'Delete one of them first; one webhook can have all event types.',
  }),
  TOO_MANY_WEBHOOK_MESSAGES: row<{ agentId: bigint }>({
    status: 429,
    sentence: ({ agentId }) =>
      `The account that signed this sent too many messages about the webhooks of agent ${agentId}, or too many tests.`,
    remedy: 'Sign again after retryAfterSeconds.',
    retryAfterSeconds: 60,
  }),
  WEBHOOKS_FULL: row({
    status: 503,
    sentence: () => 'This deployment has the maximum number of webhooks, and you have one that is active.',
    remedy:
      'Use that one, or an event stream. The operator can raise MAX_WEBHOOKS, or free places with `ats admin webhooks`.',
    level: 'warn',
  }),
  WEBHOOKS_NOT_CONFIGURED: row({
    status: 503,
    sentence: () => 'This deployment delivers no webhooks.',
    remedy: 'Use an event stream: GET /agents/{agentId}/events.',
    toolRemedy: 'Subscribe to a resource instead.',
    level: 'warn',
  }),
  WEBHOOKS_UNAVAILABLE: row({
    status: 503,
    sentence: () => 'The webhooks, or the resolver that checks their hosts, cannot be reached.',
    remedy: 'Try again in a moment; the identical body is executed at most once.',
    retryAfterSeconds: 2,
  }),
}
