const PERCENT = /^(\d{1,4})(?:\.(\d{1,2}))? ?%?$/

/** What `percentToBps` accepts, to end "must be …". */
export const PERCENT_TEXT = 'percent above zero with at most 2 decimals, such as 8 or 2.5'
/** What `stopPercentToBps` accepts, to end "must be …". */
export const STOP_PERCENT_TEXT = 'percent above zero and below 100 with at most 2 decimals, such as 8 or 2.5'

/**
 * Converts percent such as `8`, `2.5` or `8%` to basis points, exactly. Undefined for zero, a sign or more than 2
 * decimals.
 */
export function percentToBps(text: string): number | undefined {
  const [, whole, fraction = ''] = PERCENT.exec(text.trim()) ?? []
  if (whole === undefined) return undefined
  const bps = Number(`${whole}${fraction.padEnd(2, '0')}`)
  return bps > 0 ? bps : undefined
}

/** The same for how far a stop-loss is below the entry price; undefined from 100 % on, where no price fires it. */
export function stopPercentToBps(text: string): number | undefined {
  const bps = percentToBps(text)
  return bps !== undefined && bps < 10_000 ? bps : undefined
}

/** Returns basis points as percent, such as `-8 %`. */
export const percentText = (bps: number): string => `${bps / 100} %`

/** Returns one stop-loss and one take-profit that each sell everything, from their distances in basis points. */
export const wholeExits = (stopLossBps: number | undefined, takeProfitBps: number | undefined) => [
  ...(stopLossBps === undefined ? [] : [{ triggerBps: -stopLossBps, exitBps: 10_000 }]),
  ...(takeProfitBps === undefined ? [] : [{ triggerBps: takeProfitBps, exitBps: 10_000 }]),
]
