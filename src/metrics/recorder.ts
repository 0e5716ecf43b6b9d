import { type CounterName, counters, type HistogramName, histograms, type LabelsOf } from './families.ts'

/**
 * What was recorded for one series: the family's name, the label values in the family's order, and the values. A
 * counter has one value. A histogram has the count of each bucket, of what exceeds the last bucket, and the sum.
 */
export type Delta = { name: CounterName | HistogramName; labels: string[]; values: number[] }

/**
 * More series than the service can have; a fault in a label then costs its series instead of memory. Together they are
 * smaller than 2 MB, which is what an object stores as one value.
 */
const MAX_SERIES = 5_000

/** What this isolate has recorded since `takeDeltas`. */
let recorded = createTotals()
let onRecord: () => void = () => {}

/** Calls a function after each record from now on, for the delivery of this isolate's records. */
export function setRecordListener(listener: () => void): void {
  onRecord = listener
}

/** Adds to a counter of this isolate. */
export function count<Name extends CounterName>(
  name: Name,
  labels: LabelsOf<(typeof counters)[Name]['labels']>,
  amount = 1,
): void {
  record(name, counters[name].labels, labels, [amount])
}

/** Records a duration in seconds in a histogram of this isolate. */
export function observe<Name extends HistogramName>(
  name: Name,
  labels: LabelsOf<(typeof histograms)[Name]['labels']>,
  seconds: number,
): void {
  const { buckets, labels: names } = histograms[name]
  const above = buckets.findIndex(bound => seconds <= bound)
  const counts = Array<number>(buckets.length + 1).fill(0)
  counts[above === -1 ? buckets.length : above] = 1
  record(name, names, labels, [...counts, seconds])
}

function record(
  name: Delta['name'],
  names: readonly string[],
  given: Readonly<Record<string, string>>,
  values: number[],
): void {
  recorded.add([{ name, labels: names.map(label => given[label] ?? ''), values }])
  onRecord()
}

export function takeDeltas(): Delta[] {
  const taken = recorded.all()
  recorded = createTotals()
  return taken
}

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
