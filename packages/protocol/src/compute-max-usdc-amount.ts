import type { Check, TradingTerms } from './check.ts'
import { fillFloor } from './fill-amounts.ts'
import { riskLimits } from './risk-limit-checks.ts'

/** Rules whose outcome depends on the amount. */
const AMOUNT_RULES = new Set([
  'allocationCap',
  'maxTradeSize',
  'dailyTurnover',
  'idleAssets',
  'mandateTrade',
  'mandateTurnover',
  'mandateExposure',
  'minTradeSize',
  'slippage',
])

/**
 * Returns the largest amount, in USDC base units, that an open or add can have now. If the depth of the pool is the
 * limit, it is the largest of the probed amounts that fills within the slippage: a lower bound, at most 1/16 of the
 * room too low.
 */
export function computeMaxUsdcAmount(
  terms: TradingTerms,
  checks: readonly Check[],
  entry: { maxSlippageBps: number },
): bigint {
  if (checks.some(({ rule, pass }) => !pass && !AMOUNT_RULES.has(rule))) return 0n
  const room = roomOf(terms)
  const largest = depthLimit(terms, room, entry)
  const smallest = terms.extension?.tradePolicy.minTradeUsdc ?? 0n
  return largest < smallest ? 0n : largest
}

/** Returns the room that the limits of new risk leave, in USDC base units. */
function roomOf(terms: TradingTerms): bigint {
  const limits = riskLimits(terms)
  const rooms = [limits.cap - terms.allocation.used, limits.maxTradeSize]
  if (limits.idleAssets !== undefined) rooms.push(limits.idleAssets)
  if (limits.maxDailyTurnover !== undefined) rooms.push(limits.maxDailyTurnover - limits.dailyTurnover)
  rooms.push(...mandateRooms(terms, limits.dailyTurnover))
  const room = rooms.reduce((least, value) => (value < least ? value : least))
  return room > 0n ? room : 0n
}

/** Returns the room that each limit of the mandate leaves, in USDC base units. */
function mandateRooms({ allocation, extension }: TradingTerms, dailyTurnover: bigint): bigint[] {
  if (extension?.mandate === undefined) return []
  const { maxTradeUsdc, maxDailyTurnoverUsdc, maxExposureUsdc } = extension.mandate
  return [
    { limit: maxTradeUsdc, used: 0n },
    { limit: maxDailyTurnoverUsdc, used: dailyTurnover },
    { limit: maxExposureUsdc, used: allocation.used },
  ].flatMap(({ limit, used }) => (limit === 0n ? [] : [limit - used]))
}

/** Returns `room`, or the largest probed amount that fills within the slippage if that is less. */
function depthLimit({ token }: TradingTerms, room: bigint, { maxSlippageBps }: { maxSlippageBps: number }): bigint {
  if (token === undefined || token.fills.size === 0) return room
  const market = { price: token.quote.price, decimals: token.decimals }
  const deepest = [...token.fills]
    .filter(([usdcIn, out]) => out !== undefined && out > 0n && out >= fillFloor(usdcIn, market, { maxSlippageBps }))
    .reduce((most, [usdcIn]) => (usdcIn > most ? usdcIn : most), 0n)
  return deepest < room ? deepest : room
}
