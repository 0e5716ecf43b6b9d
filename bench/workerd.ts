import { execFile, execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { V4MiniflareOptions } from 'miniflare'
import { freePort } from '../devnet/anvil.ts'
import type { Order, Report } from './workerd-host.ts'

export type Workerd = {
  /** The socket of workerd itself: nothing of a development server stands before it. */
  url: string
  /** The process id of workerd. */
  pid: number
  /** Everything that the Worker and its runtime have printed. */
  logs(): string
  /** CPU seconds that workerd has used, of all its threads. */
  cpuSeconds(): number
  /** Throws an object out of memory as the platform does with an idle one: what it waited for goes on. */
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
const CONFIG = join(root, 'wrangler.jsonc')
const TICKS_PER_SECOND = 100

/** Serves the Worker with the bindings of wrangler.jsonc in a workerd of its own, and resolves once it listens. */
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
  const host = fork(join(import.meta.dirname, 'workerd-host.ts'), [], {
    execArgv: [],
    detached: true, // a group of its own: host and workerd end together
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const group = host.pid ?? 0
  const endGroup = () => {
    try {
      process.kill(-group, 'SIGKILL')
    } catch {
      // it is gone already
    }
  }
  process.once('exit', endGroup)
  const exited = once(host, 'exit')
  let printed = ''
  for (const stream of [host.stdout, host.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      printed += text
    })
  const ask = async (order: Order): Promise<Report> => {
    const answer = once(host, 'message')
    host.send(order)
    const [report] = (await Promise.race([answer, exited.then(() => [{ problem: `workerd ended: ${printed}` }])])) as [
      Report,
    ]
    if ('problem' in report) throw new Error(report.problem)
    return report
  }
  const kill9 = async () => {
    endGroup()
    await exited
    process.off('exit', endGroup)
  }

  try {
    const report = await ask({ start: options })
    if (!('url' in report)) throw new Error('workerd did not say where it listens')
    const pid = childOf(group, 'workerd')
    return {
      url: report.url,
      pid,
      logs: () => printed,
      cpuSeconds: () => cpuSeconds(pid),
      async evict(object) {
        await ask({ evict: object })
      },
      kill9,
      async stop() {
        if (host.connected) host.send({ stop: true } satisfies Order)
        await exited
        process.off('exit', endGroup)
      },
    }
  } catch (error) {
    await kill9()
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

/** What wrangler.jsonc binds, in the words of miniflare. Wrangler is only loaded where it is needed: it takes a second. */
async function bindings() {
  const { unstable_getMiniflareWorkerOptions } = await import('wrangler')
  const { cronTriggers: _, modulesRules: __, ...options } = unstable_getMiniflareWorkerOptions(CONFIG).workerOptions
  return options
}

function childOf(parent: number, name: string): number {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,comm='], { encoding: 'utf8' }).split('\n')
  const rows = lines.map(line => line.trim().split(/\s+/))
  const pid = rows.find(([, ppid, command]) => Number(ppid) === parent && command?.includes(name))?.[0]
  if (pid === undefined) throw new Error(`${name} is not running`)
  return Number(pid)
}

function cpuSeconds(pid: number): number {
  if (process.platform === 'linux') {
    // The name in parentheses may hold spaces; utime and stime are the 12th and 13th fields after it.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ')
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
  }
  const time = execFileSync('ps', ['-o', 'time=', '-p', `${pid}`], { encoding: 'utf8' }).trim()
  return time.split(':').reduce((seconds, part) => seconds * 60 + Number(part), 0)
}
