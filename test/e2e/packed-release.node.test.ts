import { type ChildProcess, execFile, spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { freePort } from '../../devnet/anvil.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { asRealChain, workerVars } from '../../devnet/worker-vars.ts'
import { FAST_SCRYPT, finished } from '../support/ats.ts'
import { commandsOf, readDocumentedCommands } from '../support/documented-commands.ts'
import { type NpmRegistry, startNpmRegistry } from '../support/npm-registry.ts'

// The release as `npm pack` writes it, as a user without rights installs and runs it, and as ops/Containerfile does.

const root = join(import.meta.dirname, '../..')
const run = promisify(execFile)
const MAX_MS = 120_000
/** Within what docs/operations.md asks of a machine. */
const MAX_MIB = { memory: 800, release: 256, data: 16 }
/** A user without rights, if the tests may become one. */
const NOBODY = 65_534
const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
const folder = mkdtempSync(join(tmpdir(), 'packed-release-'))
const running = new Set<ChildProcess>()
const guide = readDocumentedCommands('docs/operations.md', 'Self-host')
let devnet: Devnet
let registry: NpmRegistry

beforeAll(async () => {
  devnet = await startDevnet({ blockMs: 150 })
  await run(process.execPath, [join(root, 'scripts/build-release.ts')])
  registry = await startNpmRegistry()
  await run('npm', ['pack', join(root, 'dist/service'), '--pack-destination', folder])
  chmodSync(folder, 0o755)
})
afterAll(async () => {
  for (const { pid } of running) if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  await registry?.close()
  await devnet?.stop()
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
})

/** Makes an empty folder that the user without rights owns. */
function folderOf(name: string): string {
  const path = join(folder, name)
  mkdirSync(path)
  if (user.uid !== undefined) chownSync(path, user.uid, user.gid)
  return path
}

/** Writes the variables of the service, which only its user can read. */
function writeVars(path: string): void {
  const vars = {
    ...workerVars(devnet.deployment),
    ...asRealChain,
    X402_ENABLED: 'false',
    SUBMISSION_TIMEOUT_MS: '15000',
  }
  const lines = Object.entries(vars).map(([name, value]) => `${name}='${value}'\n`)
  writeFileSync(path, lines.join(''), { mode: 0o600 })
  if (user.uid !== undefined) chownSync(path, user.uid, user.gid)
}

/** Starts a service as the user without rights, in a process group of its own. */
function start(command: string, args: string[], options: { cwd: string; env: NodeJS.ProcessEnv }): ChildProcess {
  const child = spawn(command, args, { ...user, ...options, detached: true, stdio: ['ignore', 'inherit', 'inherit'] })
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

/** Returns the memory of a process and of those that it has started, in MiB. */
async function memoryMibOf(pid: number): Promise<number> {
  const { stdout } = await run('ps', ['-o', 'rss=', '-g', `${pid}`])
  return Math.round(
    stdout
      .trim()
      .split(/\s+/)
      .reduce((sum, kib) => sum + Number(kib), 0) / 1024,
  )
}

const sizeMibOf = async (path: string): Promise<number> =>
  Number((await run('du', ['-sm', path])).stdout.split('\t')[0])

const untilHealthy = (url: string) =>
  vi.waitFor(async () => expect((await fetch(`${url}/health`)).status).toBe(200), { timeout: MAX_MS, interval: 100 })

it('a new user comes from the packed release to a first trade in less than two minutes', async () => {
  const home = folderOf('home')
  const cache = folderOf('cache')
  const port = await freePort()
  const env = {
    ...registry.env,
    HOME: home,
    npm_config_cache: cache,
    npm_config_prefix: home,
    ATS_PASSWORD: 'correct horse',
    NODE_URL: devnet.rpcUrl,
  }
  const [tarball = ''] = globSync(join(folder, 'agent-trading-service-*.tgz'))
  cpSync(tarball, join(home, basename(tarball)))
  writeVars(join(home, 'vars'))
  const startedAt = Date.now()
  const transcript: string[] = []
  for (const command of commandsOf(guide.take(''))) {
    const script = command
      .replaceAll('8787', `${port}`)
      .replace(/--data data/, `--data data --port ${port}`)
      .replace(/ats key new \w+/, `$& ${FAST_SCRYPT.join(' ')}`)
    if (script.endsWith('&')) {
      start('bash', ['-c', `exec ${script.slice(0, -1)}`], { cwd: home, env })
      await untilHealthy(`http://127.0.0.1:${port}`)
      continue
    }
    transcript.push(script)
    const exports = transcript.filter(line => line.startsWith('export ')).join('\n')
    const { code, stdout, stderr } = await finished(
      spawn('bash', ['-euo', 'pipefail', '-c', `${exports}\n${script}`], { ...user, cwd: home, env }),
      '',
    )
    expect({ script, code, output: code === 0 ? '' : stdout + stderr }).toEqual({ script, code: 0, output: '' })
  }
  const elapsedMs = Date.now() - startedAt
  const used = {
    memory: await memoryMibOf([...running][0]?.pid ?? 0),
    release: await sizeMibOf(join(home, 'node_modules')),
    data: await sizeMibOf(join(home, 'data')),
  }
  const trades = await (await fetch(`http://127.0.0.1:${port}/agents/1/trades`)).json()
  expect(trades).toMatchObject({ trades: [{ type: 'PositionOpened', symbol: 'NVDA' }] })
  console.log(`from the packed release to the first trade: ${Math.round(elapsedMs / 1000)} s, MiB:`, used)
  expect(elapsedMs).toBeLessThan(MAX_MS)
  for (const [name, mib] of Object.entries(MAX_MIB)) expect(used[name as keyof typeof used], name).toBeLessThan(mib)
})

it('the commands of an upgrade back up the service that runs, and the next release goes on with its data', async () => {
  const next = join(folder, 'next')
  cpSync(join(root, 'dist/service'), next, { recursive: true })
  const manifest = JSON.parse(readFileSync(join(next, 'package.json'), 'utf8'))
  writeFileSync(join(next, 'package.json'), JSON.stringify({ ...manifest, version: '0.2.0' }))
  const home = join(folder, 'home')
  await run('npm', ['pack', next, '--pack-destination', home])
  const [{ pid = 0 } = {}] = [...running]
  const port = await freePort()
  const env = { ...registry.env, HOME: home, npm_config_cache: join(folder, 'cache'), BASE: `http://127.0.0.1:${port}` }
  const upgrade = readDocumentedCommands('docs/operations.md', 'Upgrade and roll back').take('')
  for (const command of commandsOf(upgrade)) {
    const [script = '', restart] = command
      .replaceAll('/var/lib/agent-trading', join(home, 'data'))
      .replaceAll('/var/backups', home)
      .replaceAll('/opt/', `${home}/`)
      .split(' && systemctl ')
    await run('bash', ['-euc', script], { ...user, cwd: home, env })
    if (restart === undefined) continue
    process.kill(-pid, 'SIGTERM')
    await vi.waitFor(() => expect(() => process.kill(-pid, 0)).toThrow('ESRCH'), { timeout: MAX_MS, interval: 50 })
    const serve = join(home, 'agent-trading/node_modules/agent-trading-service/serve.js')
    start(process.execPath, [serve, '--vars', 'vars', '--data', 'data', '--port', `${port}`], { cwd: home, env })
    await untilHealthy(env.BASE)
  }
  const trades = await (await fetch(`${env.BASE}/agents/1/trades`)).json()
  expect(trades).toMatchObject({ trades: [{ type: 'PositionOpened', symbol: 'NVDA' }] })
  expect(JSON.parse(readFileSync(join(home, 'before-0.2.0/backup.json'), 'utf8'))).toMatchObject({
    version: manifest.version,
  })
})

const hasSystemd = await run('systemd-analyze', ['--version']).then(
  () => true,
  () => false,
)
it.skipIf(!hasSystemd)('the unit of the page is one that systemd accepts', async () => {
  const unit = join(folder, 'agent-trading.service')
  writeFileSync(unit, guide.take('', 'ini').replace('/usr/bin/node', process.execPath))
  await run('systemd-analyze', ['verify', unit])
})

it('the steps of the Containerfile make a folder that serves, read-only but for its data', async () => {
  const image = join(folder, 'image')
  const text = readFileSync(join(root, 'ops/Containerfile'), 'utf8')
  const steps = text.split('\n').flatMap(line => {
    const [, name, rest] = /^([A-Z]+) (.+)$/.exec(line) ?? []
    return name && rest ? [{ name, rest }] : []
  })
  const argumentOf = (name: string) => steps.find(step => step.name === name)?.rest ?? ''
  const within = (path: string) => path.replaceAll(/(?<![\w.])\/(?=opt|var|run)/g, `${image}/`)
  const cwd = within(argumentOf('WORKDIR'))
  mkdirSync(cwd, { recursive: true })
  const owner = user.uid === undefined ? '' : `-o ${user.uid}`
  for (const { name, rest } of steps) {
    const script = within(rest).replace('-o node', owner)
    if (name === 'COPY') await run('bash', ['-c', `cp ${script.replace(/^/, `${folder}/`)}`], { cwd })
    if (name === 'RUN') {
      mkdirSync(join(image, 'var/lib'), { recursive: true })
      await run('bash', ['-euc', script], { cwd, env: { ...process.env, ...registry.env } })
    }
  }
  await run('chmod', ['-R', 'a-w', cwd])
  mkdirSync(join(image, 'run/secrets'), { recursive: true })
  writeVars(join(image, 'run/secrets/vars'))

  const port = await freePort()
  const [node = '', ...entry] = JSON.parse(argumentOf('ENTRYPOINT')) as string[]
  const args = [...entry, ...(JSON.parse(argumentOf('CMD')) as string[])].map(within)
  const env = { PATH: registry.env.PATH, HOME: '/nonexistent' }
  const service = start(node, [...args, '--port', `${port}`], { cwd, env })
  const health = argumentOf('HEALTHCHECK').replace('CMD ', '').replace('8787', `${port}`)
  await vi.waitFor(() => run('bash', ['-c', health], { env }), { timeout: MAX_MS, interval: 100 })
  expect(existsSync(join(image, 'var/lib/agent-trading/do'))).toBe(true)
  service.kill('SIGTERM')
  const code = await new Promise(resolve => service.once('exit', resolve))
  expect(code).toBe(0)
  await run('chmod', ['-R', 'u+w', cwd])
})
