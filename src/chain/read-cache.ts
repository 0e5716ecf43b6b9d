import { waitUntil } from 'cloudflare:workers'
import { withDeadline } from '../concurrency.ts'
import { Refusal } from '../errors/refusal.ts'

/** A response that names the block it describes. */
export type CacheableResponse = { asOf: { blockNumber: string; blockTimestamp: string } }

/** Caches this isolate's responses about the newest block until a newer block is known or the lease expires. */
export type ReadCache = ReturnType<typeof createReadCache>

type CacheEntry = {
  key: string
  pending: Promise<CacheableResponse>
  response?: CacheableResponse
  /** When the read started, in epoch milliseconds. */
  startedAt: number
  isRenewalTaken?: boolean
  /** The read that takes the entry's place once it has a response. */
  renewal?: CacheEntry | undefined
}

const MAX_ENTRIES = 1_000
/** How long to wait for another request's read before starting our own. That request may have been canceled. */
const MAX_SHARED_READ_MS = 1_000

/**
 * Creates a cache whose responses are at most `leaseMs` old. A lease of 0 disables the cache. One caller after
 * `renewAfterMs` reads a response again while the others still get it, so that they need not all wait when it expires.
 */
export function createReadCache(leaseMs: number, renewAfterMs = leaseMs) {
  const entries = new Map<string, CacheEntry>()
  const entryOf = new WeakMap<CacheableResponse, CacheEntry>()
  let newestBlock = { number: 0n, seenAt: 0 }

  function isUsable({ startedAt, response }: CacheEntry, now: number): boolean {
    if (now - startedAt >= leaseMs) return false
    if (response === undefined || now - newestBlock.seenAt >= leaseMs) return true
    return BigInt(response.asOf.blockNumber) >= newestBlock.number
  }
  const isDueAt = ({ startedAt, response, renewal }: CacheEntry, now: number): boolean =>
    response !== undefined && renewal === undefined && now - startedAt >= renewAfterMs

  function startRead<Value extends CacheableResponse>(
    key: string,
    read: () => Promise<Value>,
    now: number,
    renewed?: CacheEntry,
  ): Promise<Value> {
    const pending = read()
    const entry: CacheEntry = { key, pending, startedAt: now }
    const add = () => {
      entries.delete(key)
      entries.set(key, entry)
    }
    if (renewed) renewed.renewal = entry
    else add()
    // Pages are large, and a client can ask for any number of them.
    for (const [oldestKey, { startedAt }] of entries) {
      if (entries.size <= MAX_ENTRIES && now - startedAt < leaseMs) break
      entries.delete(oldestKey)
    }
    const store = (response: CacheableResponse) => {
      entry.response = response
      entryOf.set(response, entry)
      if (renewed && entries.get(key) === renewed) add()
      const number = BigInt(response.asOf.blockNumber)
      // After a reorg or a chain restart a lower block number is accepted once the lease has expired.
      if (number >= newestBlock.number || now - newestBlock.seenAt >= leaseMs) newestBlock = { number, seenAt: now }
    }
    const evict = () => {
      if (renewed) renewed.renewal = undefined
      if (entries.get(key) === entry) entries.delete(key)
    }
    // Other requests await this read, so it must outlive the request that started it.
    waitUntil(pending.then(store, evict))
    return pending
  }

  const entryFor = (response: CacheableResponse): CacheEntry | undefined => {
    const entry = entryOf.get(response)
    return entry && entries.get(entry.key) === entry ? entry : undefined
  }

  return {
    /**
     * Returns the cached response, unless it is of a block before `minBlock`, or calls `read`. Concurrent calls share
     * one `read`; a rejection is not cached, and one for a client's own limit is not shared.
     */
    async getOrRead<Value extends CacheableResponse>(
      key: string,
      read: () => Promise<Value>,
      minBlock = 0n,
    ): Promise<Value> {
      const isCurrent = ({ asOf }: CacheableResponse) => BigInt(asOf.blockNumber) >= minBlock
      if (leaseMs === 0) return read()
      const now = Date.now()
      const known = entries.get(key)
      const entry = known && !isUsable(known, now) ? known.renewal : known
      if (entry === undefined || !isUsable(entry, now)) return startRead(key, read, now)
      if (isDueAt(entry, now)) return startRead(key, read, now, entry)
      if (entry.response) return isCurrent(entry.response) ? (entry.response as Value) : startRead(key, read, now)
      const pending = (entry.pending as Promise<Value>).catch(undefinedIfOverLimit)
      const shared = await withDeadline(pending, now + MAX_SHARED_READ_MS, () => undefined)
      return shared && isCurrent(shared) ? shared : startRead(key, read, now)
    },
    /** Returns whether the cache would still return this response. */
    isFresh(response: CacheableResponse): boolean {
      const entry = entryFor(response)
      return entry !== undefined && isUsable(entry, Date.now())
    },
    /** Returns true to one caller of a response that expires soon: that caller reads it again. */
    takeRenewal(response: CacheableResponse): boolean {
      const entry = entryFor(response)
      if (entry === undefined || entry.isRenewalTaken || !isDueAt(entry, Date.now())) return false
      entry.isRenewalTaken = true
      return true
    },
    /** Drops every entry, so that this isolate reads its own writes. */
    clear: (): void => entries.clear(),
  }
}

/**
 * Handles a rejection: returns undefined if the client that started the read is over its limit, and rethrows other
 * errors.
 */
const undefinedIfOverLimit = (error: unknown): undefined => {
  if (!(error instanceof Refusal && error.body.code === 'RATE_LIMITED')) throw error
}
