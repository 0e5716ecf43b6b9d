import type { Address } from 'viem'
import { row } from './error-row.ts'

/** What the contracts of the extension refuse: trade policy, capital modes, promotion. Amounts are USDC base units. */
export const policyErrors = {
  SLIPPAGE_ABOVE_LIMIT: row<{ slippageBps: bigint; maxSlippageBps: bigint }>({
    status: 400,
    sentence: ({ slippageBps, maxSlippageBps }) =>
      `The signed maxSlippageBps is ${slippageBps}; the vault's policy allows at most ${maxSlippageBps}.`,
    remedy: 'Sign a maxSlippageBps within the limit and send the intent again.',
  }),
  TRADE_TOO_SMALL: row<{ usdcAmount: bigint; minUsdcAmount: bigint }>({
    status: 400,
    sentence: ({ usdcAmount, minUsdcAmount }) =>
      `The trade is worth ${usdcAmount} USDC base units; the smallest trade is ${minUsdcAmount}.`,
    remedy: 'Trade a larger amount; closing a position completely is always allowed.',
  }),
  DEADLINE_TOO_FAR: row<{ deadline: bigint; latestDeadline: bigint }>({
    status: 400,
    sentence: ({ deadline, latestDeadline }) =>
      `The deadline is ${deadline}; the vault's policy allows at most ${latestDeadline}.`,
    remedy: "Sign the quote's suggestedDeadline and send the intent again.",
  }),
  SPOT_PRICE_DEVIATION: row<{ token: Address; spotPrice: bigint; oraclePrice: bigint; maxDeviationBps: bigint }>({
    status: 400,
    sentence: ({ token, spotPrice, oraclePrice, maxDeviationBps }) =>
      `The pool prices the token ${token} at ${spotPrice} (8 decimals), the oracle at ${oraclePrice}: more than ${maxDeviationBps} basis points apart.`,
    remedy: 'Wait until pool and oracle agree again; nothing was traded.',
    retryable: true,
  }),
  TWAP_DEVIATION: row<{ token: Address; twapPrice: bigint; oraclePrice: bigint; maxDeviationBps: bigint }>({
    status: 400,
    sentence: ({ token, twapPrice, oraclePrice, maxDeviationBps }) =>
      `The pool's time-weighted price of the token ${token} is ${twapPrice} (8 decimals), the oracle's is ${oraclePrice}: more than ${maxDeviationBps} basis points apart.`,
    remedy: 'Wait until pool and oracle agree again; nothing was traded.',
    retryable: true,
  }),
  TWAP_UNAVAILABLE: row<{ token: Address }>({
    status: 400,
    sentence: ({ token }) => `The pool of the token ${token} has no time-weighted price yet.`,
    remedy: 'Try again later; nothing was traded.',
    retryable: true,
  }),
  EXCEEDS_MAX_DRAWDOWN: row<{ agentId: bigint; drawdownBps: bigint; maxDrawdownBps: bigint }>({
    status: 400,
    sentence: ({ agentId, drawdownBps, maxDrawdownBps }) =>
      `The drawdown of agent ${agentId} is ${drawdownBps} basis points; its track allows ${maxDrawdownBps}.`,
    remedy: 'Buying is suspended until equity recovers; reducing and exits still work.',
  }),
  CAPITAL_MODE_MISMATCH: row<{ positionId: bigint; capitalMode: bigint }>({
    status: 400,
    sentence: ({ positionId, capitalMode }) =>
      `Position ${positionId} has the capital mode ${capitalMode}, which is not that of the agent's track.`,
    remedy: 'Close the position and open a new one.',
  }),
  EXIT_IN_PROGRESS: row<{ positionId: bigint }>({
    status: 400,
    sentence: ({ positionId }) => `An exit rule of position ${positionId} has been met and is not completely filled.`,
    remedy: 'Wait until the exit is filled, or reduce the position.',
    retryable: true,
  }),
  EXIT_FLOOR_NOT_MET: row<{ positionId: bigint; slippageBps: bigint; dueSince: bigint }>({
    status: 400,
    sentence: ({ positionId, slippageBps, dueSince }) =>
      `The pool cannot fill the exit of position ${positionId} within ${slippageBps} basis points of the oracle; it has been due since ${dueSince}.`,
    remedy: 'The allowed slippage widens with time up to the policy; the exit stays due.',
    retryable: true,
  }),
  CAPS_EXCEED_ASSETS: row<{ vault: Address; caps: bigint; assets: bigint }>({
    status: 400,
    sentence: ({ vault, caps, assets }) =>
      `The allocation caps of the vault ${vault} would be ${caps} USDC base units; its assets are ${assets}.`,
    remedy: 'Choose another vault, or wait until this one has more assets.',
  }),
  NOT_OWNER_OR_SIGNER: row<{ agentId: bigint; caller: Address }>({
    status: 400,
    sentence: ({ agentId, caller }) => `${caller} is neither the owner nor the signer of agent ${agentId}.`,
    remedy: "Send the call from the agent's owner or signer.",
  }),
  PROMOTION_CRITERIA_NOT_SET: row({
    status: 400,
    sentence: () => 'This deployment has no promotion criteria.',
    remedy: 'Report it to the operator of the deployment.',
  }),
  TOO_FEW_TRADES: row<{ agentId: bigint; trades: bigint; minTrades: bigint }>({
    status: 400,
    sentence: ({ agentId, trades, minTrades }) =>
      `Agent ${agentId} has ${trades} trades; promotion needs ${minTrades}.`,
    remedy: 'GET /agents/{agentId}/risk-state shows the promotion criteria.',
  }),
  EVALUATION_PERIOD_NOT_OVER: row<{ agentId: bigint; endsAt: bigint }>({
    status: 400,
    sentence: ({ agentId, endsAt }) => `The evaluation period of agent ${agentId} ends at ${endsAt} (Unix seconds).`,
    remedy: 'GET /agents/{agentId}/risk-state shows the promotion criteria.',
  }),
  SCORE_TOO_LOW: row<{ agentId: bigint; score: bigint; minScore: bigint }>({
    status: 400,
    sentence: ({ agentId, score, minScore }) =>
      `The score of agent ${agentId} is ${score}; promotion needs ${minScore}.`,
    remedy: 'GET /agents/{agentId}/risk-state shows the promotion criteria.',
  }),
  DAILY_LOSS_LIMIT_BREACHED: row<{ agentId: bigint; lossUsdc: bigint; maxLossUsdc: bigint }>({
    status: 400,
    sentence: ({ agentId, lossUsdc, maxLossUsdc }) =>
      `The day's realized loss of agent ${agentId} is ${lossUsdc} USDC base units; promotion needs less than ${maxLossUsdc}.`,
    remedy: 'GET /agents/{agentId}/risk-state shows the promotion criteria.',
  }),
  DRAWDOWN_LIMIT_BREACHED: row<{ agentId: bigint; drawdownBps: bigint; maxDrawdownBps: bigint }>({
    status: 400,
    sentence: ({ agentId, drawdownBps, maxDrawdownBps }) =>
      `The drawdown of agent ${agentId} is ${drawdownBps} basis points; promotion needs less than ${maxDrawdownBps}.`,
    remedy: 'GET /agents/{agentId}/risk-state shows the promotion criteria.',
  }),
  OPEN_POSITIONS_OF_OTHER_MODE: row<{ agentId: bigint; count: bigint }>({
    status: 400,
    sentence: ({ agentId, count }) => `Agent ${agentId} has ${count} open positions of the other capital mode.`,
    remedy: 'Close them first.',
  }),
}
