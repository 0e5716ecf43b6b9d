import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs, parseEnv } from 'node:util'
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare, type V4MiniflareOptions } from 'miniflare'
import { parse } from 'smol-toml'
import { exitWith } from '../devnet/environment.ts'
import { bundleModules } from './bundle-modules.ts'
import { runCommand } from './run-wrangler.ts'

const HELP = `Serves the Worker on plain workerd, without an account at Cloudflare.
  npm run serve -- --env arbitrum-sepolia --vars .dev.vars.arbitrum-sepolia --data /var/lib/agent-trading
  --env <name>           reads the variables of this environment in wrangler.toml; those of --vars come first
  --vars <file>          variables and secrets, as lines NAME='value'
  --data <folder>        storage of the Durable Objects and the database; no other process may use it
  --host <address>       127.0.0.1 by default: a reverse proxy with TLS stands in front
  --port <port>          8787 by default
  --trusted-proxies <n>  how many proxies of yours add to X-Forwarded-For; 0 by default, which ignores that header`
const root = join(import.meta.dirname, '..')
const CONFIG = join(root, 'wrangler.toml')
const EVERY_MINUTE = '* * * * *'
const MINUTE_MS = 60_000
/** How often to check that workerd still listens. */
const WATCH_MS = 1_000

await main().catch(exitWith)

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      env: { type: 'string' },
      vars: { type: 'string' },
      data: { type: 'string' },
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: '8787' },
      'trusted-proxies': { type: 'string', default: '0' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  if (!values.vars || !values.data) throw new Error(`Give --vars and --data.\n${HELP}`)
  const secrets = parseEnv(readFileSync(values.vars, 'utf8')) as Record<string, string>
  const vars = { ...(values.env !== undefined && varsOfEnvironment(values.env)), ...secrets }
  const data = resolve(values.data)
  const unlock = lock(data)
  try {
    const options = {
      vars,
      data,
      host: values.host,
      port: integer('--port', values.port, 65_535),
      trustedProxies: integer('--trusted-proxies', values['trusted-proxies'], 9),
    }
    await serve(options)
  } finally {
    unlock()
  }
}

type ServeOptions = { vars: Record<string, string>; data: string; host: string; port: number; trustedProxies: number }

/** Serves until SIGINT or SIGTERM. Rejects if workerd stops responding. */
async function serve({ vars, data, host, port, trustedProxies }: ServeOptions): Promise<void> {
  const service = await serviceOptions()
  const options: V4MiniflareOptions = {
    workers: [
      {
        name: 'front',
        modules: [
          {
            type: 'ESModule',
            path: 'worker.js',
            contents: stripTypeScriptTypes(readFileSync(join(root, 'scripts/front-worker.ts'), 'utf8')),
          },
        ],
        compatibilityDate: service.compatibilityDate,
        serviceBindings: { SERVICE: 'service' },
        bindings: { TRUSTED_PROXIES: `${trustedProxies}` },
        unsafeDirectSockets: [{ host, port }],
      },
      { ...service, name: 'service', modules: await bundle(), bindings: vars },
    ],
    resourcePersistencePath: data,
    host: '127.0.0.1',
    port: 0,
    cf: false,
    log: new Log(LogLevel.WARN),
    telemetry: { enabled: false },
  }
  const miniflare = new Miniflare(convertV4MiniflareOptions(options))
  await miniflare.ready
  const stopped = untilSignal()
  const { origin } = await miniflare.unsafeGetDirectURL('front')
  console.log(`service  ${origin}`)
  await Promise.race([stopped, runCron(miniflare, stopped), watch(origin, stopped)])
  // After a failure, the exit of this process ends the workerd that miniflare may have started again.
  await miniflare.dispose()
  console.log('stopped')
}

/** Fires the cron trigger at each full minute until `stopped` resolves. A run that fails logs its own failure. */
async function runCron(miniflare: Miniflare, stopped: Promise<void>): Promise<void> {
  let isStopped = false
  void stopped.then(() => (isStopped = true))
  while (!isStopped) {
    await Promise.race([stopped, nextMinute()])
    if (isStopped) return
    await fireCron(miniflare).catch(() => {}) // workerd may have died, which `watch` notices
  }
}

async function fireCron(miniflare: Miniflare): Promise<void> {
  const service = (await miniflare.getWorker('service')) as unknown as { scheduled(options: object): Promise<unknown> }
  await service.scheduled({ cron: EVERY_MINUTE, scheduledTime: new Date() })
}

/** Throws once workerd does not listen any more. A service that is merely busy still accepts connections. */
async function watch(origin: string, stopped: Promise<void>): Promise<void> {
  let isStopped = false
  void stopped.then(() => (isStopped = true))
  while (!isStopped) {
    if (!(await isListening(origin))) throw new Error('The service does not respond: workerd has stopped.')
    await Promise.race([stopped, sleep(WATCH_MS)])
  }
}

/** Resolves on SIGINT or SIGTERM, in place of the libraries' own listeners, which end the process at once. */
function untilSignal(): Promise<void> {
  return new Promise(resolve => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.removeAllListeners(signal)
      process.on(signal, () => resolve())
    }
  })
}

function nextMinute(): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, MINUTE_MS - (Date.now() % MINUTE_MS)).unref())
}

function isListening(origin: string): Promise<boolean> {
  const { hostname, port } = new URL(origin)
  return new Promise(resolve => {
    const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) })
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

/** Returns the variables of an environment of wrangler.toml. */
function varsOfEnvironment(name: string): Record<string, string> {
  const { env } = parse(readFileSync(CONFIG, 'utf8')) as { env: Record<string, { vars?: Record<string, string> }> }
  const environment = env[name]
  if (environment === undefined)
    throw new Error(`--env is ${name}: expected one of ${Object.keys(env).join(', ')}, as in wrangler.toml.`)
  return environment.vars ?? {}
}

/** Returns the bindings of wrangler.toml's top level as miniflare options. */
async function serviceOptions() {
  const { unstable_getMiniflareWorkerOptions } = await import('wrangler')
  const { workerOptions } = unstable_getMiniflareWorkerOptions(CONFIG)
  const {
    cronTriggers,
    modulesRules: _,
    ...options
  } = workerOptions as typeof workerOptions & {
    compatibilityDate: string
    cronTriggers: string[]
  }
  if (cronTriggers.join() !== EVERY_MINUTE) throw new Error(`Only the cron trigger ${EVERY_MINUTE} can be served.`)
  return options
}

/** Bundles the service, with its pages, as a deploy does. */
async function bundle() {
  const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-serve-'))
  try {
    const { code, output } = await runCommand(
      'wrangler',
      ['deploy', '--dry-run', '--outdir', folder, '--config', CONFIG],
      true,
    )
    if (code !== 0) throw new Error(`The Worker cannot be built.\n${output.trim()}`)
    return bundleModules(join(folder, 'index.js'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Takes a data folder for this process, and returns a function that releases it: two lanes of one account would spend nonces
 * twice. The lock is SQLite's on a file, which the system releases when the process ends in whatever way.
 */
function lock(data: string): () => void {
  mkdirSync(data, { recursive: true, mode: 0o700 })
  const database = new DatabaseSync(join(data, 'serve.lock'))
  try {
    database.exec('BEGIN EXCLUSIVE')
  } catch {
    throw new Error(`${data} is in use by another process.`)
  }
  return () => database.close()
}

function integer(option: string, text: string, max: number): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 0 || value > max)
    throw new Error(`${option} is ${text}: expected an integer from 0 to ${max}.`)
  return value
}
