import type { Context } from 'hono'
import { VERSION } from '../config.ts'

type AsOf = { blockNumber: string; blockTimestamp: string }

/** What an answer is true of: the block that it says it describes; undefined where it describes none, or is behind. */
function blockOf(answer: unknown): AsOf | undefined {
  if (typeof answer !== 'object' || answer === null || !('asOf' in answer)) return undefined
  return 'lagBlocks' in answer && answer.lagBlocks !== 0 ? undefined : (answer.asOf as AsOf)
}

/**
 * A quote ages with the signature it is made for; what the keeper did and what was sampled is no matter of the block; and
 * of two branches, which may have a block of the same number and second, the history is not the same.
 */
export const isNeverKept = (path: string) =>
  /\/(quote|automation|equity-history|stats|trades|closed-positions)$|^\/agents$|\/by-owner\//.test(path)

/**
 * Sets the caching headers of a read: one that describes a block has it as its ETag and must be asked for again, what
 * does not is not stored. Answers whether the client has this very answer.
 */
export function isUnchanged(c: Context, path: string, answer: unknown): boolean {
  const block = isNeverKept(path) ? undefined : blockOf(answer)
  if (block === undefined) {
    c.header('Cache-Control', 'no-store')
    return false
  }
  const etag = `W/"${VERSION}-${block.blockNumber}-${block.blockTimestamp}"`
  c.header('Cache-Control', 'no-cache')
  c.header('ETag', etag)
  return matches(c.req.header('If-None-Match'), etag)
}

/** If-None-Match compares weakly: the strength of a tag does not count. */
function matches(header: string | undefined, etag: string): boolean {
  const bare = (tag: string) => tag.trim().replace(/^W\//, '')
  return header?.split(',').some(tag => tag.trim() === '*' || bare(tag) === bare(etag)) ?? false
}
