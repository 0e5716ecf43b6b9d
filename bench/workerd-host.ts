import { convertV4MiniflareOptions, Miniflare, type V4MiniflareOptions } from 'miniflare'
import type { Report } from './child-report.ts'

// The child process of bench/workerd.ts: it keeps one workerd running until it is told to stop. Its options come as a
// message, because arguments and environment of a process can be read by others.

export type Order = { start: V4MiniflareOptions } | { evict: { className: string; name: string } } | { stop: true }

const report = (message: Report) => process.send?.(message)
let miniflare: Miniflare | undefined

async function obey(order: Order): Promise<void> {
  if ('start' in order) {
    miniflare = new Miniflare(convertV4MiniflareOptions(order.start))
    await miniflare.ready
    return void report({ url: (await miniflare.unsafeGetDirectURL()).origin })
  }
  if ('evict' in order) {
    const { className, name } = order.evict
    await miniflare?.unsafeEvictDurableObject('worker', className, { name }).catch(ignoreAsleep)
    return void report({ done: true })
  }
  await miniflare?.dispose()
  process.disconnect()
}

/** An object that is not in memory has nothing to be thrown out of. */
function ignoreAsleep(error: unknown): void {
  if (!(error instanceof Error && error.message.includes('not currently running'))) throw error
}

process.on('message', (order: Order) => {
  obey(order).catch(error => report({ problem: error instanceof Error ? error.message : String(error) }))
})
process.on('disconnect', () => process.exit())
if (!process.connected) process.exit() // whoever started this ended while it was loading
