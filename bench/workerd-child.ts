import { once } from 'node:events'
import { convertV4MiniflareOptions, Miniflare, type V4MiniflareOptions } from 'miniflare'
import type { ChildReport } from './child-process.ts'

// The child process of bench/workerd.ts, which runs one workerd until a stop command. Its options arrive as a message,
// because other users can read the arguments and environment of a process.

export type Command =
  | { start: V4MiniflareOptions }
  | { evict: { className: string; name: string } }
  | { measureHeap: true }
  | { cron: string }
  | { stop: true }

const report = (message: ChildReport) => process.send?.(message)
let miniflare: Miniflare | undefined

async function execute(command: Command): Promise<void> {
  if ('start' in command) {
    miniflare = new Miniflare(convertV4MiniflareOptions(command.start))
    await miniflare.ready
    return void report({ done: true })
  }
  if ('evict' in command) {
    const { className, name } = command.evict
    await miniflare?.unsafeEvictDurableObject('worker', className, { name }).catch(ignoreNotRunning)
    return void report({ done: true })
  }
  if ('measureHeap' in command) return void report({ heapBytes: await heapBytes() })
  if ('cron' in command) {
    const worker = (await miniflare?.getWorker('worker')) as unknown as { scheduled(event: object): Promise<unknown> }
    await worker.scheduled({ cron: command.cron, scheduledTime: new Date() })
    return void report({ done: true })
  }
  await miniflare?.dispose()
  process.disconnect()
}

/** Returns the size of the Worker's JavaScript heap, including buffers. */
async function heapBytes(): Promise<number> {
  const inspector = await miniflare?.getInspectorURL()
  const socket = new WebSocket(new URL('/core:user:worker', inspector).href)
  try {
    await once(socket, 'open')
    socket.send(JSON.stringify({ id: 1, method: 'Runtime.getHeapUsage' }))
    const [message] = (await once(socket, 'message')) as [{ data: string }]
    const { result } = JSON.parse(message.data) as {
      result: Record<'usedSize' | 'embedderHeapUsedSize' | 'backingStorageSize', number>
    }
    return result.usedSize + result.embedderHeapUsedSize + result.backingStorageSize
  } finally {
    socket.close()
  }
}

/** Ignores that an object cannot be evicted because it is not in memory. */
function ignoreNotRunning(error: unknown): void {
  if (!(error instanceof Error && error.message.includes('not currently running'))) throw error
}

process.on('message', (command: Command) => {
  execute(command).catch(error => report({ problem: error instanceof Error ? error.message : String(error) }))
})
process.on('disconnect', () => process.exit())
if (!process.connected) process.exit() // the parent exited while this process was loading
