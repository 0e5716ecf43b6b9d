import { waitUntil } from 'cloudflare:workers'
import { withDeadline } from '../concurrency.ts'
import { histograms } from './families.ts'
import type { Batch, Check, DayOfChecks, Incident, MetricTotalsObject } from './object.ts'
import { createTotals, type Delta, setRecordListener, takeDeltas } from './recorder.ts'

/** The metrics of a deployment. */
export type Metrics = ReturnType<typeof createMetrics>

type MetricBindings = {
  METRIC_TOTALS: DurableObjectNamespace<MetricTotalsObject>
  /** The dataset of Workers Analytics Engine, where the deployment has one. */
  METRICS?: AnalyticsEngineDataset
}

const SCRAPE_LEASE_MS = 5_000
const FLUSH_INTERVAL_MS = 5_000
/** A flush that has not ended by then has died with the request that ran it. */
const MAX_FLUSH_MS = 20_000
/** The platform accepts 250 data points per invocation. */
const MAX_DATA_POINTS = 200

/**
 * Creates the client of the metrics. `isShared` is whether scrapes share their result. Batches are numbered, so that
 * one whose response was lost can be sent again.
 */
export function createMetrics({ METRIC_TOTALS, METRICS }: MetricBindings, isShared: boolean) {
  const object = () => METRIC_TOTALS.getByName('totals')
  const unwritten = createTotals()
  let isolate = ''
  let sequence = 0
  let batch: Batch | undefined
  let scheduledAt = Number.NEGATIVE_INFINITY

  /** Throws if the totals are unreachable; the batch is sent again by the next flush. */
  async function flush(): Promise<void> {
    const isRepeated = batch !== undefined
    batch ??= nextBatch()
    if (batch === undefined) return
    const sent = batch
    await object().add(sent)
    if (batch === sent) batch = undefined
    if (isRepeated) await flush()
  }

  function nextBatch(): Batch | undefined {
    const deltas = takeDeltas()
    if (METRICS) writeDataPoints(METRICS, deltas)
    if (deltas.length === 0) return undefined
    if (isolate === '') isolate = crypto.randomUUID()
    return { isolate, sequence: ++sequence, deltas }
  }

  function writeDataPoints(dataset: AnalyticsEngineDataset, deltas: readonly Delta[]) {
    unwritten.add(deltas)
    for (const delta of unwritten.take(MAX_DATA_POINTS)) dataset.writeDataPoint(toDataPoint(delta))
  }

  async function flushLater(): Promise<void> {
    await scheduler.wait(FLUSH_INTERVAL_MS)
    scheduledAt = Number.NEGATIVE_INFINITY
    await flush().catch(() => {})
  }

  return {
    /** Delivers what this isolate has recorded, from now on at most every five seconds. No request waits for it. */
    start() {
      setRecordListener(() => {
        const now = Date.now()
        if (now - scheduledAt < MAX_FLUSH_MS) return
        scheduledAt = now
        try {
          waitUntil(flushLater())
        } catch {
          scheduledAt = Number.NEGATIVE_INFINITY // outside of a request; the next record schedules the flush
        }
      })
    },
    /**
     * Returns the counters and histograms of all isolates, with what this one has recorded so far. This and the
     * following throw if the totals are unreachable.
     */
    async read(): Promise<Delta[]> {
      await flush()
      return object().read()
    },
    /** Counts a check of whether trading is possible. */
    addCheck: async (check: Check): Promise<void> => object().addCheck(check),
    /** Returns the checks of each of the last 90 days, oldest first. */
    days: async (): Promise<DayOfChecks[]> => object().days(),
    /** Returns when trading was not possible, oldest first. */
    incidents: async (): Promise<Incident[]> => object().incidents(),
    /** Returns the text that `scrape` returns, or that it returned to another request less than five seconds ago. */
    share: createSharedScrape(isShared ? SCRAPE_LEASE_MS : 0),
  }
}

/** Returns a function that reads at most once per lease and shares the result; a lease of 0 shares nothing. */
function createSharedScrape(leaseMs: number): (read: () => Promise<string>) => Promise<string> {
  let last: { startedAt: number; text: Promise<string> } | undefined

  function start(read: () => Promise<string>): Promise<string> {
    const text = read()
    last = { startedAt: Date.now(), text }
    // Other requests await this read, so it must outlive the request that started it.
    waitUntil(text.catch(() => {}))
    return text
  }

  return async read => {
    if (last === undefined || Date.now() - last.startedAt >= leaseMs) return start(read)
    const shared = await withDeadline(last.text, last.startedAt + leaseMs, () => undefined)
    return shared ?? start(read)
  }
}

/** Returns the data point of a delta: blobs are the name and the labels, doubles the count, the sum and the buckets. */
function toDataPoint({ name, labels, values }: Delta): AnalyticsEngineDataPoint {
  const isHistogram = Object.hasOwn(histograms, name)
  const buckets = values.slice(0, -1)
  const count = buckets.reduce((sum, value) => sum + value, 0)
  return {
    indexes: [name],
    blobs: [name, ...labels],
    doubles: isHistogram ? [count, values.at(-1) ?? 0, ...buckets] : values,
  }
}
