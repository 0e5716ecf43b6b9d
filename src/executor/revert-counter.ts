import type { Hex } from 'viem'
import type { IntentKind } from './relay-types.ts'

/** A reverted transaction of an intent. `at` is when it was sent, in milliseconds. */
export type Revert = { party: string; digest: Hex; kind: IntentKind; at: number }

export type RevertCounter = ReturnType<typeof createRevertCounter>

/** The longest time for which a revert counts. */
export const MAX_REVERT_AGE_MS = 86_400_000
const MAX_PARTIES = 10_000

/**
 * Counts the intents of each party that reverted. A body counts once however often it reverted, because anyone can post
 * it again.
 */
export function createRevertCounter(stored: readonly Revert[]) {
  const reverts = new Map<string, Map<Hex, Revert>>()
  for (const revert of stored) add(revert)

  function add(revert: Revert) {
    const { party, digest } = revert
    const ofParty = reverts.get(party) ?? new Map<Hex, Revert>()
    if (!ofParty.has(digest)) ofParty.set(digest, revert)
    reverts.delete(party)
    reverts.set(party, ofParty)
    if (reverts.size > MAX_PARTIES) forgetOld()
  }

  function forgetOld() {
    const since = Date.now() - MAX_REVERT_AGE_MS
    for (const [party, ofParty] of reverts) {
      for (const { digest, at } of ofParty.values()) if (at <= since) ofParty.delete(digest)
      if (ofParty.size === 0) reverts.delete(party)
    }
  }

  return {
    add,

    /** Forgets a revert that a reorg took back. */
    remove(party: string, digest: Hex) {
      reverts.get(party)?.delete(digest)
    },

    /** Returns when the party's intents of the given kinds (all by default) reverted, newest first, back to `since`. */
    timesSince(party: string, since: number, kinds?: readonly IntentKind[]): number[] {
      return [...(reverts.get(party)?.values() ?? [])]
        .filter(({ at, kind }) => at > since && (kinds === undefined || kinds.includes(kind)))
        .map(({ at }) => at)
        .sort((a, b) => b - a)
    },
  }
}
