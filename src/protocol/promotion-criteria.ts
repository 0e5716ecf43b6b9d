/** The criteria of an agent's promotion to the next track, as `criteriaOf` of the PromotionCriteria returns them. */
export type PromotionCriteria = {
  trades: bigint
  minTrades: bigint
  /** When the agent entered its track, in Unix seconds. */
  enteredAt: bigint
  /** Seconds. */
  evaluationPeriod: bigint
  /** From 0 to 100. */
  score: bigint
  minScore: bigint
  drawdownBps: bigint
  /** 0 is no limit. */
  maxDrawdownBps: bigint
  /** The largest realized loss of a UTC day, in USDC base units. */
  dayLossUsdc: bigint
  /** 0 is no limit. */
  maxDayLossUsdc: bigint
  /** Open positions whose capital mode is not that of the next track. */
  openPositions: bigint
}
