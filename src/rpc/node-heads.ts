import { clockSeconds, MAX_SKEW_SECONDS } from '../clock.ts'
import type { Endpoint } from './endpoint-client.ts'
import type { Head } from './requests.ts'

/** A head, when it was first shown and when last (epoch milliseconds). */
type SeenHead = Head & { since: number; at: number }

/** A node may be this many blocks late, and at least and at most this many seconds. */
const GRACE_BLOCKS = 4
const MIN_GRACE_SECONDS = 3
const MAX_GRACE_SECONDS = 30
/** The pause between comparisons while all nodes show an old head, as on a chain that makes blocks on demand. */
const QUIET_PAUSE_MS = 10_000
/** The pause between other comparisons. */
const COMPARE_PAUSE_MS = 1_000
/** The pause between looks at whether a node that was behind has caught up. */
const RECHECK_PAUSE_MS = 10_000
/** How often a single URL is asked at once, behind which a load balancer may have several nodes. */
const REPLICAS_ASKED = 3
/** How long the newest block counts that no node has shown again: the chain may have been rewound, or restarted. */
const MEMORY_MS = 60_000
/** A node that has shown its head so lately is not asked for it again. */
const RECENT_MS = 1_000

/**
 * Knows how far each node of a pool is, from what their responses show. No single response is wrong if a node returns
 * the same block for ever: that shows only in comparison with the clock and with other nodes. So an old head makes the
 * pool ask the others, seldom; a node counts as behind while another one has newer blocks. `askHead` returns undefined
 * if a node does not respond in time; `mayAsk` tells which ones accept requests now, and `isResting` which ones have
 * failed lately.
 */
