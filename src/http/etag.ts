import type { Context } from 'hono'
import { VERSION } from '../config.ts'
import type { CacheableResponse } from '../read-cache.ts'

/** Sets the ETag of a response that describes a block, and returns whether the client already has that response. */
export function setETag(c: Context, { blockNumber, blockTimestamp }: CacheableResponse['asOf']): boolean {
  const etag = `W/"${VERSION}-${blockNumber}-${blockTimestamp}"`
  c.header('Cache-Control', 'no-cache')
  c.header('ETag', etag)
  return matches(c.req.header('If-None-Match'), etag)
}

/** Compares weakly, as If-None-Match requires: W/"a" matches "a". */
function matches(header: string | undefined, etag: string): boolean {
  const opaque = (tag: string) => tag.trim().replace(/^W\//, '')
  return header?.split(',').some(tag => tag.trim() === '*' || opaque(tag) === opaque(etag)) ?? false
}
