import type { Address, Hex } from 'viem'
import { row } from './refusal.ts'

const FRESH_QUOTE = 'Fetch a fresh quote and compare its checks.'

/** A ladder's problem; `ruleIndex` names the rule, `given` and `limit` are its values. */
type LadderFacts = {
  problem: string
  ruleIndex?: number | undefined
  given?: bigint | undefined
  limit?: bigint | undefined
}
const ruleOf = ({ ruleIndex }: LadderFacts) => (ruleIndex === undefined ? '' : `rule ${ruleIndex}: `)
const valuesOf = ({ given, limit }: LadderFacts) =>
  (given === undefined ? '' : `; given ${given}`) + (limit === undefined ? '' : `, limit ${limit}`)

const LONG_ONLY =
  "GET /agents/{agentId}/positions lists the agent's open positions; they are long only, so nothing else can be sold."

/** Signed intents that do not match what the agent must sign, or the position they are about. */
export const intentErrors = {
  EXPIRED_DEADLINE: row<{ given: bigint | undefined; serverTime: bigint | undefined }>({
    sentence: ({ given, serverTime }) =>
      given === undefined || serverTime === undefined
        ? 'The deadline has passed.'
        : `The deadline ${given} has passed; the time is ${serverTime}.`,
    remedy: 'Fetch a fresh quote, sign its suggestedDeadline and send the intent again.',
  }),
  DEADLINE_IN_MILLISECONDS: row<{ given: bigint; serverTime: bigint }>({
    sentence: ({ given, serverTime }) => `The deadline ${given} is in milliseconds; the time is ${serverTime}.`,
    remedy: 'Deadlines are Unix seconds: divide by 1000, sign again and resend.',
  }),
  INVALID_NONCE: row<{ given: bigint; expected: bigint }>({
    sentence: ({ given, expected }) => `The nonce is ${given}; the next nonce is ${expected}.`,
    remedy: 'Fetch a fresh quote, sign its nonce and send the intent again.',
  }),
  INVALID_ACCOUNT_NONCE: row<{ account: Address; currentNonce: bigint }>({
    sentence: ({ account, currentNonce }) =>
      `The signed nonce is not ${currentNonce}, the current nonce of ${account}.`,
    remedy: 'Fetch a fresh quote, sign its nonce and send the body again.',
  }),
  INVALID_SIGNATURE: row<{
    problem: string
    mistake?: string | undefined
    signer: Address | undefined
    recovered: Address | null | undefined
    digest: Hex | undefined
  }>({
    sentence: ({ problem, signer }) =>
      `The signature is not valid${signer === undefined ? '' : ` for the signer ${signer}`}: ${problem}.`,
    remedy:
      "Sign the quote's typedData with the signer's key (eth_signTypedData_v4) and send the same values, exits in the signed order.",
  }),
  INVALID_EXIT_RULES: row<LadderFacts>({
    sentence: facts => `The exit ladder is invalid: ${ruleOf(facts)}${facts.problem}${valuesOf(facts)}.`,
    remedy:
      'Send 1 to 5 rules: each stop-loss (negative triggerBps) deeper than the one before, each take-profit (positive) higher, the last rule with exitBps 10000.',
  }),
  EXIT_RULES_OUT_OF_BOUNDS: row<LadderFacts>({
    sentence: facts =>
      `The exit ladder is outside the track's bounds: ${ruleOf(facts)}${facts.problem}${valuesOf(facts)}.`,
    remedy: "Stay within the quote's exitBounds.",
  }),
  TOO_MANY_EXIT_RULES: row<{ count: bigint }>({
    sentence: ({ count }) => `The ladder would have ${count} rules; at most 5 are allowed, including the fired ones.`,
    remedy: 'Send fewer rules.',
  }),
  PENDING_RULE_ALREADY_TRIGGERED: row<{ positionId: bigint }>({
    sentence: ({ positionId }) => `A rule of the new ladder of position ${positionId} would fire immediately.`,
    remedy: 'Move the trigger away from the current price, or reduce the position instead.',
  }),
  INVALID_TRADE_AMOUNT: row<{ usdcAmount: bigint }>({
    sentence: ({ usdcAmount }) => `The amount is ${usdcAmount} USDC base units; it must be above zero.`,
    remedy: 'Send a positive usdcAmount.',
  }),
  BPS_OUT_OF_RANGE: row<{ bps: bigint }>({
    sentence: ({ bps }) => `${bps} basis points are out of range; the maximum is 10000.`,
    remedy: 'Send maxSlippageBps from 0 to 10000 and exitBps from 1 to 10000.',
  }),
  VAULT_MISMATCH: row<{ agentId: bigint; expected: Address; provided: Address }>({
    sentence: ({ agentId, expected, provided }) =>
      `The intent names the vault ${provided}; agent ${agentId} trades only in the vault ${expected}.`,
    remedy: "Sign the quote's vault.",
  }),
  TOKEN_NOT_ALLOWED: row<{ token: Address }>({
    sentence: ({ token }) => `The agent's vault does not allow the token ${token}.`,
    remedy: "Trade a token from the quote's allowedSymbols.",
  }),
  POSITION_NOT_FOUND: row<{ agentId: bigint | undefined; positionId: bigint }>({
    status: 404,
    sentence: ({ agentId, positionId }) =>
      agentId === undefined ? `There is no position ${positionId}.` : `Agent ${agentId} has no position ${positionId}.`,
    remedy: LONG_ONLY,
  }),
  POSITION_AGENT_MISMATCH: row<{ positionId: bigint; agentId: bigint }>({
    status: 404,
    sentence: ({ positionId, agentId }) => `Agent ${agentId} has no position ${positionId}.`,
    remedy: LONG_ONLY,
  }),
  POSITION_NOT_OPEN: row<{ positionId: bigint }>({
    sentence: ({ positionId }) => `Position ${positionId} is closed.`,
    remedy: 'Only an open position can be changed; open a new one.',
  }),
  POSITION_ALREADY_OPEN: row<{ agentId: bigint; token: Address; positionId?: bigint }>({
    sentence: ({ agentId, token, positionId }) =>
      `Agent ${agentId} already has an open position in the token ${token}${positionId === undefined ? '' : `: position ${positionId}`}.`,
    remedy: 'Add to it with POST /agents/{agentId}/add-intents.',
  }),
  INVALID_REDUCE_AMOUNT: row<{ positionId: bigint }>({
    sentence: ({ positionId }) => `The share of position ${positionId} rounds down to zero tokens.`,
    remedy: 'Send a larger exitBps; 10000 closes the position.',
  }),
  NO_PENDING_EXIT_RULE: row<{ positionId: bigint }>({
    sentence: ({ positionId }) => `Position ${positionId} has no pending exit rule.`,
    remedy: FRESH_QUOTE,
  }),
  TRIGGER_NOT_MET: row<{ positionId: bigint }>({
    sentence: ({ positionId }) => `The current price meets no pending exit rule of position ${positionId}.`,
    remedy: FRESH_QUOTE,
  }),
  NOT_OWNER_OR_SIGNER: row<{ agentId: bigint; caller: Address }>({
    sentence: ({ agentId, caller }) => `${caller} is neither the owner nor the signer of agent ${agentId}.`,
    remedy: "Send the call from the agent's owner or signer.",
  }),
  AGENT_NOT_SUSPENDED: row<{ agentId: bigint }>({
    sentence: ({ agentId }) =>
      `Agent ${agentId} is not suspended; only positions of a suspended agent can be force-closed.`,
    remedy: FRESH_QUOTE,
  }),
}
