const DAY_SECONDS = 86_400n

/** What an agent did within a UTC day, in USDC base units. */
type DayFigures = { turnoverUsdc: bigint; realizedPnlUsdc: bigint }

/** The figures of the day of a block (days since the epoch) and of the day before it. */
type TwoDays = { today: DayFigures; before: DayFigures }

const NOTHING: DayFigures = { turnoverUsdc: 0n, realizedPnlUsdc: 0n }

/**
 * Returns the figures as a transaction at `time` (Unix seconds) finds them. The newest block of a quiet chain may be of
 * an earlier day: its day is then the one before, or past.
 */
export function dayFiguresAt({ day, today, before }: TwoDays & { day: bigint }, time: bigint): TwoDays {
  const passed = time / DAY_SECONDS - day
  if (passed <= 0n) return { today, before }
  return { today: NOTHING, before: passed === 1n ? today : NOTHING }
}
