import { isExecution, isPurchase } from './agent-book.ts'
import { TriggerType } from './enums.ts'
import type { Trade } from './trade-events.ts'

/**
 * Who or what closed a position: the agent's signer, its order, a rule of its ladder, the agent's owner or the
 * operator.
 */
export const CLOSERS = ['signer', 'order', 'stop-loss', 'take-profit', 'owner', 'operator'] as const
type Closer = (typeof CLOSERS)[number]

/** What the trades of a closed position say about it. Amounts are USDC base units, the price per whole token. */
export type PositionLife = {
  investedUsdc: bigint
  proceedsUsdc: bigint
  exitPriceUsdc: bigint
  /** Unix seconds. */
  closedAt: bigint
  closedBy: Closer
}

/** Returns the life of a closed position from its trades, oldest first; undefined if they have no sale. */
export function lifeOf(trades: readonly Trade[]): PositionLife | undefined {
  const executions = trades.filter(isExecution)
  const sales = executions.filter(trade => !isPurchase(trade))
  const last = sales.at(-1)
  if (last === undefined) return undefined
  const sum = (of: readonly Trade[], amount: 'usdcAmount' | 'tokenAmount') =>
    of.reduce((total, trade) => total + (trade[amount] ?? 0n), 0n)
  const proceedsUsdc = sum(sales, 'usdcAmount')
  const sold = sum(sales, 'tokenAmount')
  return {
    investedUsdc: sum(executions.filter(isPurchase), 'usdcAmount'),
    proceedsUsdc,
    exitPriceUsdc: sold === 0n ? 0n : (proceedsUsdc * wholeTokenOf(sales)) / sold,
    closedAt: last.timestamp,
    closedBy: closerOf(last),
  }
}

/** A token of a contract has at most as many decimals. */
const MAX_DECIMALS = 77

/**
 * Returns a whole token in base units, which follows from a price: no token has to be read. 0 if no sale had a price.
 */
function wholeTokenOf(sales: readonly Trade[]): bigint {
  const priced = sales.find(({ priceUsdc = 0n }) => priceUsdc > 0n)
  if (priced === undefined) return 0n
  const { usdcAmount = 0n, tokenAmount = 1n, priceUsdc } = priced
  let unit = 1n
  for (let decimals = 0; decimals < MAX_DECIMALS && (usdcAmount * unit) / tokenAmount !== priceUsdc; decimals++)
    unit *= 10n
  return unit
}

function closerOf({ source, rule }: Trade): Closer {
  if (source === 'intent') return 'signer'
  if (source !== 'automation') return source
  return rule?.triggerType === TriggerType.TakeProfit ? 'take-profit' : 'stop-loss'
}
