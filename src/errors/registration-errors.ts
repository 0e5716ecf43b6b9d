import type { Address, Hex } from 'viem'
import { row } from './refusal.ts'

/** Registrations of agents and their ERC-8004 identities. */
export const registrationErrors = {
  VAULT_NOT_REGISTERED: row<{ vault: Address }>({
    sentence: ({ vault }) => `${vault} is not a registered vault.`,
    remedy: 'Send the contractAddress of a vault that GET /vaults lists.',
  }),
  INVALID_NAME: row<{ length: bigint }>({
    sentence: ({ length }) => `The name has ${length} bytes; it must have 1 to 128.`,
    remedy: 'Send a name of that length.',
  }),
  INVALID_METADATA_URI: row<{ length: bigint }>({
    sentence: ({ length }) => `The metadataURI has ${length} bytes; it must have 1 to 2048.`,
    remedy: 'Send a metadataURI of that length.',
  }),
  INVALID_ERC8004_LINK: row<{ problem: string }>({
    sentence: ({ problem }) => `The identity link is invalid: ${problem}.`,
    remedy: 'Send linkERC8004 true with the id of a token that the signer holds, or false with erc8004AgentId "0".',
  }),
  ERC8004_ID_WITHOUT_LINK: row<{ erc8004AgentId: bigint }>({
    sentence: ({ erc8004AgentId }) => `erc8004AgentId is ${erc8004AgentId}, but linkERC8004 is false.`,
    remedy: 'Send linkERC8004 true, or erc8004AgentId "0".',
  }),
  ERC8004_IDENTITY_NOT_FOUND: row<{ erc8004AgentId: bigint }>({
    status: 404,
    sentence: ({ erc8004AgentId }) => `The ERC-8004 registry has no token ${erc8004AgentId}.`,
    remedy: 'Register the identity first.',
  }),
  ERC8004_OWNER_MISMATCH: row<{ erc8004AgentId: bigint; expected: Address; actual: Address }>({
    sentence: ({ erc8004AgentId, expected, actual }) =>
      `The ERC-8004 token ${erc8004AgentId} is held by ${actual}, not by the agent's owner ${expected}.`,
    remedy: "Link an identity that the agent's owner holds.",
  }),
  REGISTRATION_IN_FLIGHT: row<{ digest: Hex }>({
    status: 409,
    sentence: () => 'Another registration of this signer is in progress with the fee that was paid.',
    remedy: 'Wait for its response, then send this one again.',
    retryAfterSeconds: 2,
  }),
  ERC8004_ALREADY_LINKED: row<{ erc8004AgentId: bigint; agentId: bigint }>({
    status: 409,
    sentence: ({ erc8004AgentId, agentId }) =>
      `The ERC-8004 token ${erc8004AgentId} is already linked to agent ${agentId}.`,
    remedy: 'Link another identity: each one belongs to one agent.',
  }),
  ERC8004_IDENTITY_NOT_LINKED: row<{ erc8004AgentId: bigint }>({
    status: 404,
    sentence: ({ erc8004AgentId }) => `No agent is linked to the ERC-8004 token ${erc8004AgentId}.`,
    remedy: 'POST /agents/{agentId}/erc8004/link links an agent to it.',
  }),
  REGISTRATION_PAUSED: row({
    status: 503,
    sentence: () => 'The agent registry is paused: registrations and new risk are rejected.',
    remedy: 'Reducing and closing positions still works; try again once the operator has unpaused the registry.',
    retryable: true,
  }),
  ENFORCED_PAUSE: row({
    status: 503,
    sentence: () => 'The agent registry is paused: registrations are rejected.',
    remedy: 'Try again once the operator has unpaused the registry.',
    retryable: true,
  }),
}

