import type { Address } from 'viem'
import { usdcValue } from './oracle-price.ts'
import type { Trade, TradeType } from './trade-events.ts'

// What an agent's trades add up to, and its equity from that, as `TradeRouterLens` and `AgentLedger` compute it.

/** The tokens of an open position in base units, and what they cost in USDC base units. */
export type Holding = { amount: bigint; cost: bigint }

/** What an agent's trades add up to, in USDC base units. It has at most one open position of a token. */
export type AgentBook = {
  /** PnL of all sales since the registration. */
  realized: bigint
  /** PnL of the sales since the last promotion, and its highest value after one of them; at least 0. */
  trackRealized: bigint
  peak: bigint
  holdings: Readonly<Record<Address, Holding>>
}

export const EMPTY_BOOK: AgentBook = { realized: 0n, trackRealized: 0n, peak: 0n, holdings: {} }

type BookedTrade = Pick<Trade, 'type' | 'token' | 'usdcAmount' | 'tokenAmount' | 'realizedPnlUsdc'>

const PURCHASES: readonly TradeType[] = ['PositionOpened', 'PositionIncreased']

/** Returns whether a trade bought or sold something. */
export const isExecution = ({ type }: Pick<Trade, 'type'>): boolean => type !== 'ExitLadderUpdated'

/** Returns whether a trade is a purchase. */
export const isPurchase = ({ type }: Pick<Trade, 'type'>): boolean => PURCHASES.includes(type)

/** Returns the book after a trade. */
export function bookTrade(book: AgentBook, trade: BookedTrade): AgentBook {
  if (!isExecution(trade)) return book
  const { token, usdcAmount = 0n, tokenAmount = 0n, realizedPnlUsdc = 0n } = trade
  const { [token]: held = { amount: 0n, cost: 0n }, ...others } = book.holdings
  if (isPurchase(trade)) {
    const bought = { amount: held.amount + tokenAmount, cost: held.cost + usdcAmount }
    return { ...book, holdings: { ...others, [token]: bought } }
  }
  const amount = held.amount - tokenAmount
  const left = { amount, cost: held.cost - (usdcAmount - realizedPnlUsdc) }
  const trackRealized = book.trackRealized + realizedPnlUsdc
  return {
    realized: book.realized + realizedPnlUsdc,
    trackRealized,
    peak: trackRealized > book.peak ? trackRealized : book.peak,
    holdings: amount === 0n ? others : { ...others, [token]: left },
  }
}

/** Returns the book after a promotion, which starts a new track record. */
export const promoteBook = (book: AgentBook): AgentBook => ({ ...book, trackRealized: 0n, peak: 0n })

/** Returns what the open positions of a book cost, in USDC base units. */
export const usedOf = ({ holdings }: AgentBook): bigint =>
  Object.values(holdings).reduce((sum, { cost }) => sum + cost, 0n)

/** An agent's equity in USDC base units. */
type BookEquity = { equity: bigint; unrealized: bigint; drawdownBps: number; openCount: number }

const BPS = 10_000n

/**
 * Returns the equity of a book under an allocation cap. `priceOf` is the token's last price with 8 decimals; a position
 * without one counts at its cost.
 */
export function equityOf(
  { trackRealized, peak, holdings }: AgentBook,
  cap: bigint,
  { priceOf, decimalsOf }: { priceOf: (token: Address) => bigint | undefined; decimalsOf: (token: Address) => number },
): BookEquity {
  const held = Object.entries(holdings) as [Address, Holding][]
  let unrealized = 0n
  for (const [token, { amount, cost }] of held) {
    const price = priceOf(token)
    if (price !== undefined) unrealized += usdcValue(amount, { price, decimals: decimalsOf(token) }) - cost
  }
  const sum = cap + trackRealized + unrealized
  const equity = sum > 0n ? sum : 0n
  const highest = cap + peak
  const drawdownBps = equity < highest ? Number(((highest - equity) * BPS) / highest) : 0
  return { equity, unrealized, drawdownBps, openCount: held.length }
}

/** Returns a book as text. */
export const serializeBook = ({ realized, trackRealized, peak, holdings }: AgentBook): string =>
  JSON.stringify([
    `${realized}`,
    `${trackRealized}`,
    `${peak}`,
    ...Object.entries(holdings).map(([token, { amount, cost }]) => [token, `${amount}`, `${cost}`]),
  ])

type SerializedBook = [realized: string, trackRealized: string, peak: string, ...holdings: [Address, string, string][]]

/** Returns the book of a text. */
export function parseBook(text: string): AgentBook {
  const [realized, trackRealized, peak, ...holdings] = JSON.parse(text) as SerializedBook
  return {
    realized: BigInt(realized),
    trackRealized: BigInt(trackRealized),
    peak: BigInt(peak),
    holdings: Object.fromEntries(
      holdings.map(([token, amount, cost]) => [token, { amount: BigInt(amount), cost: BigInt(cost) }]),
    ),
  }
}
