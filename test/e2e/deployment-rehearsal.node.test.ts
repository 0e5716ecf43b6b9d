import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { bundleOnce, startWorkerd, type Workerd } from '../../bench/workerd.ts'
import { scaledStockTokenAbi } from '../../contracts-abi/scaled-stock-token.ts'
import type { Account } from '../../devnet/accounts.ts'
import { freePort } from '../../devnet/anvil.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { unlimitedGas, unlimitedRequests, workerVars } from '../../devnet/worker-vars.ts'
import { recordOf, registerAgent } from '../../rehearsal/agent-under-test.ts'
import type { Body } from '../support/body.ts'
import { perform, type Wish } from '../support/wishes.ts'

// A deployment on an embedded chain of its own, which is rehearsed on another one.

const SOURCE = '--conditions=@agent-trading-service/source'
const CHAIN_ID = 31_338
const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-deployment-'))
let devnet: Devnet
let worker: Workerd
/** Where the service counts what an agent is refused. */
let agentUrl: string

beforeAll(async () => {
  const [port, ofAgent] = [await freePort(), await freePort()]
  agentUrl = `http://127.0.0.1:${ofAgent}`
  devnet = await startDevnet({ chainId: CHAIN_ID, baseUrl: `http://127.0.0.1:${port}` })
  worker = await startWorkerd({
    port,
    otherPorts: [ofAgent],
    persistTo: join(folder, 'storage'),
    vars: { ...workerVars(devnet.deployment), ...unlimitedGas, ...unlimitedRequests },
    bundle: await bundleOnce('rehearsal/recording-worker.ts'),
  })
})
afterAll(async () => {
  await worker.stop()
  await devnet.stop()
  rmSync(folder, { recursive: true })
})

type Run = { code: number | null; stdout: string; stderr: string }

