import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { getAddress } from 'viem'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { freePort } from '../../devnet/anvil.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { startWrangler, type Worker } from '../../devnet/worker.ts'
import { FAST_SCRYPT } from '../support/ats.ts'
import type { Body } from '../support/body.ts'
import { deployConfigOf, operatorsOf } from '../support/deploy-config.ts'
import { parseOpenMetrics } from '../support/open-metrics.ts'
import { codeBlocksOf, createOperatorsFolder, type OperatorsFolder, type Outcome } from '../support/operators-folder.ts'

// Runs the section "An afternoon" of docs/operations.md as it is written: each test is a part of it, and they build on one
// another. The page's values are replaced where they name somebody else's: URLs, keys, addresses.

const CHAIN_ID = 421614
const TWO_DAYS = 172_800
const VARS = '.dev.vars.arbitrum-sepolia'
const OPERATOR_SECRET = 'operator-of-the-afternoon'
const sections = codeBlocksOf('docs/operations.md', 'An afternoon')
const unread = new Set([...sections.values()].flat())

let devnet: Devnet
let folder: OperatorsFolder
let port: number
let url: string
let worker: Worker | undefined
let serviceCommand: string
/** The variables that the page begins with. */
let exports: string

/** What arrives at the receiver of the webhook. */
const received: { text: string; headers: Record<string, string> }[] = []
const receiver = createServer(async (request, response) => {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  received.push({ text, headers: request.headers as Record<string, string> })
  response.writeHead(204).end()
})
/** The operator's own price server. */
const prices = createServer(async (_, response) => {
  const { timestamp } = await devnet.client.getBlock()
  response.end(JSON.stringify({ NVDA: { price: '180.25', time: Number(timestamp) } }))
})
const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
const listen = (server: Server) => new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))

beforeAll(async () => {
  devnet = await startDevnet({ chainId: CHAIN_ID, mineEveryMs: 100 })
  devnet.marketMaker.pause()
  await devnet.increaseTime(700) // the average of a pool needs ten minutes
  await Promise.all([receiver, prices].map(listen))
  port = await freePort()
  url = `http://127.0.0.1:${port}`
  exports = take('')
    .replace('RPC_URL=…', 'RPC_URL=$NODE_URL')
    .replace('DEPLOYER_PRIVATE_KEY=…', 'DEPLOYER_PRIVATE_KEY=$DEPLOYER')
  const { executor, newExecutor, deployer } = operatorsOf(devnet)
  folder = createOperatorsFolder({
    ATS_OUTPUT: 'json',
    ATS_PASSWORD: 'correct horse',
    OPERATOR_SECRET,
    NODE_URL: devnet.rpcUrl,
    DEPLOYER: deployer.privateKey,
    OLD: executor.address,
    NEW: newExecutor.address,
    HOOK_URL: urlOf(receiver),
  })
  folder.write('deploy.json', deployConfigOf(devnet))
  const names = ['proposer', 'guardian', 'updater', 'depositor', 'operator', 'payer'] as const
  const holders = operatorsOf(devnet)
  await Promise.all(
    names.map(name =>
      succeed(`printf %s ${holders[name].privateKey} | npx ats key import ${name} ${FAST_SCRYPT.join(' ')}`),
    ),
  )
})
afterAll(async () => {
  await worker?.stop()
  for (const server of [receiver, prices]) server.close()
  folder?.remove()
  await devnet?.stop()
})

/** Returns the next code of a part of the page. */
function take(heading: string, language = 'sh'): string {
  const block = (sections.get(heading) ?? []).find(block => block.language === language && unread.has(block))
  if (block === undefined) throw new Error(`docs/operations.md has no more ${language} under ${heading}`)
  unread.delete(block)
  return block.code.replaceAll('http://127.0.0.1:8787', url).replaceAll(/--port \d+/g, '')
}

const run = (command: string): Promise<Outcome> =>
  folder.run(exports + command.replace(/ats key new \w+/, `$& ${FAST_SCRYPT.join(' ')}`))

/** Runs a command that must succeed and returns its output. */
async function succeed(command: string): Promise<string> {
  const { code, stdout, stderr } = await run(command)
  if (code !== 0) throw new Error(`${command}\nexited with ${code}:\n${stdout}\n${stderr}`)
  return stdout
}

