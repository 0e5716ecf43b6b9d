import type { ExitMarket, WatchedPosition } from '../chain/exit-execution.ts'
import { worth } from './checks.ts'
import { isTriggered, pnlBps, STOP_LOSS } from './exit-ladder.ts'
import type { ExitRule } from './typed-data.ts'

const BPS = 10_000n

/** A pending rule against the market; prices have 8 decimals. */
export type PendingExit = {
  /** Its place in the ladder. */
  ruleIndex: number
  rule: ExitRule
  triggerPrice: bigint
  /** By how many bps the price must move to reach the trigger: negative is a fall, 0 is reached, undefined is no price. */
  distanceBps: bigint | undefined
  /** What it would sell if it fired next, in the token's base units. */
  tokenIn: bigint
  /** The least USDC that the sale must bring, at the trigger price, or at the present one when that is reached. */
  minUsdcOut: bigint
}

/** The pending rules of an open position in ladder order; none of a closed one. */
export function pendingExits(position: WatchedPosition, { quote, decimals }: ExitMarket): PendingExit[] {
  if (position.status !== 0) return []
  return position.exitRules.slice(position.nextRuleIndex).map((rule, index) => {
    const triggerPrice = triggerPriceOf(rule, position.entryPriceUsdc)
    const isMet = quote.quoted && isTriggered(rule, pnlBps(quote.price, position.entryPriceUsdc))
    const market = { price: isMet ? quote.price : triggerPrice, decimals }
    const tokenIn = soldBy(rule, position, market)
    return {
      ruleIndex: position.nextRuleIndex + index,
      rule,
      triggerPrice,
      distanceBps: isMet ? 0n : quote.price === 0n ? undefined : distanceBps(quote.price, triggerPrice),
      tokenIn,
      minUsdcOut: (worth(tokenIn, market) * (BPS - BigInt(position.maxSlippageBps))) / BPS,
    }
  })
}

/** The price that meets a trigger: the highest one for a StopLoss, the lowest one for a TakeProfit. */
export function triggerPriceOf({ triggerType, triggerBps }: ExitRule, entryPriceUsdc: bigint): bigint {
  const scaled = entryPriceUsdc * 100n * (BPS + triggerBps)
  if (scaled <= 0n) return 0n
  return triggerType === STOP_LOSS ? scaled / BPS : (scaled + BPS - 1n) / BPS
}

/** Rounded away from zero, so that a trigger which is not reached is never 0 bps away. */
function distanceBps(price: bigint, trigger: bigint): bigint {
  const move = (trigger - price) * BPS
  return move < 0n ? (move - price + 1n) / price : (move + price - 1n) / price
}

/** The router's share of the remaining tokens: everything where what is left would be worth nothing. */
function soldBy({ exitBps }: ExitRule, { tokenAmount }: WatchedPosition, market: { price: bigint; decimals: number }) {
  const share = (tokenAmount * BigInt(exitBps)) / BPS
  return share === 0n || worth(tokenAmount - share, market) === 0n ? tokenAmount : share
}
