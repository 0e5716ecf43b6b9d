import type { Block } from '../chain/chain.ts'

/** An oracle quote as it is `at` a block's time: price in 8 decimals per whole token, 0 when never quoted; Unix seconds. */
export type Quote = { price: bigint; updatedAt: bigint; roundId: bigint; quoted: boolean; stale: boolean; at: bigint }

/** What `latestRoundData` answers. */
export type RoundData = readonly [
  roundId: bigint,
  answer: bigint,
  startedAt: bigint,
  updatedAt: bigint,
  answeredInRound: bigint,
]

/** The quote of a round, judged at a block by a window in seconds; 0 is no window. No round is "never quoted". */
export function toQuote(round: RoundData | undefined, maxAge: bigint, block: Block): Quote {
  const at = block.timestamp
  if (round === undefined) return { price: 0n, updatedAt: 0n, roundId: 0n, quoted: false, stale: true, at }
  const [roundId, price, , updatedAt] = round
  return { price, updatedAt, roundId, quoted: true, stale: maxAge > 0n && at > updatedAt + maxAge, at }
}

/** The smallest window that is set; 0 when none is. */
export const strictestAge = (ages: readonly bigint[]): bigint =>
  ages.reduce((strictest, age) => (age > 0n && (strictest === 0n || age < strictest) ? age : strictest), 0n)
