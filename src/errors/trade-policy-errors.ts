import type { Address } from 'viem'
import { row } from './error-row.ts'

/** Trades that the trade policy refuses. Amounts are USDC base units, prices have 8 decimals. */
export const tradePolicyErrors = {
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
  EXIT_FLOOR_NOT_MET: row<{ positionId: bigint; slippageBps: bigint; dueSince: bigint }>({
    status: 400,
    sentence: ({ positionId, slippageBps, dueSince }) =>
      `The pool cannot fill the exit of position ${positionId} within ${slippageBps} basis points of the oracle; it has been due since ${dueSince}.`,
    remedy: 'The allowed slippage widens with time up to the policy; the exit stays due.',
    retryable: true,
  }),
}