export function createNodeHeads(
  endpoints: readonly Endpoint[],
  {
    askHead,
    mayAsk,
    isResting,
    makesBlocksOnDemand,
  }: {
    askHead: (endpoint: Endpoint) => Promise<Head | undefined>
    mayAsk: (endpoint: Endpoint) => boolean
    isResting: (endpoint: Endpoint) => boolean
    makesBlocksOnDemand: boolean
  },
) {
  const isOnly = endpoints.length === 1
  const seen = new Map<Endpoint, SeenHead>()
  const behind = new Set<Endpoint>()
  let newest: SeenHead | undefined
  let comparedAt = 0
  /** Whether all nodes showed the last comparison a head, and none a new one. */
  let isQuiet = false
  /** The newest block has changed after this time. */
  let advancedAfter = 0
  /** The shortest time between two blocks that were seen: between transactions, a chain may make none for minutes. */
  let secondsPerBlock: number | undefined

  const graceSeconds = () =>
    Math.min(Math.max(GRACE_BLOCKS * (secondsPerBlock ?? 0), MIN_GRACE_SECONDS), MAX_GRACE_SECONDS)

  function see(endpoint: Endpoint, head: Head): SeenHead {
    const now = Date.now()
    const seenHead = seenAgain(seen.get(endpoint), head, now)
    seen.set(endpoint, seenHead)
    if (newest !== undefined && isFalse(newest)) newest = undefined
    if (!isFalse(head) && (newest === undefined || head.number >= newest.number || now - newest.at > MEMORY_MS)) {
      if (newest !== undefined && head.number > newest.number) {
        advancedAfter = newest.at
        const pace = (head.timestamp - newest.timestamp) / (head.number - newest.number)
        secondsPerBlock = Math.min(secondsPerBlock ?? pace, pace)
      }
      newest = seenAgain(newest, head, now)
    }
    rank(endpoint)
    return seenHead
  }

  function rank(endpoint: Endpoint) {
    const head = seen.get(endpoint)
    if (head && isUseless(head)) behind.add(endpoint)
    else behind.delete(endpoint)
  }

  /**
   * Whether a head is in the future by the clock and by another node: otherwise, the clock of the machine or the chain
   * is.
   */
  const isFalse = (head: Head): boolean => isAhead(head) && [...seen.values()].some(other => !isAhead(other))

  /** Whether a head that a node has just shown is false, or lacks blocks for longer than the grace. */
  function isUseless(head: Head): boolean {
    const { number, timestamp } = head
    if (isFalse(head)) return true
    if (newest === undefined || number >= newest.number) return false
    const grace = graceSeconds()
    return newest.timestamp - timestamp > grace || Date.now() - newest.since > grace * 1_000
  }

  /** Whether a head is old by the clock, or has not changed for as long. */
  const isOld = ({ timestamp, since }: SeenHead): boolean =>
    Math.max(clockSeconds() - timestamp, (Date.now() - since) / 1_000) > graceSeconds()

  /**
   * Asks all nodes for their newest block. While the head in use is old, one that failed lately is asked too: it may be
   * the only node that has not stopped.
   */
  async function compare({ asksResting = false } = {}): Promise<void> {
    comparedAt = Date.now()
    const isAsked = (endpoint: Endpoint) => isOnly || (mayAsk(endpoint) && (asksResting || !isResting(endpoint)))
    const asked = isOnly ? Array<Endpoint>(REPLICAS_ASKED).fill(endpoints[0] as Endpoint) : endpoints
    const heads = await Promise.all(
      asked.map(endpoint => recentHead(endpoint) ?? (isAsked(endpoint) ? askHead(endpoint) : undefined)),
    )
    const known = newest?.number ?? 0
    // If every node shows less than was known, the chain was rewound.
    if (heads.every(head => head !== undefined && head.number < known)) newest = undefined
    for (const [index, endpoint] of asked.entries()) if (heads[index]) see(endpoint, heads[index])
    for (const endpoint of asked) rank(endpoint)
    // A node that did not respond may have newer blocks.
    isQuiet = heads.every(head => head !== undefined) && (newest === undefined || isOld(newest) || isAhead(newest))
  }

  function recentHead(endpoint: Endpoint): Head | undefined {
    const head = isOnly ? undefined : seen.get(endpoint)
    return head && Date.now() - head.at < RECENT_MS ? head : undefined
  }

  const isDue = (pauseMs: number) => Date.now() - comparedAt >= pauseMs

  return {
    /** Returns the newest block that a node has shown lately. */
    newest: (): Head | undefined => newest,
    /**
     * Returns the least time between two blocks that were seen, in seconds; 0 if several shared one, undefined before
     * two were seen.
     */
    secondsPerBlock: () => secondsPerBlock,
    /** Whether the newest block has changed within a time. */
    hasAdvancedWithin: (ms: number): boolean => Date.now() - advancedAfter < ms,
    /** Whether a node lacks blocks that another one has had for longer than the grace. */
    isBehind: (endpoint: Endpoint): boolean => behind.has(endpoint),
    /** Whether it is time to look whether a node that was behind has caught up. */
    isRecheckDue: (): boolean => behind.size > 0 && isDue(RECHECK_PAUSE_MS),
    compare,
    /** Records the newest blocks that nodes have shown now, and returns what is wrong with each, as a clause. */
    judge(shown: readonly { endpoint: Endpoint; head: Head }[]): (string | undefined)[] {
      for (const { endpoint, head } of shown) see(endpoint, head)
      return shown.map(({ endpoint, head }) => {
        rank(endpoint)
        const { number, timestamp } = newest ?? head
        if (isFalse(head)) return `shows a block that is ${head.timestamp - clockSeconds()} seconds in the future`
        if (!isUseless(head)) return undefined
        return `is ${number - head.number} blocks (${timestamp - head.timestamp} seconds) behind the others`
      })
    },
    /**
     * Returns whether a node's response may be used: it shows `head`, lacks what was requested (`isAbsent`) or shows
     * other newest state. Compares the nodes first if the node may be frozen.
     */
    async isUsable(
      endpoint: Endpoint,
      { head, isAbsent, isNewest }: { head: Head | undefined; isAbsent: boolean; isNewest: boolean },
    ): Promise<boolean> {
      if (head !== undefined) {
        const seenHead = see(endpoint, head)
        // The only node of a chain that makes blocks on demand has nothing to be compared with.
        const mayBeFrozen = isOld(seenHead) && !(isOnly && makesBlocksOnDemand)
        const isDoubtful = isUseless(head)
          ? isDue(COMPARE_PAUSE_MS)
          : (mayBeFrozen || (isAhead(head) && !isOnly)) && isDue(isQuiet ? QUIET_PAUSE_MS : COMPARE_PAUSE_MS)
        if (isDoubtful) await compare({ asksResting: true })
        return !isUseless(head)
      }
      if (isOnly || !(isAbsent || isNewest)) return true
      if (!isAbsent) return !behind.has(endpoint)
      // Something may wait for it, and another node may have it in the next block already.
      const blockMs = Math.max(RECENT_MS, 1_000 * (secondsPerBlock ?? 0))
      if (Date.now() - (seen.get(endpoint)?.since ?? 0) >= blockMs && isDue(blockMs)) await compare()
      return (seen.get(endpoint)?.number ?? 0) >= (newest?.number ?? 0)
    },
  }
}

/** Whether a head is further in the future than clocks may differ. */
const isAhead = ({ timestamp }: Head): boolean => timestamp - clockSeconds() > MAX_SKEW_SECONDS

/** Returns a head that was shown now, given what was shown before. */
const seenAgain = (before: SeenHead | undefined, head: Head, now: number): SeenHead => ({
  ...head,
  since: before?.number === head.number ? before.since : now,
  at: now,
})
