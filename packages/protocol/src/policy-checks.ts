import type { Check, ExtensionTerms, TokenTerms } from './check.ts'

const BPS = 10_000n

/** The part of a trade that the trade policy limits. An amount of undefined is not checked. */
type PolicedTrade = {
  usdcAmount: bigint | undefined
  /** Unix seconds. */
  deadline: bigint
  /** Undefined for a sale: the policy limits its slippage itself. */
  maxSlippageBps?: number
}

/** Returns the checks of the trade policy in its order; a limit of 0 is no limit. Empty without the extension. */
export function policyChecks(
  extension: ExtensionTerms | undefined,
  token: TokenTerms | undefined,
  trade: PolicedTrade,
): Check[] {
  if (extension === undefined) return []
  const { tradePolicy } = extension
  const checks = deadlineChecks(extension, trade.deadline)
  if (trade.maxSlippageBps !== undefined) {
    const slippage = BigInt(trade.maxSlippageBps)
    checks.push({
      rule: 'entrySlippage',
      code: 'SLIPPAGE_ABOVE_LIMIT',
      pass: slippage <= tradePolicy.maxEntrySlippageBps,
      limit: tradePolicy.maxEntrySlippageBps,
      after: slippage,
    })
  }
  checks.push(...minTradeChecks(extension, trade.usdcAmount))
  if (token !== undefined) checks.push(...venuePriceChecks(extension, token, trade.maxSlippageBps !== undefined))
  return checks
}

/** Returns the check of an amount against the smallest trade; none if the policy has no smallest trade. */
export function minTradeChecks(extension: ExtensionTerms | undefined, usdcAmount: bigint | undefined): Check[] {
  const limit = extension?.tradePolicy.minTradeUsdc ?? 0n
  if (limit === 0n) return []
  const pass = usdcAmount === undefined || usdcAmount >= limit
  return [
    {
      rule: 'minTradeSize',
      code: 'TRADE_TOO_SMALL',
      pass,
      limit,
      ...(usdcAmount !== undefined && { after: usdcAmount }),
    },
  ]
}

/** Returns the check of a deadline against the policy; none if the policy does not limit it. */
export function deadlineChecks(extension: ExtensionTerms | undefined, deadline: bigint): Check[] {
  if (extension === undefined || extension.tradePolicy.maxDeadlineSeconds === 0n) return []
  const latest = extension.now + extension.tradePolicy.maxDeadlineSeconds
  return [{ rule: 'deadline', code: 'DEADLINE_TOO_FAR', pass: deadline <= latest, limit: latest, after: deadline }]
}

/** A sale is limited only while the pool's spot price is below the oracle's. */
function venuePriceChecks({ tradePolicy }: ExtensionTerms, token: TokenTerms, isPurchase: boolean): Check[] {
  const { venuePrices, isTwapRequired, quote } = token
  if (venuePrices === undefined || quote.price === 0n) return []
  const { spot, twap } = venuePrices
  const checks: Check[] = []
  const { maxSpotDeviationBps, maxTwapDeviationBps } = tradePolicy
  if (maxSpotDeviationBps > 0n)
    checks.push({
      rule: 'spotPrice',
      code: 'SPOT_PRICE_DEVIATION',
      pass: (!isPurchase && spot >= quote.price) || !isBeyond(spot, quote.price, maxSpotDeviationBps),
      limit: maxSpotDeviationBps,
      used: deviationBps(spot, quote.price),
    })
  if (maxTwapDeviationBps === 0n || tradePolicy.twapWindow === 0n) return checks
  if (twap > 0n)
    checks.push({
      rule: 'twapPrice',
      code: 'TWAP_DEVIATION',
      pass: !isBeyond(twap, quote.price, maxTwapDeviationBps),
      limit: maxTwapDeviationBps,
      used: deviationBps(twap, quote.price),
    })
  else if (isTwapRequired) checks.push({ rule: 'twapPrice', code: 'TWAP_UNAVAILABLE', pass: false })
  return checks
}

const distance = (price: bigint, oraclePrice: bigint) =>
  price > oraclePrice ? price - oraclePrice : oraclePrice - price

const isBeyond = (price: bigint, oraclePrice: bigint, maxBps: bigint) =>
  distance(price, oraclePrice) * BPS > oraclePrice * maxBps

/** Rounds up: a price just beyond a limit is shown beyond it. */
const deviationBps = (price: bigint, oraclePrice: bigint) =>
  (distance(price, oraclePrice) * BPS + oraclePrice - 1n) / oraclePrice
