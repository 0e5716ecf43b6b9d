/** How long the log keeps events. */
export type Retention = {
  /** Every event is kept for this long: as long as a webhook retries. */
  minAgeMs: number
  /** How many older events of an agent and a type are kept. */
  perAgentAndType: number
  /** The most rows of the log. Beyond it, the agents with most rows lose their oldest, whatever their age. */
  total: number
  /** How many posted prices are kept, besides the newest of each token. They take the place of no other rows. */
  prices: number
  /** Rows are deleted each time that this many were logged. */
  interval: number
}

export const RETENTION: Retention = {
  minAgeMs: 48 * 3_600_000,
  perAgentAndType: 1_000,
  total: 2_000_000,
  prices: 2_000,
  interval: 5_000,
}

/** The rows of one agent and type in the log, and how many of them are older than the minimum age. */
export type Share = { agent: number | null; type: string; rows: number; old: number }

/**
 * Returns the shares that must shrink, with how many of their newest rows they keep. An agent's old rows make room for
 * its own rows alone. If the log is still too large, all shares above one size are cut to it, so those below lose
 * nothing.
 */
export function rowsToKeep<S extends Share>(
  shares: readonly S[],
  { perAgentAndType, total }: Pick<Retention, 'perAgentAndType' | 'total'>,
): (S & { keep: number })[] {
  const own = shares.map(share => ({
    ...share,
    keep: Math.min(share.rows, Math.max(perAgentAndType, share.rows - share.old)),
  }))
  const most = largestThatFits(
    own.map(({ keep }) => keep),
    total,
  )
  return own.map(share => ({ ...share, keep: Math.min(share.keep, most) })).filter(({ rows, keep }) => keep < rows)
}

/** Returns the size to which larger ones are cut so that all together are at most `total`. */
function largestThatFits(sizes: readonly number[], total: number): number {
  const ascending = sizes.toSorted((a, b) => a - b)
  let left = total
  for (const [index, size] of ascending.entries()) {
    const equalPart = Math.floor(left / (ascending.length - index))
    if (size > equalPart) return equalPart
    left -= size
  }
  return Number.POSITIVE_INFINITY
}
