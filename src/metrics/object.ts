import { DurableObject } from 'cloudflare:workers'
import type { Delta } from './recorder.ts'
import { createTotals } from './totals.ts'

/** What one isolate has recorded since its previous batch. `sequence` counts the batches of an isolate from 1. */
export type Batch = { isolate: string; sequence: number; deltas: Delta[] }

/** A batch is sent again within seconds, or never. */
const MAX_ISOLATES = 10_000

/**
 * Adds up what all isolates of the deployment count. The totals are in memory only: after an eviction they start at zero,
 * which every reader of counters recognises as a reset. Older totals from storage would look like a reset followed by a jump.
 */
export class MetricTotalsObject extends DurableObject<Env> {
  readonly #totals = createTotals()
  readonly #sequences = new Map<string, number>()

  /** Adds a batch. A batch that was added before is ignored, so callers may repeat it. */
  add({ isolate, sequence, deltas }: Batch): void {
    if ((this.#sequences.get(isolate) ?? 0) >= sequence) return
    this.#sequences.delete(isolate)
    this.#sequences.set(isolate, sequence)
    const [oldest] = this.#sequences.keys()
    if (this.#sequences.size > MAX_ISOLATES && oldest !== undefined) this.#sequences.delete(oldest)
    this.#totals.add(deltas)
  }

  /** Returns every series. */
  read(): Delta[] {
    return this.#totals.all()
  }
}
