import type { Delta } from './recorder.ts'

/** As many series as one exposition may have. Together they are smaller than 2 MB, which is what an object stores as one value. */
const MAX_SERIES = 5_000

/** Creates empty totals, which add up deltas by series. */
export function createTotals() {
  const series = new Map<string, Delta>()
  return {
    add(deltas: readonly Delta[]) {
      for (const { name, labels, values } of deltas) {
        const key = `${name}\n${labels.join('\n')}`
        const known = series.get(key)?.values
        if (known) for (const [index, value] of values.entries()) known[index] = (known[index] ?? 0) + value
        else if (series.size < MAX_SERIES) series.set(key, { name, labels, values: [...values] })
      }
    },
    /** Returns up to `limit` series and forgets them. */
    take(limit: number): Delta[] {
      const taken = [...series].slice(0, limit)
      for (const [key] of taken) series.delete(key)
      return taken.map(([, delta]) => delta)
    },
    all: (): Delta[] => [...series.values()],
  }
}
