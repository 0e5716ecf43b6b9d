import { fork, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export type Worker = {
  url: string
  /** Resolves when wrangler has exited: with an error if it was not stopped by `stop`. */
  exited: Promise<Error | undefined>
  stop(): Promise<void>
}

export type WorkerOptions = {
  port: number
  vars: Record<string, string>
  /**
   * Folder for the storage of the Durable Objects; a temporary one by default. It is emptied at the start and on exit.
   */
  storage?: string
  /** The wrangler configuration of another Worker in this repository. */
  config?: string
  /** Where wrangler's output goes; 'ignore' shows it only in errors. */
  output?: 'inherit' | 'ignore' | ((text: string) => void)
}

/** Where `npm run dev` keeps the storage of the Durable Objects, for `ats admin journal`. */
export const WORKER_STORAGE = join(import.meta.dirname, '../.devnet/worker')

/** Ends a start that hangs; wrangler exits if it fails. */
const START_TIMEOUT_MS = 240_000
const STOP_TIMEOUT_MS = 5_000
const CUSTOM_BUILD_FAILED = /Running custom build .* failed/

/** Runs the Worker under `wrangler dev` and resolves once /health responds. It exits with this process. */
export async function startWorker({
  port,
  vars,
  storage,
  config = 'wrangler.toml',
  output = 'ignore',
}: WorkerOptions): Promise<Worker> {
  const state = mkdtempSync(join(tmpdir(), 'agent-trading-service-'))
  const envFile = join(state, 'vars.env')
  if (storage !== undefined) rmSync(storage, { recursive: true, force: true })
  writeFileSync(envFile, dotenv(vars), { mode: 0o600 })
  return startWrangler({
    port,
    args: [
      'dev',
      '--local',
      '--config',
      config,
      '--env-file',
      envFile,
      '--persist-to',
      storage ?? join(state, 'state'),
    ],
    cwd: join(import.meta.dirname, '..'),
    temporary: storage === undefined ? [state] : [state, storage],
    logs: join(state, 'logs'),
    output,
  })
}

type WranglerOptions = {
  port: number
  /** The command and its options, without the port. */
  args: string[]
  cwd: string
  /** Folders that are removed on exit. If this process dies, only the first one is. */
  temporary?: string[]
  /** Folder for wrangler's own logs. */
  logs: string
  output?: WorkerOptions['output']
}

/** Runs `wrangler dev` with options and resolves once /health responds. It exits with this process. */
export async function startWrangler({
  port,
  args,
  cwd,
  temporary = [],
  logs,
  output = 'ignore',
}: WranglerOptions): Promise<Worker> {
  const manifest = createRequire(import.meta.url).resolve('wrangler/package.json')
  const own = ['--ip', '127.0.0.1', '--port', `${port}`, '--inspector-port', '0']
  const child = spawn(
    process.execPath,
    [join(dirname(manifest), 'bin/wrangler.js'), ...args, ...own, '--show-interactive-dev-session=false'],
    {
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // its own process group, so that wrangler and its workerd exit together
      env: {
        ...process.env,
        CI: '1',
        WRANGLER_SEND_METRICS: 'false',
        CLOUDFLARE_CF_FETCH_ENABLED: 'false',
        WRANGLER_LOG_PATH: logs,
      },
    },
  )
  const watchdog = fork(join(import.meta.dirname, 'watchdog.ts'), [`${child.pid}`, ...temporary.slice(0, 1)], {
    detached: true,
    execArgv: [],
  })

  let stopping = false
  let tail = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      tail = (tail + text).slice(-8_000)
      // After a build that failed, wrangler waits for a change of the sources.
      if (CUSTOM_BUILD_FAILED.test(text)) killGroup(child.pid, 'SIGTERM')
      if (output === 'inherit') process.stdout.write(text)
      else if (output !== 'ignore') output(text)
    })
  }
  const exited = new Promise<Error | undefined>(resolve => {
    child.on('error', error => resolve(error))
    child.on('exit', (code, signal) => {
      watchdog.kill('SIGKILL')
      killGroup(child.pid, 'SIGKILL')
      for (const folder of temporary) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
      resolve(
        stopping ? undefined : new Error(`wrangler dev exited (${signal ?? `exit code ${code}`}):\n${tail.trim()}`),
      )
    })
  })
  const stop = async () => {
    stopping = true
    killGroup(child.pid, 'SIGTERM')
    const inTime = await Promise.race([exited.then(() => true), sleep(STOP_TIMEOUT_MS, false, { ref: false })])
    if (!inTime) killGroup(child.pid, 'SIGKILL')
    await exited
  }

  const url = `http://127.0.0.1:${port}`
  const failure = await Promise.race([exited, waitUntilHealthy(url)])
  if (failure) {
    await stop()
    throw new Error(`${failure.message}\n${tail.trim()}`)
  }
  return { url, exited, stop }
}

async function waitUntilHealthy(url: string): Promise<Error | undefined> {
  const deadline = Date.now() + START_TIMEOUT_MS
  while (Date.now() < deadline) {
    const response = await fetch(`${url}/health`).catch(() => undefined)
    if (response?.ok) return undefined
    await sleep(100)
  }
  return new Error(`The Worker did not respond on ${url}/health within ${START_TIMEOUT_MS / 1000} s.`)
}

function killGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, signal)
  } catch {
    // the group has exited already
  }
}

const dotenv = (vars: Record<string, string>) =>
  Object.entries(vars)
    .map(([name, value]) => `${name}='${value}'\n`)
    .join('')
