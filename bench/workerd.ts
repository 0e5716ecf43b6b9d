import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { V4MiniflareOptions } from 'miniflare'
import { freePort } from '../devnet/anvil.ts'
import { childOf, cpuSeconds, startChild } from './child-report.ts'
import type { Order } from './workerd-host.ts'

export type Workerd = {
  /** The socket of workerd itself: nothing of a development server stands before it. */
  url: string
  /** The process id of workerd. */
  pid: number
  /** Everything that the Worker and its runtime have printed. */
  logs(): string
  /** CPU seconds that workerd has used, of all its threads. */
  cpuSeconds(): number
  /** Throws an object out of memory, as the platform does with an idle one. */
  evict(object: { className: string; name: string }): Promise<void>
  /** Ends workerd as a power cut would. What it stored is there for the next one. */
  kill9(): Promise<void>
  stop(): Promise<void>
}

export type WorkerdOptions = {
  /** Variables and secrets. */
  vars: Record<string, string>
  /** Where Durable Objects and databases are kept; what is there already is taken up. */
  persistTo: string
  port?: number | undefined
  /** A Worker that `bundleWorker` made; the service's own when left out. */
  bundle?: string | undefined
}

const root = join(import.meta.dirname, '..')
const CONFIG = join(root, 'wrangler.toml')

/** Serves the Worker with the bindings of wrangler.toml in a workerd of its own, and resolves once it listens. */
export async function startWorkerd({ vars, persistTo, port, bundle }: WorkerdOptions): Promise<Workerd> {
  const options: V4MiniflareOptions = {
    ...(await bindings()),
    name: 'worker',
    modules: [{ type: 'ESModule', path: 'worker.js', contents: readFileSync(bundle ?? (await ownBundle()), 'utf8') }],
    bindings: vars,
    resourcePersistencePath: persistTo,
    unsafeDirectSockets: [{ host: '127.0.0.1', port: port ?? (await freePort()) }],
    host: '127.0.0.1',
    port: 0,
    cf: false,
    telemetry: { enabled: false },
  }
  const host = startChild(join(import.meta.dirname, 'workerd-host.ts'))
  const tell = (order: Order) => host.send(order)
  try {
    tell({ start: options })
    const report = await host.report()
    if (!('url' in report)) throw new Error('workerd did not say where it listens')
    const pid = childOf(host.pid, 'workerd')
    return {
      url: report.url,
      pid,
      logs: host.logs,
      cpuSeconds: () => cpuSeconds(pid),
      async evict(object) {
        tell({ evict: object })
        await host.report()
      },
      kill9: host.kill9,
      async stop() {
        tell({ stop: true })
        await host.exited
      },
    }
  } catch (error) {
    await host.kill9()
    throw error
  }
}

/** Bundles a Worker as a deployment would and answers the path of the script. The folder is the caller's to remove. */
export async function bundleWorker(entry: string, folder: string): Promise<string> {
  const wrangler = join(dirname(createRequire(import.meta.url).resolve('wrangler/package.json')), 'bin/wrangler.js')
  await promisify(execFile)(
    process.execPath,
    [wrangler, 'deploy', entry, '--config', CONFIG, '--dry-run', '--outdir', folder],
    { cwd: root, env: { ...process.env, CI: '1', WRANGLER_SEND_METRICS: 'false' }, maxBuffer: 1 << 26 },
  )
  return join(folder, entry.replace(/^.*\//, '').replace(/\.ts$/, '.js'))
}

let bundled: Promise<string> | undefined
/** The service's own bundle, made once and kept as long as this process. */
function ownBundle(): Promise<string> {
  if (bundled === undefined) {
    const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-bundle-'))
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    bundled = bundleWorker(join(root, 'src/index.ts'), folder)
  }
  return bundled
}

/** What wrangler.toml binds, in the words of miniflare. Wrangler is only loaded where it is needed: it takes a second. */
async function bindings() {
  const { unstable_getMiniflareWorkerOptions } = await import('wrangler')
  // The pages are left out: miniflare puts a Worker before ours for them, and that is no part of what is measured.
  const {
    cronTriggers: _,
    modulesRules: __,
    assets: ___,
    ...options
  } = unstable_getMiniflareWorkerOptions(CONFIG).workerOptions
  return options
}
