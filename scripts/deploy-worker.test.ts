import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { writeDeploymentVars } from './deployment-vars.ts'
import { environmentOf, withEnvironments, withVars } from './environments.ts'

// A stand-in for Cloudflare: one local server is the account, which a `wrangler` in PATH changes, and the Worker's
// host.

const FAKE_WRANGLER = `#!${process.execPath}
const { readFileSync } = require('node:fs')
const args = process.argv.slice(2)
const at = args.indexOf('--secrets-file') + 1
const secrets = at > 0 ? JSON.parse(readFileSync(args[at], 'utf8')) : null
fetch(process.env.FAKE_ACCOUNT + '/account', { method: 'POST', body: JSON.stringify({ args, secrets }) })
  .then(response => response.json())
  .then(({ code, output }) => { process.stdout.write(output); process.exitCode = code })
`
const root = join(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'deploy-worker-test-'))
const wranglerToml = join(folder, 'wrangler.toml')

type Command = { args: string[]; secrets: Record<string, string> | null }
let account: { live: string | undefined; databases: string[]; commands: string[]; secrets: Command['secrets'] }
/** Whether a version that is deployed becomes ready. */
let isGood: boolean
/** The files of the pages that are live, by path. */
let livePages: Record<string, string>
const assets = join(folder, 'public/app/assets')

const server = createServer(async (request, response) => {
  if (request.url === '/account') {
    let body = ''
    for await (const chunk of request) body += chunk
    response.end(JSON.stringify(execute(JSON.parse(body))))
    return
  }
  const file = Object.hasOwn(livePages, `${request.url}`) ? livePages[`${request.url}`] : undefined
  if (request.url?.startsWith('/app/')) {
    response.writeHead(file === undefined ? 404 : 200).end(file)
    return
  }
  const isReady = account.live !== 'new' || isGood
  response.writeHead(isReady ? 200 : 503, { 'X-Worker-Version': `${account.live}` })
  response.end(isReady ? '{"status":"ready"}' : '{"code":"NOT_READY","error":"no vault has idle USDC"}')
})
let url: string

