import { restrictionText } from '@agent-trading-service/protocol/token-restriction'
import { type TransferRefusal, transferRefusals } from '@agent-trading-service/protocol/transfer-refusal'
import type { Address, Hex } from 'viem'
import { contractRows, row } from './refusal.ts'

const CHECK_MAXIMUM = "Stay within the quote's maxUsdcAmountHuman"

/** New risk that exceeds a limit of the agent, its track or its vault. Amounts are USDC base units. */
export const riskLimitErrors = {
  EXCEEDS_ALLOCATION_CAP: row<{ agentId: bigint; used: bigint; cap: bigint }>({
    sentence: ({ agentId, used, cap }) =>
      `The positions of agent ${agentId} would cost ${used} USDC base units; its allocation cap is ${cap}.`,
    remedy: `${CHECK_MAXIMUM}, or reduce a position first.`,
  }),
  EXCEEDS_MAX_TRADE_SIZE: row<{ tradeSize: bigint; maxTradeSize: bigint }>({
    sentence: ({ tradeSize, maxTradeSize }) =>
      `The trade has ${tradeSize} USDC base units; the maximum trade size is ${maxTradeSize}.`,
    remedy: `${CHECK_MAXIMUM}.`,
  }),
  EXCEEDS_DAILY_TURNOVER: row<{ agentId: bigint; turnover: bigint; max: bigint }>({
    sentence: ({ agentId, turnover, max }) =>
      `The day's turnover of agent ${agentId} would be ${turnover} USDC base units; the limit is ${max}.`,
    remedy: `${CHECK_MAXIMUM}, or wait for the next UTC day.`,
  }),
  EXCEEDS_DAILY_LOSS: row<{ agentId: bigint; lossUsdc: bigint; maxLossUsdc: bigint }>({
    sentence: ({ agentId, lossUsdc, maxLossUsdc }) =>
      `The day's realized loss of agent ${agentId} is ${lossUsdc} USDC base units and has reached the limit of ${maxLossUsdc}.`,
    remedy: 'Wait for the next UTC day to take new risk; reducing still works.',
  }),
  EXCEEDS_WASTE: row<{ agentId: bigint; wasteUsdc: bigint; maxWasteUsdc: bigint }>({
    sentence: ({ agentId, wasteUsdc, maxWasteUsdc }) =>
      `The fills of agent ${agentId} lost ${wasteUsdc} USDC base units beyond what fair ones cost; beyond ${maxWasteUsdc} it buys nothing more.`,
    remedy: 'Sell freely. The waste fades within 30 days; then buy smaller amounts, or in deeper pools.',
  }),
  EXCEEDS_MAX_DRAWDOWN: row<{ agentId: bigint; drawdownBps: bigint; maxDrawdownBps: bigint }>({
    sentence: ({ agentId, drawdownBps, maxDrawdownBps }) =>
      `The drawdown of agent ${agentId} is ${drawdownBps} basis points; its track allows ${maxDrawdownBps}.`,
    remedy: 'Buying is suspended until equity recovers; reducing and exits still work.',
  }),
  INSUFFICIENT_IDLE_ASSETS: row<{ idle: bigint; required: bigint }>({
    sentence: ({ idle, required }) =>
      `The vault has ${idle} USDC base units of idle assets; the trade needs ${required}.`,
    remedy: `${CHECK_MAXIMUM}.`,
  }),
  CAPS_EXCEED_ASSETS: row<{ vault: Address; caps: bigint; assets: bigint }>({
    sentence: ({ vault, caps, assets }) =>
      `The allocation caps of the vault ${vault} would be ${caps} USDC base units; its assets are ${assets}.`,
    remedy: 'Choose another vault, or wait until this one has more assets.',
  }),
}

