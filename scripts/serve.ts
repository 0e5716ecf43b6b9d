import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs, parseEnv } from 'node:util'
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare, type V4MiniflareOptions } from 'miniflare'
import { exitWith } from '../devnet/environment.ts'
import { bundleModules } from './bundle-modules.ts'
import { outboundWorker, reachableAddresses } from './outbound-network.ts'
import type { ReleaseSettings } from './release-settings.ts'
import { keepReplacedAssets } from './replaced-assets.ts'

const HELP = `Serves the release that \`npm run build\` wrote on plain workerd, without an account at Cloudflare.
  npm run serve -- --env arbitrum-sepolia --vars .dev.vars.arbitrum-sepolia --data /var/lib/agent-trading
  --env <name>           reads the variables of this environment in wrangler.toml; those of --vars come first
  --vars <file>          variables and secrets, as lines NAME='value'
  --data <folder>        storage of the Durable Objects and the database; no other process may use it. Nothing else is written
  --host <address>       127.0.0.1 by default: a reverse proxy with TLS stands in front
  --port <port>          8787 by default
  --trusted-proxies <n>  how many proxies of yours add to X-Forwarded-For; 0 by default, which ignores that header
  --allow-network <cidr> more addresses that the service may connect to, comma-separated. It reaches the public internet and the hosts of
                         its own URLs (RPC_URL, ...) as they resolve at the start; so webhooks reach no private network`
/** The folder of the release: the script's own, or what a checkout has built. */
const RELEASE = existsSync(join(import.meta.dirname, 'settings.json'))
  ? import.meta.dirname
  : join(import.meta.dirname, '../dist/service')
const EVERY_MINUTE = '* * * * *'
const MINUTE_MS = 60_000
const STOP_TIMEOUT_MS = 10_000

/**
 * Notices that workerd has crashed, which miniflare only logs: a service manager restarts the whole service in order.
 */
class CrashLog extends Log {
  readonly #crash = Promise.withResolvers<never>()
  readonly crashed = this.#crash.promise

  constructor() {
    super(LogLevel.WARN)
  }

  override warn(message: string): void {
    if (message.includes('crashed unexpectedly')) this.#crash.reject(new Error('workerd has stopped.'))
    else super.warn(message)
  }
}

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
      'allow-network': { type: 'string', default: '' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  if (!values.vars || !values.data) throw new Error(`Give --vars and --data.\n${HELP}`)
  const settings = readSettings()
  const secrets = parseEnv(readFileSync(values.vars, 'utf8')) as Record<string, string>
  const vars = { ...(values.env !== undefined && varsOfEnvironment(settings, values.env)), ...secrets }
  const data = resolve(values.data)
  const unlock = lock(data)
  // Miniflare writes its configuration there.
  process.env.TMPDIR = join(data, 'tmp')
  mkdirSync(process.env.TMPDIR, { recursive: true, mode: 0o700 })
  try {
    const options = {
      vars,
      data,
      host: values.host,
      port: integer('--port', values.port, 65_535),
      trustedProxies: integer('--trusted-proxies', values['trusted-proxies'], 9),
      ranges: values['allow-network'].split(',').filter(range => range !== ''),
    }
    await serve(settings.worker, options)
  } finally {
    unlock()
  }
}

type ServeOptions = {
  vars: Record<string, string>
  data: string
  host: string
  port: number
  trustedProxies: number
  ranges: string[]
}

/** Serves until SIGINT or SIGTERM. Rejects if workerd crashes. */
async function serve(
  service: ReleaseSettings['worker'],
  { vars, data, host, port, trustedProxies, ranges }: ServeOptions,
): Promise<void> {
  const log = new CrashLog()
  const options: V4MiniflareOptions = {
    workers: [
      {
        name: 'front',
        modules: [
          {
            type: 'ESModule',
            path: 'worker.js',
            contents: readFileSync(join(RELEASE, 'front-worker.js'), 'utf8'),
          },
        ],
        compatibilityDate: service.compatibilityDate,
        serviceBindings: { SERVICE: 'service' },
        bindings: { TRUSTED_PROXIES: `${trustedProxies}` },
        unsafeDirectSockets: [{ host, port }],
      },
      {
        ...service,
        name: 'service',
        modules: bundleModules(join(RELEASE, 'worker/index.js')),
        assets: { ...service.assets, directory: await publicFilesIn(data) },
        bindings: vars,
        outboundService: 'outbound',
      },
      outboundWorker(await reachableAddresses(vars, ranges)),
    ],
    resourcePersistencePath: data,
    host: '127.0.0.1',
    port: 0,
    cf: false,
    log,
    telemetry: { enabled: false },
  }
  const miniflare = new Miniflare(convertV4MiniflareOptions(options))
  await miniflare.ready
  const stopped = untilSignal()
  const { origin } = await miniflare.unsafeGetDirectURL('front')
  console.log(`service  ${origin}`)
  // A crash ends this process at once. Miniflare, which is starting another workerd, kills that when the process exits.
  await Promise.race([stopped, runCron(miniflare, stopped), log.crashed])
  await Promise.race([miniflare.dispose().catch(() => {}), sleep(STOP_TIMEOUT_MS, undefined, { ref: false })])
  console.log('stopped')
}

/** Copies the release's public files into the data folder, with the assets that open tabs of an earlier one load. */
async function publicFilesIn(data: string): Promise<string> {
  const [served, next] = [join(data, 'public'), join(data, 'public.next')]
  rmSync(next, { recursive: true, force: true })
  cpSync(join(RELEASE, 'public'), next, { recursive: true })
  await keepReplacedAssets(join(next, 'app'), async path => {
    const file = join(served, 'app', path)
    return existsSync(file) ? readFileSync(file) : undefined
  })
  rmSync(served, { recursive: true, force: true })
  renameSync(next, served)
  return served
}

/** Fires the cron trigger at each full minute until `stopped` resolves. A run that fails logs its own failure. */
async function runCron(miniflare: Miniflare, stopped: Promise<void>): Promise<void> {
  let isStopped = false
  void stopped.then(() => (isStopped = true))
  while (!isStopped) {
    await Promise.race([stopped, nextMinute()])
    if (isStopped) return
    await fireCron(miniflare).catch(() => {}) // workerd may have crashed
  }
}

async function fireCron(miniflare: Miniflare): Promise<void> {
  const service = (await miniflare.getWorker('service')) as unknown as { scheduled(options: object): Promise<unknown> }
  await service.scheduled({ cron: EVERY_MINUTE, scheduledTime: new Date() })
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

function readSettings(): ReleaseSettings {
  const path = join(RELEASE, 'settings.json')
  if (!existsSync(path)) throw new Error('There is no release to serve: run `npm run build` first.')
  return JSON.parse(readFileSync(path, 'utf8'))
}

/** Returns the variables of an environment, which wrangler.toml had when the release was built. */
function varsOfEnvironment({ environments }: ReleaseSettings, name: string): Record<string, string> {
  const vars = environments[name]
  if (vars === undefined)
    throw new Error(`--env is ${name}: expected one of ${Object.keys(environments).join(', ')}, as in wrangler.toml.`)
  return vars
}

/**
 * Takes a data folder for this process, and returns a function that releases it: two lanes of one account would spend
 * nonces twice. The lock is SQLite's on a file, which the system releases when the process ends in whatever way.
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
