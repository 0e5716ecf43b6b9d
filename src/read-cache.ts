import { waitUntil } from 'cloudflare:workers'
import { patience } from './timeout.ts'

/** An answer that says which block it describes. */
export type Described = { asOf: { blockNumber: string; blockTimestamp: string } }

/** Answers of this isolate about the newest block, given again while no newer block is known and the lease runs. */
export type Memory = {
  /** The answer under a key, read at most once at a time. Throws what `read` throws, and keeps nothing of it. */
  recall<T extends Described>(key: string, read: () => Promise<T>): Promise<T>
  /** Whether an answer that was recalled may still be given. */
  holds(answer: Described): boolean
  /** Drops every answer: the isolate has changed the chain, and reads what it wrote. */
  forget(): void
}

type Entry = { key: string; answer: Promise<Described>; settled?: Described; since: number }

const ENTRIES = 1_000
/** Who began a read may be gone: others wait this long for it before they read themselves. */
const JOIN_MS = 1_000

/** A memory whose answers are at most as old as the lease, in milliseconds; without a lease it keeps nothing. */
export function createMemory(leaseMs: number): Memory {
  const entries = new Map<string, Entry>()
  const entryOf = new WeakMap<Described, Entry>()
  let newest = { number: 0n, at: 0 }

  const isCurrent = ({ since, settled }: Entry, now: number) =>
    now - since < leaseMs &&
    (settled === undefined || BigInt(settled.asOf.blockNumber) >= newest.number || now - newest.at >= leaseMs)

  function begin<T extends Described>(key: string, read: () => Promise<T>, now: number): Promise<T> {
    const answer = read()
    const entry: Entry = { key, answer, since: now }
    entries.delete(key)
    entries.set(key, entry)
    const [oldest] = entries.keys()
    if (entries.size > ENTRIES && oldest !== undefined) entries.delete(oldest)
    const settle = (settled: Described) => {
      entry.settled = settled
      entryOf.set(settled, entry)
      const number = BigInt(settled.asOf.blockNumber)
      // A chain that lost blocks, or began anew, is believed again once the lease has run out.
      if (number >= newest.number || now - newest.at >= leaseMs) newest = { number, at: now }
    }
    const drop = () => {
      if (entries.get(key) === entry) entries.delete(key)
    }
    waitUntil(answer.then(settle, drop)) // others wait for it, also when the request that began it is gone
    return answer
  }

  return {
    async recall<T extends Described>(key: string, read: () => Promise<T>): Promise<T> {
      if (leaseMs === 0) return read()
      const now = Date.now()
      const entry = entries.get(key)
      if (entry === undefined || !isCurrent(entry, now)) return begin(key, read, now)
      if (entry.settled) return entry.settled as T
      return ((await patience(entry.answer, now + JOIN_MS, () => undefined)) as T | undefined) ?? begin(key, read, now)
    },
    holds(answer) {
      const entry = entryOf.get(answer)
      return entry !== undefined && entries.get(entry.key) === entry && isCurrent(entry, Date.now())
    },
    forget: () => entries.clear(),
  }
}
