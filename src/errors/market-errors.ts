import type { Address } from 'viem'
import { row } from './error-row.ts'

const OPERATOR = 'Report it to the operator of the deployment.'

/** Oracle prices, market-data providers and the venue. Prices have 8 decimals, times are Unix seconds. */
export const marketErrors = {
  TOKEN_NOT_QUOTED: row<{ asset: Address }>({
    status: 400,
    sentence: ({ asset }) => `The oracle has never had a price for the token ${asset}.`,
    remedy: 'GET /prices shows which tokens have one; POST /prices/refresh may add it.',
    retryable: true,
  }),
  STALE_PRICE: row<{ asset: Address; updatedAt: bigint; maxAge: bigint }>({
    status: 400,
    sentence: ({ asset, updatedAt, maxAge }) =>
      `The oracle price of ${asset} was updated at ${updatedAt} and is older than the allowed ${maxAge} seconds.`,
    remedy: 'Wait for a fresh price (GET /prices shows it), or call POST /prices/refresh.',
    retryable: true,
  }),
  SEQUENCER_DOWN: row({
    status: 400,
    sentence: () => "The chain's sequencer is reported down.",
    remedy: 'Try again later.',
    retryable: true,
  }),
  SEQUENCER_GRACE_PERIOD: row<{ until: bigint }>({
    status: 400,
    sentence: ({ until }) => `The chain's sequencer has just restarted; prices are valid again from ${until}.`,
    remedy: 'Try again after that time.',
    retryable: true,
  }),
  SLIPPAGE_EXCEEDED: row<{ minimum: bigint; received: bigint }>({
    status: 400,
    sentence: ({ minimum, received }) => `The venue would return ${received}; the floor is ${minimum}.`,
    remedy: 'Trade a smaller amount, or sign a lower minTokenOut or a larger maxSlippageBps.',
  }),
  PARTIAL_FILL: row<{ amountIn: bigint; amountFilled: bigint }>({
    status: 400,
    sentence: ({ amountIn, amountFilled }) => `The pool can fill only ${amountFilled} of ${amountIn}.`,
    remedy: 'Trade a smaller amount.',
  }),
  POOL_NOT_CONFIGURED: row<{ token: Address }>({
    status: 400,
    sentence: ({ token }) => `No pool is configured for the token ${token}.`,
    remedy: OPERATOR,
  }),
  POOL_NOT_FOUND: row<{ token: Address; fee: bigint }>({
    status: 400,
    sentence: ({ token, fee }) => `There is no pool for the token ${token} with the fee ${fee}.`,
    remedy: OPERATOR,
  }),
  INVALID_PRICE: row<{ asset: Address; price: bigint }>({
    status: 400,
    sentence: ({ asset, price }) => `The price ${price} of ${asset} is invalid; it must be above zero.`,
    remedy: 'Check the market-data provider.',
  }),
  DEVIATION_TOO_LARGE: row<{ asset: Address; held: bigint; given: bigint; maxDeviationBps: bigint }>({
    status: 400,
    sentence: ({ asset, held, given, maxDeviationBps }) =>
      `The price ${given} of ${asset} deviates from ${held} by more than ${maxDeviationBps} basis points.`,
    remedy: 'Ask the oracle admin to post a larger move.',
  }),
  PRICE_PROVIDER_FAILED: row<{ provider: string; problem: string; skipped?: readonly object[] }>({
    status: 502,
    sentence: ({ provider, problem }) => `The market-data provider ${provider} returned no usable price: ${problem}.`,
    remedy: 'No price was changed. Try again in a moment.',
    retryable: true,
    retryAfterSeconds: 10,
  }),
}
