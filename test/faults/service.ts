import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startPeer } from '../../bench/peers/express/start.ts'
import { bundleWorker, startWorkerd } from '../../bench/workerd.ts'
import { freePort } from '../../devnet/anvil.ts'

/** What is tested, in a process of its own that can be killed and started again on what it has stored. */
export type Service = {
  url: string
  /** Everything that it has printed, before its restarts too. */
  logs(): string
  /** Ends it without a warning and starts it again. */
  kill(): Promise<void>
  /** Breaks the object of a lane off in the middle of what it does. */
  abort(lane: string): Promise<void>
  /** Throws the object of a lane out of memory. */
  evict(lane: string): Promise<void>
  stop(): Promise<void>
}

export type StartService = (vars: Record<string, string>) => Promise<Service>

/** Bundles the service once, with the door for the harness, and answers how to start it on fresh storage. */
export async function prepareService(): Promise<{ start: StartService; remove(): void }> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-faults-'))
  const bundle = await bundleWorker(join(import.meta.dirname, 'worker.ts'), folder)
  return {
    remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }),
    async start(vars) {
      const options = { vars, bundle, persistTo: mkdtempSync(join(folder, 'storage-')), port: await freePort() }
      return restartable(() => startWorkerd(options), {
        evict: (workerd, lane) => workerd.evict({ className: 'ExecutorLane', name: lane }),
        abort: async ({ url }, lane) => void (await fetch(`${url}/faults/abort?lane=${lane}`)),
      })
    },
  }
}

/** The Express relay in the service's place; it has no objects that could be thrown out. */
export const startExpress: StartService = async vars => {
  const port = await freePort()
  return restartable(() => startPeer({ vars, port }), { evict: async () => {}, abort: async () => {} })
}

const PATIENCE_MS = 3_000
const inTime = (work: Promise<void>): Promise<boolean> =>
  Promise.race([work.then(() => true), sleep(PATIENCE_MS, false, { ref: false })])

type Running = { url: string; logs(): string; kill9(): Promise<void>; stop(): Promise<void> }

async function restartable<R extends Running>(
  start: () => Promise<R>,
  doors: Record<'abort' | 'evict', (running: R, lane: string) => Promise<void>>,
): Promise<Service> {
  let running = await start()
  let earlier = ''
  const kill = async () => {
    await running.kill9()
    earlier += running.logs()
    running = await start()
  }
  return {
    url: running.url,
    logs: () => earlier + running.logs(),
    kill,
    abort: lane => doors.abort(running, lane),
    // Throwing out an object that is at work can block the host of workerd for ever: then all of it goes.
    async evict(lane) {
      if (!(await inTime(doors.evict(running, lane)))) await kill()
    },
    async stop() {
      if (!(await inTime(running.stop()))) await running.kill9()
    },
  }
}