/** New risk or a change that the status of agent, allocation, track, position or contract does not allow. */
export const statusErrors = {
  AGENT_NOT_TRADABLE: row<{ agentId: bigint }>({
    sentence: ({ agentId }) => `Agent ${agentId} is not active, so it cannot take new risk.`,
    remedy: 'Reducing and closing still work; GET /agents/{agentId} shows the status.',
  }),
  ALLOCATION_NOT_ACTIVE: row<{ agentId: bigint }>({
    sentence: ({ agentId }) => `The allocation of agent ${agentId} is not active.`,
    remedy: 'Reducing and closing still work; the operator activates allocations.',
  }),
  VAULT_TRACK_NOT_ACTIVE: row<{ vault: Address; trackId: bigint }>({
    sentence: ({ vault, trackId }) => `Track ${trackId} is not active in the vault ${vault}.`,
    remedy: 'GET /vaults/{id} shows the tracks; the operator activates them.',
  }),
  REGISTRY_PAUSED: row({
    status: 503,
    sentence: () => 'The agent registry is paused: new risk is rejected.',
    remedy: 'Reducing and closing still work; try again once the operator has unpaused the registry.',
    retryable: true,
  }),
  TRADING_PAUSED: row({
    status: 503,
    sentence: () => "Trading is paused in the agent's vault.",
    remedy: 'Ladder updates still work; try again once the operator has unpaused the vault.',
    retryable: true,
  }),
  CAPITAL_MODE_MISMATCH: row<{ positionId: bigint; capitalMode: bigint }>({
    sentence: ({ positionId, capitalMode }) =>
      `Position ${positionId} has the capital mode ${capitalMode}, which is not that of the agent's track.`,
    remedy: 'Close the position and open a new one.',
  }),
  EXIT_IN_PROGRESS: row<{ positionId: bigint }>({
    sentence: ({ positionId }) => `An exit rule of position ${positionId} has been met and is not completely filled.`,
    remedy: 'Wait until the exit is filled, or reduce the position.',
    retryable: true,
  }),
}

/** Trades that the trade policy refuses. Amounts are USDC base units, prices have 8 decimals. */
export const tradePolicyErrors = {
  SLIPPAGE_ABOVE_LIMIT: row<{ slippageBps: bigint; maxSlippageBps: bigint }>({
    sentence: ({ slippageBps, maxSlippageBps }) =>
      `The signed maxSlippageBps is ${slippageBps}; the vault's policy allows at most ${maxSlippageBps}.`,
    remedy: 'Sign a maxSlippageBps within the limit and send the intent again.',
  }),
  TRADE_TOO_SMALL: row<{ usdcAmount: bigint; minUsdcAmount: bigint }>({
    sentence: ({ usdcAmount, minUsdcAmount }) =>
      `The trade is worth ${usdcAmount} USDC base units; the smallest trade is ${minUsdcAmount}.`,
    remedy:
      'Trade a larger amount, or place the order in fewer parts; this limit does not apply to closing a position completely.',
  }),
  DEADLINE_TOO_FAR: row<{ deadline: bigint; latestDeadline: bigint }>({
    sentence: ({ deadline, latestDeadline }) =>
      `The deadline is ${deadline}; the vault's policy allows at most ${latestDeadline}.`,
    remedy: "Sign the quote's suggestedDeadline and send the intent again.",
  }),
  SPOT_PRICE_DEVIATION: row<{ token: Address; spotPrice: bigint; oraclePrice: bigint; maxDeviationBps: bigint }>({
    sentence: ({ token, spotPrice, oraclePrice, maxDeviationBps }) =>
      `The pool prices the token ${token} at ${spotPrice} (8 decimals), the oracle at ${oraclePrice}: more than ${maxDeviationBps} basis points apart.`,
    remedy:
      'Nothing was traded. It passes once the next posted price, or trades of others in the pool, bring the two together; due exits and a flatten of the owner keep trying until then.',
    retryable: true,
  }),
  TWAP_DEVIATION: row<{ token: Address; twapPrice: bigint; oraclePrice: bigint; maxDeviationBps: bigint }>({
    sentence: ({ token, twapPrice, oraclePrice, maxDeviationBps }) =>
      `The pool's time-weighted price of the token ${token} is ${twapPrice} (8 decimals), the oracle's is ${oraclePrice}: more than ${maxDeviationBps} basis points apart.`,
    remedy:
      'Nothing was traded. It passes at most twapWindowSeconds (in the tradePolicy of the quote) after pool and oracle agree again; due exits and a flatten of the owner keep trying until then.',
    retryable: true,
  }),
  TWAP_UNAVAILABLE: row<{ token: Address }>({
    sentence: ({ token }) => `The pool of the token ${token} has no time-weighted price yet.`,
    remedy: 'Try again later; nothing was traded.',
    retryable: true,
  }),
  EXIT_FLOOR_NOT_MET: row<{ positionId: bigint; slippageBps: bigint; dueSince: bigint }>({
    sentence: ({ positionId, slippageBps, dueSince }) =>
      `The pool cannot fill the exit of position ${positionId} within ${slippageBps} basis points of the oracle; it has been due since ${dueSince}.`,
    remedy: 'The allowed slippage widens with time up to the policy; the exit stays due.',
    retryable: true,
  }),
}

