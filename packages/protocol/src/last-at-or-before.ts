/** Returns the last item of a list, oldest first, whose time in Unix seconds is not after the given one. */
export function lastAtOrBefore<Item extends { timestamp: number }>(
  items: readonly Item[],
  time: number,
): Item | undefined {
  let from = 0
  let to = items.length
  while (from < to) {
    const middle = (from + to) >> 1
    if ((items[middle]?.timestamp ?? 0) <= time) from = middle + 1
    else to = middle
  }
  return items[from - 1]
}
