/** Cuts queues to `max` items in total, in equal shares: what a short queue leaves of its share goes to longer ones. */
export function inShares<Item>(queues: readonly Item[][], max: number): Item[][] {
  const shares = queues.map(() => 0)
  const byLength = queues
    .map(({ length }, index) => ({ length, index }))
    .sort((one, other) => one.length - other.length)
  let left = max
  for (const [turn, { length, index }] of byLength.entries()) {
    shares[index] = Math.min(length, Math.ceil(left / (queues.length - turn)))
    left -= shares[index]
  }
  return queues.map((queue, index) => queue.slice(0, shares[index]))
}
