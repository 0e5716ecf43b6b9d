import { DurableObject } from 'cloudflare:workers'
import { counters, histograms } from './families.ts'
import { createTotals, type Delta } from './recorder.ts'

/** What one isolate has recorded since its previous batch. `sequence` counts the batches of an isolate from 1. */
export type Batch = { isolate: string; sequence: number; deltas: Delta[] }

/** One look at whether trading was possible: when (Unix seconds), with which version, and what made it impossible. */
export type Check = { at: number; version: string; problems: readonly string[] }
/**
 * The checks of a UTC day: its first second, how many there were and how many found that trading was possible, and the
 * versions.
 */
export type DayOfChecks = { day: number; checks: number; ready: number; versions: string[] }
/**
 * A time in which no check found that trading was possible: of its first check and of the first good one after it (Unix
 * seconds), the version of the first, and the problems of all.
 */
export type Incident = { startedAt: number; endedAt: number | undefined; version: string; problems: string[] }

/** How often it is checked, in the minutes that are multiples of it. */
export const CHECK_SECONDS = 300
const DAY_SECONDS = 86_400
const KEPT_DAYS = 90
const KEPT_INCIDENTS = 50
const MAX_PROBLEMS = 5
const MAX_PROBLEM_CHARACTERS = 300

/** A batch is sent again within seconds, or never. */
const MAX_ISOLATES = 1_000

/** The totals, the families that they belong to, and the last batch of each isolate in the order in which they came. */
type Stored = { families: string; totals: Delta[]; sequences: [isolate: string, sequence: number][] }

const FAMILIES = JSON.stringify({ counters, histograms })

/**
 * Adds up what all isolates of the deployment count. The totals are stored with each batch, so an eviction or a deploy
 * between two scrapes loses nothing. They start at zero when a release changes the families, which readers of counters
 * recognise.
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

  /** Counts a check in the row of its day, and begins, continues or ends an incident. */
  addCheck(check: Check): void {
    const { at, version, problems } = check
    const { kv } = this.ctx.storage
    const day = at - (at % DAY_SECONDS)
    const { checks, ready, versions } = kv.get<DayOfChecks>(keyOf(day)) ?? { checks: 0, ready: 0, versions: [] }
    kv.put(keyOf(day), {
      day,
      checks: checks + 1,
      ready: ready + (problems.length === 0 ? 1 : 0),
      versions: versions.at(-1) === version ? versions : [...versions, version],
    } satisfies DayOfChecks)
    if (checks === 0) kv.delete(keyOf(day - KEPT_DAYS * DAY_SECONDS))
    const incidents = kv.get<Incident[]>(INCIDENTS_KEY) ?? []
    const next = withCheck(incidents, check)
    if (next !== incidents) kv.put(INCIDENTS_KEY, next)
  }

  /** Returns the incidents, oldest first, at most the last 50. */
  incidents(): Incident[] {
    return this.ctx.storage.kv.get<Incident[]>(INCIDENTS_KEY) ?? []
  }

  /** Returns the days with checks, oldest first, at most the last 90. */
  days(): DayOfChecks[] {
    return [...this.ctx.storage.kv.list<DayOfChecks>({ prefix: DAY_PREFIX })].map(([, row]) => row).slice(-KEPT_DAYS)
  }

  read(): Delta[] {
    return this.#totals.all()
  }
}

const INCIDENTS_KEY = 'incidents'
const DAY_PREFIX = 'day '
/** Keys are listed in the order of their days until the year 2286, when Unix seconds get another digit. */
const keyOf = (day: number) => `${DAY_PREFIX}${day}`

/** Returns the incidents with a check; the same array if the check changes nothing. */
function withCheck(incidents: Incident[], { at, version, problems }: Check): Incident[] {
  const last = incidents.at(-1)
  const open = last !== undefined && last.endedAt === undefined ? last : undefined
  const others = open ? incidents.slice(0, -1) : incidents
  if (problems.length === 0) return open ? [...others, { ...open, endedAt: at }] : incidents
  const found = problems.map(problem => problem.slice(0, MAX_PROBLEM_CHARACTERS))
  if (open === undefined)
    return [
      ...others,
      {
        startedAt: at,
        endedAt: undefined,
        version,
        problems: found.slice(0, MAX_PROBLEMS),
      },
    ].slice(-KEPT_INCIDENTS)
  const all = [...new Set([...open.problems, ...found])].slice(0, MAX_PROBLEMS)
  return all.length === open.problems.length ? incidents : [...others, { ...open, problems: all }]
}
