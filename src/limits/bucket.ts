/** A leaky bucket: it holds so much, and what was used of it drains evenly in this time. */
export type BucketSize = { holds: number; seconds: number }

/** How much of a bucket was used, at a time in milliseconds. */
export type BucketLevel = { used: number; at: number }

/** Returns what is still used of a bucket. */
export const usedAt = ({ used, at }: BucketLevel, { holds, seconds }: BucketSize, now: number): number =>
  Math.max(0, used - (holds * Math.max(0, now - at)) / (1_000 * seconds))

/** Returns the seconds until this much of a bucket has drained. */
export const secondsToDrain = (amount: number, { holds, seconds }: BucketSize): number =>
  Math.ceil(holds === 0 ? seconds : (amount / holds) * seconds)
