import type { Address } from 'viem'
import { row } from './error-row.ts'

const CHECK_MANDATE = "Stay within the agent's mandate, or have its owner sign a wider one"

/** What the owner of an agent does not allow, and messages of owners that are refused. Amounts are USDC base units. */
export const mandateErrors = {
  MANDATE_STOPS_BUYING: row<{ agentId: bigint; mode: bigint; validUntil: bigint }>({
    status: 400,
    sentence: ({ agentId, mode, validUntil }) =>
      mode === 0n
        ? `The mandate of agent ${agentId} ended at ${validUntil}, so the agent cannot buy.`
        : `The owner of agent ${agentId} lets it ${mode === 1n ? 'only reduce positions' : 'buy nothing'}.`,
    remedy: 'Reducing and exits still work; the owner signs a new mandate to let the agent buy again.',
  }),
  MANDATE_FORBIDS_LOOSER_LADDER: row<{ positionId: bigint }>({
    status: 400,
    sentence: ({ positionId }) =>
      `The owner stopped the agent: the new stop-losses of position ${positionId} protect less than the present ones.`,
    remedy: 'Sign stop-losses that sell as much at the same price or earlier.',
  }),
  TOKEN_OUTSIDE_MANDATE: row<{ agentId: bigint; token: Address }>({
    status: 400,
    sentence: ({ agentId, token }) => `The mandate of agent ${agentId} does not include the token ${token}.`,
    remedy: `${CHECK_MANDATE}.`,
  }),
  EXCEEDS_MANDATE_TRADE: row<{ agentId: bigint; tradeSize: bigint; max: bigint }>({
    status: 400,
    sentence: ({ agentId, tradeSize, max }) =>
      `The trade has ${tradeSize} USDC base units; the mandate of agent ${agentId} allows ${max} per trade.`,
    remedy: `${CHECK_MANDATE}.`,
  }),
  EXCEEDS_MANDATE_TURNOVER: row<{ agentId: bigint; turnover: bigint; max: bigint }>({
    status: 400,
    sentence: ({ agentId, turnover, max }) =>
      `The day's turnover of agent ${agentId} would be ${turnover} USDC base units; its mandate allows ${max}.`,
    remedy: `${CHECK_MANDATE}, or wait for the next UTC day.`,
  }),
  EXCEEDS_MANDATE_EXPOSURE: row<{ agentId: bigint; exposure: bigint; max: bigint }>({
    status: 400,
    sentence: ({ agentId, exposure, max }) =>
      `The positions of agent ${agentId} would cost ${exposure} USDC base units; its mandate allows ${max}.`,
    remedy: `${CHECK_MANDATE}, or reduce a position first.`,
  }),
  MANDATE_NOT_FOUND: row<{ agentId: bigint }>({
    status: 400,
    sentence: ({ agentId }) => `The limits of the mandate of agent ${agentId} are not known to the present contract.`,
    remedy: 'The owner signs the mandate again; reducing and exits still work.',
  }),
  MANDATE_OUT_OF_RANGE: row<{ field: bigint; value: bigint; max: bigint }>({
    status: 400,
    sentence: ({ field, value, max }) => `Field ${field} of the mandate is ${value}; the maximum is ${max}.`,
    remedy: 'Sign a mandate with a smaller value.',
  }),
  NO_AGENTS: row({
    status: 400,
    sentence: () => 'The list of agents is empty.',
    remedy: 'Sign a message for at least one agent.',
  }),
  NO_OWNERSHIP_OFFER: row<{ agentId: bigint }>({
    status: 400,
    sentence: ({ agentId }) => `The owner of agent ${agentId} offers it to nobody.`,
    remedy: 'The owner signs an offer first.',
  }),
  INVALID_CANCELLATION: row<{ agentId: bigint; nextNonce: bigint; untilNonce: bigint }>({
    status: 400,
    sentence: ({ agentId, nextNonce, untilNonce }) =>
      `The next nonce of agent ${agentId} is ${nextNonce}; its intents cannot be cancelled up to nonce ${untilNonce}.`,
    remedy: 'Sign an untilNonce above the next nonce, by at most 64.',
  }),
  OWNER_CONTROLS_NOT_SET: row({
    status: 503,
    sentence: () => 'The contracts of this deployment lack OwnerControls, which verifies messages of owners.',
    remedy: 'The owner calls the agent registry directly; register agents without an owner.',
  }),
  ONLY_OWNER_CONTROLS: row<{ caller: Address }>({
    status: 400,
    sentence: ({ caller }) => `Only the contract for messages of owners may call this, not ${caller}.`,
    remedy: 'Sign a message as the owner of the agent.',
  }),
  OWNER_IS_SIGNER: row<{ owner: Address }>({
    status: 400,
    sentence: ({ owner }) => `The owner ${owner} is also the signer.`,
    remedy: 'Name another owner, or register without one: the signer then owns the agent.',
  }),
}
