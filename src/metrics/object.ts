import { DurableObject } from 'cloudflare:workers'
import { counters, histograms } from './families.ts'
import { createTotals, type Delta } from './recorder.ts'

/** What one isolate has recorded since its previous batch. `sequence` counts the batches of an isolate from 1. */
export type Batch = { isolate: string; sequence: number; deltas: Delta[] }

/** A batch is sent again within seconds, or never. */
const MAX_ISOLATES = 1_000

/** The totals, the families that they belong to, and the last batch of each isolate in the order in which they came. */
type Stored = { families: string; totals: Delta[]; sequences: [isolate: string, sequence: number][] }

const FAMILIES = JSON.stringify({ counters, histograms })

/**
 * Adds up what all isolates of the deployment count. The totals are stored with each batch, so an eviction or a deploy between
 * two scrapes loses nothing. They start at zero when a release changes the families, which readers of counters recognise.
 */
export class MetricTotalsObject extends DurableObject<Env> {
  readonly #totals = createTotals()
  readonly #sequences: Map<string, number>

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    const stored = ctx.storage.kv.get<Stored>('totals')
    if (stored?.families === FAMILIES) this.#totals.add(stored.totals)
    this.#sequences = new Map(stored?.sequences)
  }

  /** Adds a batch. A batch that was added before is ignored, so callers may repeat it. */
  add({ isolate, sequence, deltas }: Batch): void {
    if ((this.#sequences.get(isolate) ?? 0) >= sequence) return
    this.#sequences.delete(isolate)
    this.#sequences.set(isolate, sequence)
    const [oldest] = this.#sequences.keys()
    if (this.#sequences.size > MAX_ISOLATES && oldest !== undefined) this.#sequences.delete(oldest)
    this.#totals.add(deltas)
    const stored: Stored = { families: FAMILIES, totals: this.#totals.all(), sequences: [...this.#sequences] }
    this.ctx.storage.kv.put('totals', stored)
  }

  /** Returns every series. */
  read(): Delta[] {
    return this.#totals.all()
  }
}
