/** Whose state a read shows: an agent's, or that of an account with nonces of its own. */
export type Subject = `agent:${string}` | `account:${string}`

/**
 * The newest blocks that this isolate has shown, by subject: no later answer about a subject comes from an older block.
 */
export type MinBlocks = ReturnType<typeof createMinBlocks>

const MAX_SUBJECTS = 20_000

/**
 * Creates a memory that forgets a block after `memoryMs`: after a reorg or a restart of the chain, its nodes may reach
 * the block late or never.
 */
export function createMinBlocks(memoryMs: number) {
  const shown = new Map<Subject, { block: bigint; at: number }>()

  function find(subject: Subject): bigint | undefined {
    const entry = shown.get(subject)
    return entry !== undefined && Date.now() - entry.at < memoryMs ? entry.block : undefined
  }

  return {
    /** Returns the block from which a read must come at least; undefined if nothing was shown yet. */
    of: (...subjects: Subject[]): bigint | undefined => newest(...subjects.map(find)),
    /** Records that an answer about a subject showed a block. */
    raise(block: bigint, ...subjects: Subject[]): void {
      for (const subject of subjects) {
        if (block < (find(subject) ?? 0n)) continue
        shown.delete(subject)
        shown.set(subject, { block, at: Date.now() })
        const [oldest] = shown.keys()
        if (shown.size > MAX_SUBJECTS && oldest !== undefined) shown.delete(oldest)
      }
    },
  }
}

export const newest = (...blocks: readonly (bigint | undefined)[]): bigint | undefined =>
  blocks.reduce(
    (high, block) => (high === undefined || (block !== undefined && block > high) ? block : high),
    undefined,
  )