function execute({ args, secrets }: Command): { code: number; output: string } {
  expect(args.slice(-4)).toEqual(['--env', 'arbitrum-sepolia', '--config', wranglerToml])
  const command = args.slice(0, -4).join(' ')
  account.commands.push(command.replace(/ \/\S+| --message.*/g, ''))
  const succeed = (result: unknown = '') => ({
    code: 0,
    output: typeof result === 'string' ? result : JSON.stringify(result),
  })
  if (command === 'deployments status --json')
    return account.live === undefined
      ? { code: 1, output: 'This Worker does not exist on your account. [code: 10007]' }
      : succeed({ versions: [{ version_id: account.live, percentage: 100 }] })
  if (command.startsWith('versions view')) return succeed({ resources: { script_runtime: { migration_tag: 'v0' } } })
  if (command === 'd1 list --json') return succeed(account.databases.map(name => ({ name })))
  if (command.startsWith('d1 create')) account.databases.push(`${args[2]}`)
  if (command === 'deploy' || command.startsWith('deploy --secrets-file')) {
    account.live = 'new'
    account.secrets = secrets
  }
  if (command.startsWith('rollback')) account.live = args[1]
  return succeed()
}

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const bin = join(folder, 'wrangler')
  writeFileSync(bin, FAKE_WRANGLER)
  chmodSync(bin, 0o755)
})
afterAll(() => {
  server.close()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(() => {
  account = { live: 'old', databases: ['agent-trading-history-421614'], commands: [], secrets: null }
  isGood = true
  livePages = {}
  rmSync(join(folder, 'public'), { recursive: true, force: true })
  mkdirSync(assets, { recursive: true })
  writeFileSync(join(assets, 'index-new.js'), 'new')
  const toml = readFileSync(join(root, 'wrangler.toml'), 'utf8')
  writeFileSync(wranglerToml, withEnvironments(withVars(toml, environmentOf('arbitrum-sepolia'), { BASE_URL: url })))
  // Port 1 refuses connections, so the doctor finds a fault.
  writeFileSync(join(folder, '.dev.vars.arbitrum-sepolia'), "RPC_URL='http://127.0.0.1:1'\nOPERATOR_SECRET='s3cret'\n")
  const deployment = { chainId: 421614, deployedAtBlock: '1', contracts: {}, vaults: {}, tokens: {} }
  writeDeploymentVars(deployment, wranglerToml)
})

/** Runs `npm run deploy` for Arbitrum Sepolia. */
async function deploy(...args: string[]): Promise<{ code: number; text: string }> {
  const script = join(root, 'scripts/deploy-worker.ts')
  const child = spawn(process.execPath, [script, '--env', 'arbitrum-sepolia', '--config', wranglerToml, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PATH: `${folder}${delimiter}${process.env.PATH}`, FAKE_ACCOUNT: url },
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (text += chunk))
  const [code] = await once(child, 'close')
  return { code, text }
}

it('a version that becomes ready stays, after the build and the migrations of the database', async () => {
  const { code, text } = await deploy('--skip-doctor')
  expect({ code, text }).toMatchObject({ code: 0, text: expect.stringContaining(`Deployed: ${url} is ready.`) })
  expect(text).toMatch(/migrates Durable Objects from v0 to v\d+; Cloudflare does not roll that back/)
  expect(account).toMatchObject({ live: 'new', secrets: null })
  expect(account.commands).toEqual([
    'deploy --dry-run',
    'deployments status --json',
    'versions view old --json',
    'd1 list --json',
    'd1 migrations apply HISTORY --remote',
    'deploy',
    'deployments status --json',
  ])
})

it('a first deploy creates the database and uploads the secrets of the environment, and only those that are set', async () => {
  account = { ...account, live: undefined, databases: [] }
  const { code } = await deploy('--skip-doctor', '--secrets')
  expect(code).toBe(0)
  expect(account).toMatchObject({ live: 'new', databases: ['agent-trading-history-421614'] })
  expect(account.secrets).toEqual({ RPC_URL: 'http://127.0.0.1:1', OPERATOR_SECRET: 's3cret' })
})

it('a version that does not become ready is rolled back, with the reason', async () => {
  isGood = false
  const { code, text } = await deploy('--skip-doctor', '--wait', '1')
  expect(code).toBe(1)
  expect(text).toContain('Version new is not ready after 1 s: it responded with 503')
  expect(text).toContain('no vault has idle USDC')
  expect(text).toContain('Rolled back to version old.')
  expect(account.live).toBe('old')
  expect(account.commands.at(-1)).toBe('rollback old --yes')
})

it('a first version that does not become ready stays, because there is none before it', async () => {
  isGood = false
  account.live = undefined
  const { code, text } = await deploy('--skip-doctor', '--wait', '1')
  expect({ code, text }).toMatchObject({ code: 1, text: expect.stringContaining('There is no earlier version.') })
  expect(account.live).toBe('new')
})

it('nothing is deployed when the doctor finds a fault', async () => {
  const { code, text } = await deploy()
  expect({ code, text }).toMatchObject({ code: 1, text: expect.stringContaining('Nothing was deployed') })
  expect(account.commands).toEqual(['deploy --dry-run'])
})

it('nothing is deployed to the placeholder of a domain, to an unknown environment, or with a stale configuration', async () => {
  const toml = readFileSync(wranglerToml, 'utf8')
  const environment = environmentOf('arbitrum-sepolia')
  writeFileSync(wranglerToml, toml.replace('"ADDRESS_RATE_LIMIT"', '"OTHER"'))
  expect(await deploy()).toMatchObject({ code: 1, text: expect.stringContaining('stale: run `npm run environments`') })
  const BASE_URL = 'https://api-421614.example.com'
  writeFileSync(wranglerToml, withEnvironments(withVars(toml, environment, { BASE_URL })))
  expect(await deploy()).toMatchObject({ code: 1, text: expect.stringContaining('npm run environments -- --domain') })
  expect(await deploy('--env', 'mainnet')).toMatchObject({
    code: 1,
    text: expect.stringContaining('no environment mainnet'),
  })
  expect(account.commands).toEqual([])
})

it('scripts that tabs of an earlier version may still load are deployed with the new ones, for a day', async () => {
  const list = { 'index-old.js': null, 'owner-older.js': Date.now() - 3_600_000, 'owner-oldest.js': 1, '../x.js': null }
  livePages = {
    '/app/assets.json': JSON.stringify(list),
    '/app/assets/index-old.js': 'old',
    '/app/assets/owner-older.js': 'older',
    '/app/assets/owner-oldest.js': 'oldest',
  }
  expect(await deploy('--skip-doctor')).toMatchObject({
    code: 0,
    text: expect.stringContaining('2 files of the pages'),
  })
  expect(readdirSync(assets)).toEqual(['index-new.js', 'index-old.js', 'owner-older.js'])
  expect(readFileSync(join(assets, 'index-old.js'), 'utf8')).toBe('old')
  const kept = JSON.parse(readFileSync(join(folder, 'public/app/assets.json'), 'utf8'))
  expect(kept).toMatchObject({ 'index-new.js': null, 'owner-older.js': list['owner-older.js'] })
  expect(Math.abs(kept['index-old.js'] - Date.now())).toBeLessThan(600_000)

  // The next deploy of the same build, more than a day later.
  for (const file of Object.keys(kept)) if (kept[file] !== null) kept[file] = Date.now() - 90_000_000
  livePages['/app/assets.json'] = JSON.stringify(kept)
  expect(await deploy('--skip-doctor')).toMatchObject({ code: 0 })
  expect(readdirSync(assets)).toEqual(['index-new.js'])
})