/** Promotions that the promotion criteria refuse. Amounts are USDC base units. */
export const promotionErrors = {
  PROMOTION_CRITERIA_NOT_SET: row({
    sentence: () => 'This deployment has no promotion criteria.',
    remedy: 'Report it to the operator of the deployment.',
  }),
  TOO_FEW_TRADES: row<{ agentId: bigint; trades: bigint; minTrades: bigint }>({
    sentence: ({ agentId, trades, minTrades }) =>
      `Agent ${agentId} has ${trades} trades; promotion needs ${minTrades}.`,
    remedy: 'GET /agents/{agentId}/risk-state shows the promotion criteria.',
  }),
  EVALUATION_PERIOD_NOT_OVER: row<{ agentId: bigint; endsAt: bigint }>({
    sentence: ({ agentId, endsAt }) => `The evaluation period of agent ${agentId} ends at ${endsAt} (Unix seconds).`,
    remedy: 'GET /agents/{agentId}/risk-state shows the promotion criteria.',
  }),
  SCORE_TOO_LOW: row<{ agentId: bigint; score: bigint; minScore: bigint }>({
    sentence: ({ agentId, score, minScore }) =>
      `The score of agent ${agentId} is ${score}; promotion needs ${minScore}.`,
    remedy: 'GET /agents/{agentId}/risk-state shows the promotion criteria.',
  }),
  DAILY_LOSS_LIMIT_BREACHED: row<{ agentId: bigint; lossUsdc: bigint; maxLossUsdc: bigint }>({
    sentence: ({ agentId, lossUsdc, maxLossUsdc }) =>
      `The day's realized loss of agent ${agentId} is ${lossUsdc} USDC base units; promotion needs less than ${maxLossUsdc}.`,
    remedy: 'GET /agents/{agentId}/risk-state shows the promotion criteria.',
  }),
  DRAWDOWN_LIMIT_BREACHED: row<{ agentId: bigint; drawdownBps: bigint; maxDrawdownBps: bigint }>({
    sentence: ({ agentId, drawdownBps, maxDrawdownBps }) =>
      `The drawdown of agent ${agentId} is ${drawdownBps} basis points; promotion needs less than ${maxDrawdownBps}.`,
    remedy: 'GET /agents/{agentId}/risk-state shows the promotion criteria.',
  }),
  FIRST_LOSS_MISSING: row<{ agentId: bigint; lockedUsdc: bigint; requiredUsdc: bigint }>({
    sentence: ({ agentId, lockedUsdc, requiredUsdc }) =>
      `Vault shares worth ${lockedUsdc} USDC base units answer for the losses of agent ${agentId}; the next track requires ${requiredUsdc}.`,
    remedy: "The agent's owner deposits into the vault and signs LockFirstLoss.",
  }),
  EXAMINATION_MISSING: row<{ agentId: bigint; examination: Hex }>({
    sentence: ({ agentId, examination }) =>
      `The track of agent ${agentId} requires a certificate of examination ${examination}; its owner has claimed none.`,
    remedy: 'Examine the agent with the settings that the operator publishes; its owner calls claimCertificate.',
  }),
  CERTIFICATE_ALREADY_CLAIMED: row<{ agentId: bigint; certificate: Hex }>({
    status: 409,
    sentence: ({ agentId, certificate }) =>
      `The owner of agent ${agentId} has claimed certificate ${certificate} of this examination; a claim is final.`,
    remedy: 'Recompute that certificate, or claim one of another examination.',
  }),
  OPEN_POSITIONS_OF_OTHER_MODE: row<{ agentId: bigint; count: bigint }>({
    sentence: ({ agentId, count }) => `Agent ${agentId} has ${count} open positions of the other capital mode.`,
    remedy: 'Close them first.',
  }),
}

/** The registration fee, paid over x402. */
export const paymentErrors = {
  PAYMENT_REQUIRED: row({
    status: 402,
    sentence: () => 'The registration fee must be paid.',
    remedy:
      'Pay what `accepts` asks (x402) and send the identical body again with the payment in PAYMENT-SIGNATURE; over MCP in _meta["x402/payment"].',
  }),
  PAYMENT_REFUSED: row<{
    problem: string
    field?: string
    given?: string
    expected?: string
    /** The common mistake in the signature, and the facilitator's reason code. */
    mistake?: string
    reason?: string
    /** The account that holds less than the fee. */
    poorPayer?: { payer: Address; amount: string; asset: string; network: string }
  }>({
    status: 402,
    sentence: ({ problem, poorPayer }) =>
      poorPayer === undefined
        ? `The payment was not accepted: ${problem}.`
        : `The payer ${poorPayer.payer} has less than the fee of ${poorPayer.amount} base units of ${poorPayer.asset} on ${poorPayer.network}.`,
    remedy: 'Nothing was charged. Sign exactly what `accepts` asks and send the identical body again.',
  }),
  PAYMENT_ALREADY_USED: row({
    status: 402,
    sentence: () => 'The payment belongs to another registration.',
    remedy: 'Nothing was charged again. Sign a new payment for this registration.',
  }),
  INVALID_PAYMENT: row<{ problem: string }>({
    sentence: ({ problem }) => `The payment cannot be decoded: ${problem}.`,
    remedy:
      'Send the x402 payload (version 2 or 1) as base64 of JSON, with an EIP-3009 authorization of the scheme `exact`.',
  }),
  PAYMENT_PENDING: row({
    status: 502,
    sentence: () => 'The payment was submitted and its settlement is not known yet.',
    remedy: 'Send the identical body again, with or without the payment: nothing is charged twice.',
    retryAfterSeconds: 2,
  }),
  FACILITATOR_UNAVAILABLE: row({
    status: 502,
    sentence: () => 'The payment cannot be verified or settled at the moment; nothing was charged.',
    remedy: 'Send the identical body with the same payment again.',
    retryAfterSeconds: 2,
  }),
  PAYMENT_NOT_CONFIGURED: row({
    status: 503,
    sentence: () => 'The registration fee must be paid over x402, which this deployment is not configured for.',
    remedy: 'The operator must correct the X402 variables.',
  }),
}
