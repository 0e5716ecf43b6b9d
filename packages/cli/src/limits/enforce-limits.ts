import { isSameSymbol } from '@agent-trading-service/protocol/find-symbol'
import { formatUnits } from 'viem'
import { Failure } from '../failure.ts'
import { type Limits, limitsPath, readLimits } from './limits-file.ts'
import { logPurchase, type Spent, spentToday } from './purchase-log.ts'

/**
 * A purchase that is about to be signed, or a registration, whose fee counts towards the day. `usdc` is in base units.
 */
export type Spending = { usdc: bigint; symbol?: string | undefined; registers?: true }

/** Registrations in 24 hours unless the limits file names another number. */
export const DEFAULT_REGISTRATIONS = 1

/**
 * Throws unless the limits file allows it, and counts it towards the day. It counts once it is signed, also when the
 * service refuses it later: a signed message may be executed until its deadline. Selling is never limited. `id` is the
 * digest.
 */
export function enforceLimits(home: string, { id, ...spending }: Spending & { id: string }): void {
  const limits = readLimits(home)
  if (limits) assertWithinLimits(home, limits, spending)
  const isWithin = (spent: Spent) => limits === undefined || problemOfDay(limits, spending, spent) === undefined
  // Everything is logged, so that a limit that is set later knows it.
  const { usdc, registers } = spending
  const { spent } = logPurchase(home, { id, usdc, registers, isWithin })
  if (limits) assertDay(home, limits, spending, spent)
}

/** Throws unless the day has room for it, without counting it, so that the user is not asked in vain. */
export const assertWithinDay = (home: string, limits: Limits, spending: Spending): void =>
  assertDay(home, limits, spending, spentToday(home))

function assertDay(home: string, limits: Limits, spending: Spending, spent: Spent): void {
  const problem = problemOfDay(limits, spending, spent)
  if (problem) throw beyond(home, ...problem)
}

/** Returns the limit per day that is exceeded, and how; undefined if none is. */
function problemOfDay(
  { perDayUsdc, registrations = DEFAULT_REGISTRATIONS }: Limits,
  { usdc, registers }: Spending,
  spent: Spent,
): [limit: keyof Limits, message: string] | undefined {
  if (registers && spent.registrations >= registrations)
    return ['registrations', `${spent.registrations} of ${registrations} registrations per day are used.`]
  if (perDayUsdc === undefined || spent.usdc + usdc <= perDayUsdc) return undefined
  const what = registers ? 'fee' : 'purchase'
  return [
    'perDayUsdc',
    `The ${what} of ${usdcText(usdc)} and the ${usdcText(spent.usdc)} of the last 24 hours exceed the limit of ${usdcText(perDayUsdc)} per day.`,
  ]
}

/** Throws unless the limits that concern one message allow it. Counts nothing, so that a dry run can call it. */
export function assertWithinLimits(home: string, limits: Limits, { usdc, symbol, registers }: Spending): void {
  const { perTradeUsdc, symbols, until } = limits
  if (until !== undefined && Date.now() >= until.getTime())
    throw beyond(home, 'until', `Purchases were allowed until ${until.toISOString()}.`)
  if (registers) return
  if (symbols !== undefined && (symbol === undefined || !symbols.some(each => isSameSymbol(each, symbol))))
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
