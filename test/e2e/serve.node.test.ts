import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import type { TypedDataDefinition } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { childOf } from '../../bench/child-process.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { asRealChain, workerVars } from '../../devnet/worker-vars.ts'

// biome-ignore lint/suspicious/noExplicitAny: responses of the API
type Json = any

const root = join(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'serve-test-'))
const data = join(folder, 'data')
const varsFile = join(folder, 'vars')
const running = new Set<ChildProcess>()
let devnet: Devnet

beforeAll(async () => {
  devnet = await startDevnet({ blockMs: 150 })
  await promisify(execFile)(process.execPath, [join(root, 'scripts/build-release.ts')])
})
afterAll(async () => {
  for (const child of running) child.kill('SIGKILL')
  await devnet?.stop()
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
})

/** Runs what `npm run build` wrote on a free port. */
function spawnServe(...options: string[]) {
  const args = ['--vars', varsFile, '--data', data, '--port', '0', ...options]
  const child = spawn(process.execPath, [join(root, 'dist/service/serve.js'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.add(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (output += chunk))
  const exited = once(child, 'close').then(([code]) => {
    running.delete(child)
    return { code: code as number | null, output }
  })
  return { child, exited }
}

/** Starts the service and returns its URL, and a function that stops it as a service manager does. */
async function serve(vars: Record<string, string>, ...options: string[]) {
  const lines = Object.entries(vars).map(([name, value]) => `${name}='${value}'\n`)
  writeFileSync(varsFile, lines.join(''), { mode: 0o600 })
  const { child, exited } = spawnServe(...options)
  const url = await Promise.race([
    exited.then(({ output }) => Promise.reject(new Error(output))),
    (async () => {
      for await (const line of createInterface(child.stdout)) {
        const [, found] = /^service {2}(\S+)/.exec(line) ?? []
        if (found) return found
      }
      throw new Error((await exited).output)
    })(),
  ])
  const stop = async () => {
    child.kill('SIGTERM')
    return exited
  }
  return { url, stop, pid: child.pid as number, exited }
}

const get = async (url: string): Promise<Json> => (await fetch(url)).json()
async function post(url: string, body: Json): Promise<{ status: number; body: Json }> {
  const headers = { 'Content-Type': 'application/json' }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: response.status, body: await response.json() }
}

it('an agent trades, the service restarts, and journal and history are there', async () => {
  const vars = {
    ...workerVars(devnet.deployment),
    ...asRealChain,
    X402_ENABLED: 'false',
    SUBMISSION_TIMEOUT_MS: '15000',
  }
  const first = await serve(vars)
  const account = privateKeyToAccount(generatePrivateKey())
  const sign = async ({ body, typedData: { types, ...rest } }: Json) => {
    const { EIP712Domain: _, ...own } = types
    return { ...body, signature: await account.signTypedData({ ...rest, types: own } as TypedDataDefinition) }
  }
  const facts = { vault: `${devnet.deployment.vaults.genesis}`, name: 'agent', metadataURI: 'https://agents.example/a' }
  const query = new URLSearchParams({ signer: account.address, ...facts })
  const registration = await sign(await get(`${first.url}/agents/register/quote?${query}`))
  const { agentId } = (await post(`${first.url}/agents/register`, registration)).body
  const quote = await get(`${first.url}/agents/${agentId}/trade-intents/quote?symbol=NVDA&usdcAmount=25`)
  const intent = await sign(quote)
  const traded = await post(`${first.url}/agents/${agentId}/trade-intents`, intent)
  expect(traded.status).toBe(201)
  await vi.waitFor(
    async () => {
      const { history } = await get(`${first.url}/health/ready`)
      const { blockNumber } = await get(`${first.url}/transactions/${traded.body.transactionHash}`)
      expect(BigInt(history.cursor)).toBeGreaterThanOrEqual(BigInt(blockNumber))
    },
    { timeout: 240_000, interval: 200 },
  )
  expect((await fetch(`${first.url}/app/`)).headers.get('Content-Type')).toContain('text/html')

  const second = spawnServe()
  expect(await second.exited).toMatchObject({
    code: 1,
    output: expect.stringContaining('is in use by another process'),
  })
  expect(await first.stop()).toMatchObject({ code: 0, output: expect.stringContaining('stopped') })

  // An index that is lost would start after the trade.
  const START_BLOCK = `${(await devnet.client.getBlockNumber()) + 1n}`
  const again = await serve({ ...vars, START_BLOCK })
  const { state, attempts } = await get(`${again.url}/intents/${quote.digest}`)
  expect(['mined', 'final']).toContain(state)
  expect(attempts).toMatchObject([{ transactionHash: traded.body.transactionHash }])
  const { trades } = await get(`${again.url}/agents/${agentId}/trades`)
  expect(trades).toMatchObject([{ type: 'PositionOpened', transactionHash: traded.body.transactionHash }])
  expect(await post(`${again.url}/agents/${agentId}/trade-intents`, intent)).toMatchObject({
    status: 201,
    body: { positionId: traded.body.positionId },
  })
  expect(await again.stop()).toMatchObject({ code: 0 })
})

it('the service starts again on its data after the process was killed', async () => {
  const vars = { ...workerVars(devnet.deployment), X402_ENABLED: 'false' }
  const killed = await serve(vars)
  const workerd = childOf(killed.pid, 'workerd')
  for (const pid of [killed.pid, workerd]) process.kill(pid, 'SIGKILL') // as a container or a service manager does
  await killed.exited
  const again = await serve(vars)
  expect(await get(`${again.url}/health`)).toMatchObject({ status: 'ok' })
  expect(await again.stop()).toMatchObject({ code: 0 })
})

it('the process exits within two seconds when workerd is gone', async () => {
  const { pid, exited } = await serve({ ...workerVars(devnet.deployment), X402_ENABLED: 'false' })
  const workerd = childOf(pid, 'workerd')
  process.kill(workerd, 'SIGKILL')
  const killedAt = Date.now()
  expect(await exited).toMatchObject({ code: 1, output: expect.stringContaining('workerd has stopped') })
  expect(Date.now() - killedAt).toBeLessThan(2_000)
})

it('tabs of a replaced release still load its scripts after the service started with the next one', async () => {
  const vars = { ...workerVars(devnet.deployment), X402_ENABLED: 'false' }
  const first = await serve(vars)
  await first.stop()
  const [old = ''] = globSync('owner-*.js', { cwd: join(root, 'dist/service/public/app/assets') })
  const scriptOf = (name: string) => join(root, 'dist/service/public/app/assets', name)
  renameSync(scriptOf(old), scriptOf('owner-next.js')) // as the build of the next release names it
  const next = await serve(vars)
  for (const name of [old, 'owner-next.js'])
    expect((await fetch(`${next.url}/app/assets/${name}`)).headers.get('Content-Type'), name).toMatch(/javascript/)
  await next.stop()
  renameSync(scriptOf('owner-next.js'), scriptOf(old))
})

it('an environment of wrangler.toml gives its variables, and the vars file comes first', async () => {
  const { url, stop } = await serve(
    { RPC_URL: devnet.rpcUrl, BASE_URL: 'https://own.example' },
    '--env',
    'arbitrum-sepolia',
  )
  const discovery = await get(`${url}/`)
  expect(discovery.links).toMatchObject({ docs: 'https://own.example/docs', explorer: 'https://sepolia.arbiscan.io' })
  await stop()
})
