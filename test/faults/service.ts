import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startPeer } from '../../bench/peer.ts'
import { bundleWorker, startWorkerd } from '../../bench/workerd.ts'
import { freePort } from '../../devnet/anvil.ts'

/** The service under test, in its own process that can be killed and restarted on its storage. */
export type Service = {
  url: string
  /** Returns everything it printed, including before restarts. */
  logs(): string
  /** Kills it with SIGKILL and starts it again. */
  kill(): Promise<void>
  /** Aborts the Durable Object of a lane. */
  abort(lane: string): Promise<void>
  /** Evicts the Durable Object of a lane from memory. */
  evict(lane: string): Promise<void>
  stop(): Promise<void>
}

export type StartService = (vars: Record<string, string>) => Promise<Service>

/** Bundles the service with the harness's route. Returns a function that starts it on new storage. */
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

/** Starts the baseline relay (Express) instead of the service. It has no Durable Objects to abort or evict. */
export const startExpress: StartService = async vars => {
  const port = await freePort()
  return restartable(() => startPeer({ vars, port }), { evict: async () => {}, abort: async () => {} })
}

const SHUTDOWN_TIMEOUT_MS = 3_000
/** Resolves to whether the work ends within the timeout. */
const endsInTime = (work: Promise<void>): Promise<boolean> =>
  Promise.race([work.then(() => true), sleep(SHUTDOWN_TIMEOUT_MS, false, { ref: false })])

type RunningProcess = { url: string; logs(): string; kill9(): Promise<void>; stop(): Promise<void> }

async function restartable<R extends RunningProcess>(
  start: () => Promise<R>,
  hooks: Record<'abort' | 'evict', (running: R, lane: string) => Promise<void>>,
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
    abort: lane => hooks.abort(running, lane),
    // Evicting a busy object can block workerd forever. In that case the whole process is killed.
    async evict(lane) {
      if (!(await endsInTime(hooks.evict(running, lane)))) await kill()
    },
    async stop() {
      if (!(await endsInTime(running.stop()))) await running.kill9()
    },
  }
}
