import type { V4MiniflareOptions } from 'miniflare'

/** What a release has of wrangler.toml: options of the Worker for miniflare, and the variables of each environment. */
export type ReleaseSettings = {
  worker: Extract<V4MiniflareOptions, { workers: unknown[] }>['workers'][number] & { compatibilityDate: string }
  environments: Record<string, Record<string, string>>
}
