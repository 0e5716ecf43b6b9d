import type { Context } from 'hono'
import { bytesToHex } from 'viem'
import { VERSION } from '../config/config.ts'
import type { CacheableResponse } from '../read-cache.ts'
import { jsonOf } from './in-memory-response-cache.ts'

const DIGEST_BYTES = 8

/**
 * Sets the ETag of a response that describes a block, and returns whether the client already has that response. The tag
 * has a digest of the content, because a reorg can put another block at the same number and second.
 */
export async function setETag(c: Context, output: CacheableResponse): Promise<boolean> {
  const { blockNumber, blockTimestamp } = output.asOf
  const etag = `W/"${VERSION}-${blockNumber}-${blockTimestamp}-${await digestOf(jsonOf(output))}"`
  c.header('Cache-Control', 'no-cache')
  c.header('ETag', etag)
  return matches(c.req.header('If-None-Match'), etag)
}

async function digestOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return bytesToHex(new Uint8Array(digest, 0, DIGEST_BYTES)).slice(2)
}

/** Compares weakly, as If-None-Match requires: W/"a" matches "a". */
function matches(header: string | undefined, etag: string): boolean {
  const opaque = (tag: string) => tag.trim().replace(/^W\//, '')
  return header?.split(',').some(tag => tag.trim() === '*' || opaque(tag) === opaque(etag)) ?? false
}