const OPERATOR = 'Report it to the operator of the deployment.'

/** The oracle refuses what a call brought along as a price. */
const reportRefused = {
  sentence: (problem: string) => `The oracle does not take the price that came with the call: ${problem}.`,
  remedy:
    'Nothing was traded. Try again in a moment: each attempt brings the newest report. GET /prices shows what the oracle has.',
  retryAfterSeconds: 2,
}

/** Oracle prices, market-data providers and the venue. Prices have 8 decimals, times are Unix seconds. */
export const marketErrors = {
  TOKEN_NOT_QUOTED: row<{ asset: Address }>({
    sentence: ({ asset }) => `The oracle has never had a price for the token ${asset}.`,
    remedy: 'GET /prices shows which tokens have one; POST /prices/refresh may add it.',
    retryable: true,
  }),
  STALE_PRICE: row<{ asset: Address; updatedAt: bigint; maxAge: bigint }>({
    sentence: ({ asset, updatedAt, maxAge }) =>
      `The oracle price of ${asset} was updated at ${updatedAt} and is older than the allowed ${maxAge} seconds.`,
    remedy: 'Wait for a fresh price (GET /prices shows it), or call POST /prices/refresh.',
    retryable: true,
  }),
  PRICE_UNSETTLED: row<{ asset: Address; updatedAt: bigint }>({
    sentence: ({ asset, updatedAt }) =>
      `The multiplier of the token ${asset} has changed since its oracle price was observed at ${updatedAt}.`,
    remedy:
      'Wait until a price from after the corporate action is posted (GET /prices shows unsettled); reductions still work.',
    retryable: true,
  }),
  SEQUENCER_DOWN: row({
    sentence: () => "The chain's sequencer is reported down.",
    remedy: 'Try again later.',
    retryable: true,
  }),
  SEQUENCER_GRACE_PERIOD: row<{ until: bigint }>({
    sentence: ({ until }) => `The chain's sequencer has just restarted; prices are valid again from ${until}.`,
    remedy: 'Try again after that time.',
    retryable: true,
  }),
  SLIPPAGE_EXCEEDED: row<{ minimum: bigint; received: bigint }>({
    sentence: ({ minimum, received }) => `The venue would return ${received}; the floor is ${minimum}.`,
    remedy: 'Trade a smaller amount, or sign a lower minTokenOut or a larger maxSlippageBps.',
  }),
  PARTIAL_FILL: row<{ amountIn: bigint; amountFilled: bigint }>({
    sentence: ({ amountIn, amountFilled }) => `The pool can fill only ${amountFilled} of ${amountIn}.`,
    remedy: 'Trade a smaller amount.',
  }),
  TOKEN_RESTRICTED: row<{ token: Address; restriction: bigint; account: Address }>({
    status: 503,
    sentence: ({ token, restriction, account }) =>
      `The token ${token} cannot be traded: ${restrictionText({ value: restriction, account })}.`,
    remedy: "Only the token's issuer can lift this. Nothing was traded; try again once it has.",
    retryable: true,
  }),
  TRANSFER_REFUSED: row<{ reason: TransferRefusal }>({
    status: 503,
    sentence: ({ reason }) => `The dollar or the token refuses a transfer: ${transferRefusals[reason]}.`,
    remedy: 'Only the issuer can lift this. Nothing was moved; try again once it has, or pay from another account.',
    retryable: true,
  }),
  POOL_NOT_PAID: row<{ token: Address; pool: Address }>({
    status: 503,
    sentence: ({ token, pool }) =>
      `The token ${token} refuses transfers to its pool ${pool}: its issuer has blocked the pool.`,
    remedy: "Only the token's issuer can lift this. Nothing was sold; try again once it has.",
    retryable: true,
  }),
  STOP_WITHIN_COSTS: row<{ stopLossBps: bigint; atLeastBps: bigint }>({
    sentence: ({ stopLossBps, atLeastBps }) =>
      `A stop-loss ${stopLossBps} basis points below the entry is within what buying and selling costs: it would fire at once. The nearest that passes is ${atLeastBps}.`,
    remedy:
      'Put the stop-loss further away: triggerBps are basis points, so -200 is 2 %. The limit of the check stopDistance passes. To leave a position now, reduce it.',
  }),
  LIQUIDITY_EXCEEDED: row<{ symbol: string; side: 'purchase' | 'sale'; usdcAmount: bigint }>({
    sentence: ({ symbol, side, usdcAmount }) =>
      `The pool of ${symbol} cannot fill a ${side} worth ${usdcAmount} USDC base units at half of the oracle's price.`,
    remedy: 'Pass a smaller usdcAmount.',
  }),
  WHAT_IF_UNAVAILABLE: row({
    status: 503,
    sentence: () => 'The contracts of this deployment do not name the admins that a what-if acts for.',
    remedy: 'Use the quotes of single intents.',
  }),
  POOL_NOT_CONFIGURED: row<{ token: Address }>({
    sentence: ({ token }) => `No pool is configured for the token ${token}.`,
    remedy: OPERATOR,
  }),
  POOL_NOT_FOUND: row<{ token: Address; fee: bigint }>({
    sentence: ({ token, fee }) => `There is no pool for the token ${token} with the fee ${fee}.`,
    remedy: OPERATOR,
  }),
  INVALID_PRICE: row<{ asset: Address; price: bigint }>({
    sentence: ({ asset, price }) => `The price ${price} of ${asset} is invalid; it must be above zero.`,
    remedy: 'Check the market-data provider.',
  }),
  DEVIATION_TOO_LARGE: row<{ asset: Address; held: bigint; given: bigint; maxDeviationBps: bigint }>({
    sentence: ({ asset, held, given, maxDeviationBps }) =>
      `The price ${given} of ${asset} deviates from ${held} by more than ${maxDeviationBps} basis points.`,
    remedy: 'Ask the oracle admin to post a larger move.',
  }),
  PRICE_REPORTS_UNAVAILABLE: row<{ problem: string; digest?: Hex }>({
    status: 503,
    sentence: ({ problem }) =>
      `The price of this token comes with each trade as a report that its provider signs, and there is none now: ${problem}.`,
    remedy: 'Nothing was sent and no price was invented. Try again in a moment; exits are retried first.',
    retryAfterSeconds: 2,
  }),
  ...contractRows(reportRefused, {
    REPORT_EXPIRED: ({ asset, expiresAt }) => `the one of ${asset} expired at ${expiresAt}`,
    REPORT_NOT_VERIFIED: ({ feedId }) => `the verifier does not accept the signatures of the one of stream ${feedId}`,
    MALFORMED_REPORT: () => 'it is not encoded as its schema says',
    UNKNOWN_STREAM: ({ feedId }) => `no token takes its price from stream ${feedId}`,
    PRICE_FROM_FUTURE: ({ asset, observedAt }) =>
      `the price of ${asset} was observed at ${observedAt}, which is later than now`,
    MARKET_NOT_TRADING: ({ asset, status }) => `the market of ${asset} does not trade, its status is ${status}`,
    SPREAD_TOO_WIDE: ({ asset, spreadBps, maxSpreadBps }) =>
      `bid and ask of ${asset} are ${spreadBps} basis points apart, the limit is ${maxSpreadBps}`,
    MULTIPLIER_UNKNOWN: ({ asset }) => `the token ${asset} does not say for how many shares it stands`,
    PRICE_BEFORE_MULTIPLIER: ({ asset, observedAt, effectiveAt }) =>
      `the price of ${asset} was observed at ${observedAt}, before its multiplier changed at ${effectiveAt}`,
    PRICE_AHEAD_OF_MULTIPLIER: ({ asset, price, effectiveAt }) =>
      `the price ${price} of ${asset} is that of after a split, which its multiplier follows at ${effectiveAt}`,
    FEED_PAUSED: ({ asset }) => `the issuer of ${asset} has paused its push feed`,
  }),
  PRICE_PROVIDER_FAILED: row<{ provider: string; problem: string; skipped?: readonly object[] }>({
    status: 502,
    sentence: ({ provider, problem }) => `The market-data provider ${provider} returned no usable price: ${problem}.`,
    remedy: 'No price was changed. Try again in a moment.',
    retryAfterSeconds: 10,
  }),
}
