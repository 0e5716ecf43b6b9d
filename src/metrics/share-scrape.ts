import { waitUntil } from 'cloudflare:workers'
import { withDeadline } from '../timeout.ts'

/** Returns a function that reads at most once per lease and shares the result; a lease of 0 shares nothing. */
export function createSharedScrape(leaseMs: number): (read: () => Promise<string>) => Promise<string> {
  let last: { startedAt: number; text: Promise<string> } | undefined

  function start(read: () => Promise<string>): Promise<string> {
    const text = read()
    last = { startedAt: Date.now(), text }
    // Other requests await this read, so it must outlive the request that started it.
    waitUntil(text.catch(() => {}))
    return text
  }

  return async read => {
    if (last === undefined || Date.now() - last.startedAt >= leaseMs) return start(read)
    const shared = await withDeadline(last.text, last.startedAt + leaseMs, () => undefined)
    return shared ?? start(read)
  }
}
