import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { promisify } from 'node:util'
import type { V4MiniflareOptions } from 'miniflare'
import { freePort } from '../devnet/anvil.ts'
import { bundleModules } from '../scripts/bundle-modules.ts'
import { sharedBuild } from '../scripts/shared-build.ts'
import { childOf, cpuSeconds, startChild } from './child-process.ts'
import type { Command } from './workerd-child.ts'

export type Workerd = {
  /** The URL of workerd's own socket, without a development server in front of it. */
  url: string
  /** The process id of workerd. */
  pid: number
  /** All output of the Worker and its runtime. */
  logs(): string
  /** Returns the CPU time of all threads of workerd, in seconds. */
  cpuSeconds(): number
  /**
   * Returns the size of the JavaScript heap of the Worker and all of its objects, garbage included. Needs
   * `inspectorPort`.
   */
  heapBytes(): Promise<number>
  /** Evicts an object from memory, as the platform does with idle ones. */
  evict(object: { className: string; name: string }): Promise<void>
  /** Fires the cron trigger and waits until it is done. */
  runCron(): Promise<void>
  /** Kills workerd with SIGKILL. Its storage remains. */
  kill9(): Promise<void>
  stop(): Promise<void>
}

export type WorkerdOptions = {
  /** Variables and secrets. */
  vars: Record<string, string>
  /** The folder of Durable Objects and databases; existing ones are loaded. */
  persistTo: string
  port?: number | undefined
  /** More ports to listen on. */
  otherPorts?: readonly number[]
  /** The path of a bundle from `bundleWorker`; the service's own by default. */
  bundle?: string | undefined
  /** The port of the inspector, 0 for a free one; none by default, because it costs time. */
  inspectorPort?: number | undefined
}

const root = join(import.meta.dirname, '..')
const CONFIG = join(root, 'wrangler.toml')

/** Serves the Worker with the bindings of wrangler.toml in its own workerd, and resolves once it listens. */
export async function startWorkerd({
  vars,
  persistTo,
  port,
  otherPorts = [],
  bundle,
  inspectorPort,
}: WorkerdOptions): Promise<Workerd> {
  const ownPort = port ?? (await freePort())
  const options: V4MiniflareOptions = {
    ...(await bindings()),
    name: 'worker',
    modules: bundleModules(bundle ?? (await bundleOnce('src/index.ts'))),
    bindings: vars,
    resourcePersistencePath: persistTo,
    unsafeDirectSockets: [ownPort, ...otherPorts].map(each => ({ host: '127.0.0.1', port: each })),
    host: '127.0.0.1',
    port: 0,
    cf: false,
    telemetry: { enabled: false },
    ...(inspectorPort !== undefined && { inspectorPort }),
  }
  const host = startChild(join(import.meta.dirname, 'workerd-child.ts'))
  const send = (command: Command) => host.send(command)
  try {
    send({ start: options })
    await host.report()
    const pid = childOf(host.pid, 'workerd')
    return {
      url: `http://127.0.0.1:${ownPort}`,
      pid,
      logs: host.logs,
      cpuSeconds: () => cpuSeconds(pid),
      async heapBytes() {
        send({ measureHeap: true })
        const measured = await host.report()
        return 'heapBytes' in measured ? measured.heapBytes : Number.NaN
      },
      async evict(object) {
        send({ evict: object })
        await host.report()
      },
      async runCron() {
        send({ cron: '* * * * *' })
        await host.report()
      },
      kill9: host.kill9,
      async stop() {
        send({ stop: true })
        await host.exited
      },
    }
  } catch (error) {
    await host.kill9()
    throw error
  }
}

/** Bundles a Worker as a deployment does and returns the path of the script. The caller removes the folder. */
export async function bundleWorker(entry: string, folder: string): Promise<string> {
  const wrangler = join(dirname(createRequire(import.meta.url).resolve('wrangler/package.json')), 'bin/wrangler.js')
  const name = `worker ${relative(root, resolve(root, entry))}`.replace(/[^a-z]+/g, '-')
  const built = await sharedBuild(name, folder, outdir =>
    promisify(execFile)(
      process.execPath,
      [wrangler, 'deploy', entry, '--config', CONFIG, '--dry-run', '--outdir', outdir],
      { cwd: root, env: { ...process.env, CI: '1', WRANGLER_SEND_METRICS: 'false' }, maxBuffer: 1 << 26 },
    ),
  )
  return join(built, entry.replace(/^.*\//, '').replace(/\.ts$/, '.js'))
}

const bundles = new Map<string, Promise<string>>()
/** Returns the path of the bundle of a Worker, which is built once per process. */
export function bundleOnce(entry: string): Promise<string> {
  const known = bundles.get(entry)
  if (known) return known
  const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-bundle-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const bundle = bundleWorker(join(root, entry), folder)
  bundles.set(entry, bundle)
  return bundle
}

/**
 * Returns the bindings of wrangler.toml as miniflare options. Wrangler is imported here because loading it takes a
 * second.
 */
async function bindings() {
  const { unstable_getMiniflareWorkerOptions } = await import('wrangler')
  // Static assets are left out: miniflare serves them with another Worker in front of ours, which would distort
  // measurements.
  const {
    cronTriggers: _,
    modulesRules: __,
    assets: ___,
    ...options
  } = unstable_getMiniflareWorkerOptions(CONFIG).workerOptions
  return options
}
