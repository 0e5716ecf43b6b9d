import { formatUnits } from 'viem'
import { Failure } from '../failure.ts'
import { type Limits, limitsPath, readLimits } from './limits-file.ts'
import { logPurchase, spentToday } from './purchase-log.ts'

/** A purchase that is about to be signed. `id` is the digest of the intent. */
export type PlannedPurchase = { id: string; usdc: bigint; symbol: string | undefined }

/**
 * Throws unless the limits file allows a purchase, and counts it towards the day. A purchase counts once it is signed, also
 * when the service refuses it later: a signed intent may be executed until its deadline. Selling is never limited.
 */
export function enforceLimits(home: string, purchase: PlannedPurchase): void {
  const limits = readLimits(home)
  if (limits) assertWithinLimits(home, limits, purchase)
  // Every purchase is logged, so that a limit that is set later knows it.
  const { perDayUsdc: limit } = limits ?? {}
  const { isWithin, spent } = logPurchase(home, { ...purchase, limit })
  if (limit !== undefined && !isWithin) throw beyondDay(home, limit, spent, purchase.usdc)
}

/** Throws unless the day has room for a purchase, without counting it, so that the user is not asked in vain. */
export function assertWithinDay(home: string, { perDayUsdc }: Limits, { usdc }: { usdc: bigint }): void {
  const spent = spentToday(home)
  if (perDayUsdc !== undefined && spent + usdc > perDayUsdc) throw beyondDay(home, perDayUsdc, spent, usdc)
}

const beyondDay = (home: string, limit: bigint, spent: bigint, usdc: bigint) =>
  beyond(
    home,
    'perDayUsdc',
    `The purchase of ${usdcText(usdc)} and the ${usdcText(spent)} of the last 24 hours exceed the limit of ${usdcText(limit)} per day.`,
  )

/** Throws unless the limits that concern one trade allow it. Counts nothing, so that a dry run can call it. */
export function assertWithinLimits(home: string, limits: Limits, { usdc, symbol }: Omit<PlannedPurchase, 'id'>): void {
  const { perTradeUsdc, symbols, until } = limits
  if (until !== undefined && Date.now() >= until.getTime())
    throw beyond(home, 'until', `Purchases were allowed until ${until.toISOString()}.`)
  if (symbols !== undefined && (symbol === undefined || !symbols.includes(symbol)))
    throw beyond(
      home,
      'symbols',
      `${symbol ?? 'A token that no node has confirmed (--rpc)'} is not among the allowed symbols: ${symbols.join(', ') || 'none'}.`,
    )
  if (perTradeUsdc !== undefined && usdc > perTradeUsdc)
    throw beyond(
      home,
      'perTradeUsdc',
      `The purchase of ${usdcText(usdc)} exceeds the limit of ${usdcText(perTradeUsdc)} per trade.`,
    )
}

const beyond = (home: string, limit: keyof Limits, message: string) =>
  new Failure('limits', `${message} Nothing was signed.`, {
    code: 'BEYOND_LOCAL_LIMITS',
    remedy: `Only the user of this machine can change the limits, in ${limitsPath(home)}.`,
    details: { limit },
  })

const usdcText = (amount: bigint) => `${formatUnits(amount, 6)} USDC`