function start(
  args: readonly string[],
  env: Record<string, string> = {},
): { child: ChildProcess; ended: Promise<Run> } {
  const child = spawn(process.execPath, [SOURCE, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const ended = new Promise<Run>((resolve, reject) =>
    child.once('error', reject).once('close', code => resolve({ code, stdout, stderr })),
  )
  return { child, ended }
}

const rehearse = (...args: string[]) => start(['scripts/rehearse.ts', ...args])

it('a mirror plays a deployment under another chain id, so that what is signed in it is worthless there', async () => {
  // The same key has the same agent on both chains, under the same contracts.
  const [account] = devnet.deployment.accounts.agents
  const program = { name: 'original', command: '', args: [] }
  await registerAgent(worker.url, devnet.deployment, account as Account, program, worker.url)
  const report = join(folder, 'mirror.json')
  const { child, ended } = start(
    ['scripts/rehearse.ts', '--mirror', worker.url, '--hours', 'all', '--json', report].concat([
      '--',
      process.execPath,
      SOURCE,
      'test/support/mirrored-agent.ts',
    ]),
    { ORIGINAL: worker.url },
  )
  const printed: Record<string, unknown>[] = []
  for await (const line of createInterface({ input: child.stderr as NodeJS.ReadableStream })) {
    if (!line.startsWith('{')) continue
    printed.push(JSON.parse(line))
    if (printed.length === 1) await devnet.setPrice('NVDA', '177.5')
  }
  const run = await ended
  expect(run.code, run.stderr).toBe(0)
  const [traded, moved] = printed
  expect(traded).toMatchObject({
    chainId: 31_337,
    posts: [{ status: 400, code: 'INVALID_SIGNATURE' }, { status: 201 }],
  })
  expect(moved).toEqual({ price: '177.5' })
  const { symbols, agents } = JSON.parse(readFileSync(report, 'utf8'))
  expect(symbols).toEqual(Object.keys(devnet.deployment.tokens))
  expect(agents[0].trades.map(({ symbol }: { symbol: string }) => symbol)).toEqual(['AAPL', 'NVDA'])
})

it('a mirror that cannot be played is refused with what to do instead', async () => {
  const other = createServer((_, response) => response.end('hello'))
  await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
  const agent = ['--', 'true']
  const unreachable = rehearse('--mirror', 'http://127.0.0.1:9', ...agent).ended
  const wrong = rehearse('--mirror', `http://127.0.0.1:${(other.address() as AddressInfo).port}`, ...agent).ended
  const same = rehearse('--mirror', worker.url, '--chain-id', `${CHAIN_ID}`, ...agent).ended
  const nobody = rehearse('--mirror', worker.url).ended
  const refusals = await Promise.all([unreachable, wrong, same, nobody])
  other.close()
  expect(refusals).toMatchObject([
    { code: 2, stderr: expect.stringMatching(/cannot be reached\. Check the host/) },
    { code: 2, stderr: expect.stringMatching(/is not a deployment of this service\. Pass the base URL/) },
    { code: 2, stderr: expect.stringMatching(/is on chain 31338, .* such as --chain-id 31339/) },
    { code: 2, stderr: expect.stringMatching(/has no end without an agent\. Name its program/) },
  ])
})

it('a rehearsal of a recorded day gives the trades, fills and refusals that the same wishes had on the day', async () => {
  const { accounts } = devnet.deployment
  const account = accounts.agents[1] as Account
  const program = { name: 'day', command: '', args: [] }
  const agent = await registerAgent(worker.url, devnet.deployment, account, program, agentUrl)
  const { agentId } = agent
  const wishes: Wish[] = []
  const timeNow = async () => Number((await devnet.client.getBlock()).timestamp)
  const wish = async (segment: string, query: Record<string, string>, positionOf?: string) => {
    await devnet.increaseTime(60)
    const made = { at: await timeNow(), segment, query, ...(positionOf !== undefined && { positionOf }) }
    wishes.push(made)
    return perform({ base: agentUrl, agentId, key: account.privateKey }, made)
  }
  const readPositions = async (): Promise<Body[]> => {
    const response = await fetch(`${worker.url}/agents/${agentId}/positions`)
    const { positions }: Body = await response.json()
    return positions
  }
  const openSymbols = async () => (await readPositions()).map(({ symbol }) => symbol).sort()
  const post = async (symbol: string, usd: string) => {
    await devnet.increaseTime(60)
    await devnet.setPrice(symbol, usd)
  }

  const exits = '-300:5000,-600:10000,900:10000'
  expect(await wish('trade-intents', { symbol: 'NVDA', usdcAmount: '90', exits })).toBe(null)
  expect(await wish('trade-intents', { symbol: 'NVDA', usdcAmount: '90', exits })).toBe('POSITION_ALREADY_OPEN')
  expect(await wish('trade-intents', { symbol: 'TSLA', usdcAmount: '80', exits })).toBe(null)
  await post('NVDA', '181')
  expect(await wish('trade-intents', { symbol: 'META', usdcAmount: '70', exits: '-400:10000' })).toBe(null)
  expect(await wish('add-intents', { usdcAmount: '20' }, 'TSLA')).toBe(null)
  expect(await wish('trade-intents', { symbol: 'AAPL', usdcAmount: '90000', exits })).not.toBe(null)
  const effectiveAt = (await timeNow()) + 30
  await devnet.send(accounts.admin, {
    address: devnet.deployment.tokens.NVDA as `0x${string}`,
    abi: scaledStockTokenAbi,
    functionName: 'updateMultiplier',
    args: [1_000_775_159_164_630_595n, BigInt(effectiveAt)],
  })
  expect(await wish('add-intents', { usdcAmount: '20' }, 'NVDA')).toBe('PRICE_UNSETTLED')
  await post('META', '612.5')
  await expect.poll(openSymbols).toEqual(['NVDA', 'TSLA'])
  expect(await wish('reduce-intents', { exitBps: '4000' }, 'NVDA')).toBe(null)
  await post('TSLA', '462.7')
  await expect.poll(openSymbols).toEqual(['NVDA'])
  await post('NVDA', '171.9')
  await expect
    .poll(async () => (await readPositions()).map(({ pendingRules }: Body) => pendingRules.length))
    .toEqual([2])
  expect(await wish('reduce-intents', { exitBps: '10000' }, 'TSLA')).not.toBe(null)
  expect(await wish('reduce-intents', { exitBps: '10000' }, 'NVDA')).toBe(null)
  await devnet.increaseTime(60)

  const live = await recordOf(worker.url, agent, { exitCode: 0, shift: 0 })
  const day = join(folder, 'day.json')
  const recorded = await start([
    ...['packages/cli/src/ats.ts', 'tape', 'record', '--posts'],
    ...['--url', worker.url, '--rpc', devnet.rpcUrl],
  ]).ended
  expect(recorded.code, recorded.stderr).toBe(0)
  const { blocks }: Body = JSON.parse(recorded.stdout)
  const actions = blocks.flatMap(({ actions = [] }: Body) => actions)
  expect(actions).toEqual([{ symbol: 'NVDA', multiplier: '1.000775159164630595', effectiveAt }])
  writeFileSync(day, recorded.stdout)
  const made = join(folder, 'wishes.json')
  writeFileSync(made, JSON.stringify({ start: JSON.parse(recorded.stdout).blocks[0].time, wishes }))
  const report = join(folder, 'day-report.json')
  const run = await rehearse(
    ...['--tape', day, '--hours', 'all', '--json', report],
    ...['--', process.execPath, SOURCE, 'test/support/wishing-agent.ts', made],
  ).ended
  expect(run.code, run.stderr).toBe(0)
  const [rehearsed] = JSON.parse(readFileSync(report, 'utf8')).agents
  const comparable = ({ timestamp: _, positionId: __, ...trade }: Body) => trade
  expect(rehearsed.trades.map(comparable)).toEqual(live.trades.map(comparable))
  expect(live.trades.filter(({ source }) => source === 'automation').length).toBeGreaterThanOrEqual(3)
  expect(rehearsed.refusals).toEqual(live.refusals)
  expect(Object.values(live.refusals).length).toBeGreaterThanOrEqual(2)
  expect(rehearsed.limits).toEqual(live.limits)
})
