type Ranked = { rank: number; agentId: string; capital: string }

/**
 * Returns how many places an entry rose since an earlier leaderboard, negative if it fell; undefined if that lacks it.
 */
export function placesRisen(entry: Ranked, earlier: readonly Ranked[]): { from: number; places: number } | undefined {
  const old = earlier.find(({ agentId, capital }) => agentId === entry.agentId && capital === entry.capital)
  return old && { from: old.rank, places: old.rank - entry.rank }
}