/** Runs the commands of a block one after another, up to one that fails without being expected to. */
async function runAll(block: string, expected: Record<number, number> = {}): Promise<string[]> {
  const commands = block
    .replaceAll(/ {2,}#.*$/gm, '')
    .replaceAll(/\|\n +/g, '| ')
    .trim()
    .split('\n')
  const outputs: string[] = []
  for (const [index, command] of commands.entries()) {
    if (expected[index] === undefined) {
      outputs.push(await succeed(command))
      continue
    }
    const { code, stdout, stderr } = await run(command)
    expect({ command, code, stderr }).toMatchObject({ command, code: expected[index] })
    outputs.push(stdout === '' ? stderr : stdout)
  }
  return outputs
}

type Finding = { check: string; subject: string; verdict: string; sentence: string; fix: string | null }
const findings = (output = ''): Finding[] => JSON.parse(output).findings
const faults = (output: string | undefined) => findings(output).filter(({ verdict }) => verdict !== 'ok')
const get = async (path: string): Promise<Body> => (await fetch(`${url}${path}`)).json()

/** Adds variables to the environment in wrangler.toml. */
function set(variables: string) {
  const block = '[env.arbitrum-sepolia.vars]\n'
  folder.write('wrangler.toml', folder.read('wrangler.toml').replace(block, `${block}${variables}`))
}

/** Waits until the index has every block that there is now. */
async function untilIndexed() {
  const head = await devnet.client.getBlockNumber()
  await vi.waitFor(
    async () => {
      const { details, history = details.history } = await get('/health/ready')
      expect(BigInt(history.cursor)).toBeGreaterThanOrEqual(head)
    },
    { timeout: 60_000, interval: 100 },
  )
}

/** Starts the service with the page's command, as a deploy does. */
async function startService() {
  await worker?.stop()
  worker = await startWrangler({
    port,
    args: serviceCommand.trim().replace('npx wrangler ', '').split(' '),
    cwd: folder.path,
    logs: join(folder.path, 'logs'),
  })
  await untilIndexed()
}

/** Runs the doctor and returns its exit code and what is not in order. */
async function examine() {
  const { code, stdout, stderr } = await run('npx ats doctor')
  if (stdout === '') throw new Error(stderr)
  return { code, faults: faults(stdout) }
}
const clean = { code: 0, faults: [] }

it('contracts are deployed and verified, and the doctor names what the environment lacks', async () => {
  const heading = 'Contracts and environment'
  const [deployed, verified, written, unset] = await runAll(take(heading), { 3: 12 })
  expect(deployed).toMatch(/Verified: \d+ wired values/)
  expect(verified).toMatch(/Verified: \d+ wired values/)
  expect(written).toContain('npm run deploy -- --env arbitrum-sepolia --secrets')

  const { executor, relayer, updater, keeper } = operatorsOf(devnet)
  const secrets = {
    RPC_URL: devnet.rpcUrl,
    EXECUTOR_PRIVATE_KEY: executor.privateKey,
    RELAYER_PRIVATE_KEY: relayer.privateKey,
    ORACLE_UPDATER_PRIVATE_KEY: updater.privateKey,
    KEEPER_PRIVATE_KEY: keeper.privateKey,
    OPERATOR_SECRET,
  }
  const lacking = faults(unset).filter(({ check }) => check === 'variables')
  for (const name of Object.keys(secrets))
    expect(lacking).toContainEqual(expect.objectContaining({ fix: expect.stringContaining(name) }))
  folder.fillIn(VARS, secrets)
  set(take(heading, 'toml').replace('https://prices.example.org/quotes', urlOf(prices)))
})

it('the first price and the first deposit are the commands that the doctor names', async () => {
  const { code, faults: found } = await examine()
  expect(code).toBe(11)
  const warnings = found.filter(({ verdict }) => verdict !== 'unchecked')
  expect(warnings).toMatchObject([
    { verdict: 'warning', check: 'oracle', sentence: 'NVDA has never had a price.' },
    { verdict: 'warning', check: 'vault', sentence: expect.stringContaining('genesis has no idle USDC') },
  ])
  const block = take('Contracts and environment')
  for (const { fix } of warnings) expect(block).toContain(/^ats admin [^<]*/.exec(fix ?? '')?.[0])
  const outputs = await runAll(block)
  expect(faults(outputs.at(-1)).filter(({ verdict }) => verdict !== 'unchecked')).toEqual([])
})

it('the service starts with the environment, and the doctor finds nothing to do', async () => {
  serviceCommand = take('The service')
  await startService()
  expect(await examine()).toEqual(clean)
})

it('an agent registers, pays the fee and trades', async () => {
  const [, registered = '', opened = '', listed = ''] = await runAll(take('An agent'))
  expect(JSON.parse(registered)).toMatchObject({ agentId: '1' })
  expect(JSON.parse(opened)).toMatchObject({ positionId: '1' })
  console.log(listed)
})

it('a key rotates through the timelock, and the old one relays nothing', async () => {
  const heading = 'A rotated key'
  const { executor, newExecutor } = operatorsOf(devnet)
  const [shown = '', scheduled = '', waiting = ''] = await runAll(take(heading))
  const calls = [
    {
      changes: [{ value: 'hasRole', before: 'false', after: 'true' }],
      call: expect.stringContaining(newExecutor.address),
    },
    {
      changes: [{ value: 'hasRole', before: 'true', after: 'false' }],
      call: expect.stringContaining(executor.address),
    },
  ]
  expect(JSON.parse(shown)).toMatchObject({ dryRun: true, allowed: true, plans: [{ route: 'timelock', calls }] })
  expect(JSON.parse(scheduled)).toMatchObject({ sent: [{ what: expect.stringContaining('schedule operation') }] })
  expect(JSON.parse(waiting)).toMatchObject({ operations: [{ state: 'waiting', calls }] })

  await devnet.increaseTime(TWO_DAYS)
  const [refreshed = '', executed = '', wrong = '', refused = ''] = await runAll(take(heading), { 2: 12, 3: 5 })
  expect(JSON.parse(refreshed)).toMatchObject({ updated: ['NVDA'] })
  expect(JSON.parse(executed)).toMatchObject({ sent: [{ what: expect.stringContaining('execute operation') }] })
  expect(faults(wrong)).toContainEqual(
    expect.objectContaining({
      verdict: 'wrong',
      sentence: expect.stringContaining(`${executor.address} lacks EXECUTOR_ROLE`),
    }),
  )
  console.log(refused)

  folder.fillIn(VARS, { EXECUTOR_PRIVATE_KEY: newExecutor.privateKey })
  await startService()
  expect(await examine()).toEqual(clean)
})

it('trading pauses and resumes', async () => {
  const [, refused = '', , added = ''] = await runAll(take('Pause and resume'), { 1: 5 })
  expect(refused).toContain('"code":"TRADING_PAUSED"')
  const { from } = await devnet.client.getTransaction({ hash: JSON.parse(added).transactionHash })
  expect(getAddress(from)).toBe(operatorsOf(devnet).newExecutor.address)
})

it('the index is read again from the chain and says the same', async () => {
  const [replay = '', progress = '', history = ''] = take('The index').trim().split('\n')
  const tradesOf = (output = '') => JSON.parse(output).trades
  await untilIndexed()
  const [before] = await runAll(history)
  expect(tradesOf(before)).toMatchObject([{ type: 'PositionIncreased' }, { type: 'PositionOpened' }])
  await runAll(replay)
  await untilIndexed()
  const [shown = ''] = await runAll(progress)
  expect(JSON.parse(shown)).toMatchObject({ dryRun: true, index: { cursor: expect.any(String) } })
  const [after] = await runAll(history)
  expect(tradesOf(after)).toEqual(tradesOf(before))
})

it('the metrics count the trades', async () => {
  const block = take('Metrics')
  await vi.waitFor(
    async () => {
      const metrics = parseOpenMetrics((await runAll(block))[0] ?? '')
      const count = (family: string, labels: Record<string, string>) =>
        metrics
          .get(family)
          ?.samples.find(sample => Object.entries(labels).every(([name, value]) => sample.labels[name] === value))
          ?.value
      console.log(JSON.stringify([metrics.get('ats_refusals')?.samples, metrics.get('ats_transactions')?.samples]))
      expect(count('ats_transactions', { account: 'executor 1', result: 'mined' })).toBe(1)
      expect(count('ats_refusals', { code: 'TRADING_PAUSED' })).toBe(1)
    },
    { timeout: 30_000, interval: 500 },
  )
})

it('a webhook delivers what the receiver verifies', async () => {
  set(take('A webhook', 'toml'))
  await startService()
  const [created = '', closed = ''] = await runAll(take('A webhook'))
  const { secret } = JSON.parse(created)
  console.log(created, closed)
  await vi.waitFor(() => expect(received).not.toEqual([]), { timeout: 60_000, interval: 50 })
  const [{ text, headers }] = received as [(typeof received)[0]]
  console.log(new Webhook(secret).verify(text, headers))
})

it('every command of the page has run', () => {
  expect([...unread]).toEqual([])
})
