import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Finding } from '@agent-trading-service/protocol/finding'
import { isMarketOpen } from '@agent-trading-service/protocol/market-hours'
import { Webhook } from 'standardwebhooks'
import { getAddress } from 'viem'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { freePort } from '../../devnet/anvil.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { startWrangler, type Worker } from '../../devnet/worker.ts'
import { FAST_SCRYPT } from '../support/ats.ts'
import type { Body } from '../support/body.ts'
import { deployConfigOf, operatorsOf } from '../support/deploy-config.ts'
import { commandsOf, readDocumentedCommands } from '../support/documented-commands.ts'
import { parseOpenMetrics } from '../support/open-metrics.ts'
import { createOperatorsFolder, type OperatorsFolder } from '../support/operators-folder.ts'

// Runs the section "An afternoon" of docs/operations.md as it is written. Each test is a part of it and builds on those
// before. Only what is the reader's own is replaced: URLs, keys and the port. Key files get the least work factor.

const CHAIN_ID = 421614
/** The delay of the example deployment. */
const DELAY = 518_400
const VARS_FILE = '.dev.vars.arbitrum-sepolia'
const OPERATOR_SECRET = 'operator-of-the-afternoon'
const KEYS = ['proposer', 'guardian', 'operator', 'updater', 'depositor', 'payer'] as const
const guide = readDocumentedCommands('docs/operations.md', 'An afternoon')
const exports = guide
  .take('')
  .replace('RPC_URL=…', 'RPC_URL=$NODE_URL')
  .replace('DEPLOYER_PRIVATE_KEY=…', 'DEPLOYER_PRIVATE_KEY=$DEPLOYER')

let devnet: Devnet
let holders: ReturnType<typeof operatorsOf>
let folder: OperatorsFolder
let url: string
let worker: Worker | undefined
let serviceCommand: string

/** The operator's own price server. */
const prices = createServer(async (_, response) => {
  const { timestamp } = await devnet.client.getBlock()
  response.end(JSON.stringify({ NVDA: { price: '180.25', time: Number(timestamp) } }))
})
/** The first delivery of the webhook. */
const delivery = Promise.withResolvers<{ text: string; headers: Record<string, string> }>()
const receiver = createServer(async (request, response) => {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  response.writeHead(204).end()
  delivery.resolve({ text, headers: request.headers as Record<string, string> })
})
const listen = (server: Server) => new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))
const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`

beforeAll(async () => {
  devnet = await startDevnet({ chainId: CHAIN_ID, blockMs: 100, startsAt: openDay() })
  devnet.marketMaker.pause()
  holders = operatorsOf(devnet)
  await Promise.all([prices, receiver].map(listen))
  url = `http://127.0.0.1:${await freePort()}`
  folder = createOperatorsFolder({
    ATS_OUTPUT: 'json',
    ATS_PASSWORD: 'correct horse',
    NODE_URL: devnet.rpcUrl,
    DEPLOYER: holders.deployer.privateKey,
    OPERATOR_SECRET,
    OLD: holders.executor.address,
    NEW: holders.newExecutor.address,
    HOOK_URL: urlOf(receiver),
  })
  folder.write('deploy.json', deployConfigOf(devnet))
  await Promise.all(
    KEYS.map(name => folder.succeed(scriptOf(`npx ats key import ${name}`), `${holders[name].privateKey}\n`)),
  )
})
afterAll(async () => {
  await worker?.stop()
  for (const server of [prices, receiver]) server.close()
  folder?.remove()
  await devnet?.stop()
})

/** Returns now, or the next time (Unix seconds) at which the market is open, and also after the timelock's delay. */
function openDay(): number {
  let at = Math.floor(Date.now() / 1_000)
  const isOpen = (time: number) => isMarketOpen('us-equity-24-5', time) && isMarketOpen('us-equity-24-5', time + 7_200)
  while (!isOpen(at) || !isOpen(at + DELAY)) at += 3_600
  return at
}

/** Returns a command of the page with the variables that the page begins with. */
const scriptOf = (command: string): string =>
  (exports + command)
    .replace('http://127.0.0.1:8787', url)
    .replace(/ats key (new|import) \w+/, `$& ${FAST_SCRYPT.join(' ')}`)

/**
 * Runs the commands of a block and returns what each printed. They succeed, unless `exitCodes` has another code by
 * index.
 */
async function runAll(block: string, exitCodes: Record<number, number> = {}): Promise<string[]> {
  const outputs: string[] = []
  for (const [index, command] of commandsOf(block).entries()) {
    const { code, stdout, stderr } = await folder.run(scriptOf(command))
    if (code !== (exitCodes[index] ?? 0)) throw new Error(`${command}\nexited with ${code}:\n${stdout}\n${stderr}`)
    outputs.push(stdout === '' ? stderr : stdout)
  }
  return outputs
}

/** Returns what the doctor printed, without what is in order and without what it did not check. */
const faultsIn = (output = '{}'): Finding[] =>
  JSON.parse(output).findings.filter(({ verdict }: Finding) => verdict === 'warning' || verdict === 'wrong')

/** Runs the doctor. */
async function examine() {
  const { code, stdout } = await folder.run(scriptOf('npx ats doctor'))
  return { code, faults: faultsIn(stdout) }
}
const clean = { code: 0, faults: [] }

/** Adds variables to the environment in wrangler.toml. */
function setVariables(toml: string) {
  const block = '[env.arbitrum-sepolia.vars]\n'
  folder.write('wrangler.toml', folder.read('wrangler.toml').replace(block, `${block}${toml}`))
}

/** Starts the service, again if it runs, with the page's command on a free port, and waits for its index. */
async function startService() {
  await worker?.stop()
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  worker = await startWrangler({
    port,
    args: serviceCommand
      .replace('npx wrangler ', '')
      .replace(/ --port \d+/, '')
      .trim()
      .split(' '),
    cwd: folder.path,
    logs: join(folder.path, 'logs'),
  })
  await untilIndexed()
}

/**
 * Waits until the index has every block that there is now, and the keeper has evaluated once. While a stream is open,
 * the index follows the chain closely.
 */
async function untilIndexed() {
  const head = await devnet.client.getBlockNumber()
  const stream = new AbortController()
  await fetch(`${url}/events`, { signal: stream.signal })
  await vi.waitFor(
    async () => {
      const response = await fetch(`${url}/health/ready`)
      const { details, history = details.history, problems = [] } = (await response.json()) as Body
      expect(BigInt(history.cursor)).toBeGreaterThanOrEqual(head)
      expect(problems).not.toContain('the keeper does not evaluate the positions')
    },
    { timeout: 240_000, interval: 100 },
  )
  stream.abort()
}

it('contracts are deployed and verified, and the doctor names what the environment lacks', async () => {
  const heading = 'Contracts and environment'
  const [deployed, verified, written, unset] = await runAll(guide.take(heading), { 3: 12 })
  for (const output of [deployed, verified]) expect(output).toMatch(/Verified: \d+ wired values and roles/)
  expect(written).toContain('npm run deploy -- --env arbitrum-sepolia --secrets')

  const secrets = {
    RPC_URL: devnet.rpcUrl,
    EXECUTOR_PRIVATE_KEY: holders.executor.privateKey,
    RELAYER_PRIVATE_KEY: holders.relayer.privateKey,
    ORACLE_UPDATER_PRIVATE_KEY: holders.updater.privateKey,
    KEEPER_PRIVATE_KEY: holders.keeper.privateKey,
    OPERATOR_SECRET,
  }
  for (const name of [...Object.keys(secrets), 'PRICE_PROVIDER'])
    expect(faultsIn(unset)).toContainEqual(
      expect.objectContaining({ check: 'variables', fix: expect.stringMatching(`^set .*${name}`) }),
    )
  folder.fillIn(VARS_FILE, secrets)
  setVariables(guide.take(heading, 'toml').replace('https://prices.example.org/quotes', urlOf(prices)))
  setVariables('GAS_PRICE_GWEI = "100,1000"\n') // anvil's gas costs more than that of the page's chain
})

it('the first price and the first deposit are the commands that the doctor names', async () => {
  const { code, faults } = await examine()
  expect({ code, faults }).toMatchObject({
    code: 11,
    faults: [
      { check: 'oracle', sentence: 'NVDA has never had a price.' },
      { check: 'vault', sentence: expect.stringContaining('genesis has no idle USDC') },
      { check: 'pool', subject: 'NVDA', fix: expect.stringMatching(/^wait .*\bmin\b/) },
    ],
  })
  const wait = faults.pop()?.fix ?? ''
  const [, minutes = ''] = /(\d+) min/.exec(wait) ?? []
  await devnet.increaseTime(60 * (Number(minutes) + 1)) // a person waits
  const block = guide.take('Contracts and environment')
  for (const { fix } of faults) expect(block).toContain(/^ats admin [^<]+/.exec(`${fix}`)?.[0])
  const outputs = await runAll(block)
  expect(faultsIn(outputs.at(-1))).toEqual([])
})

it('the service starts with the environment, and the doctor finds nothing to do', async () => {
  serviceCommand = guide.take('The service')
  await startService()
  expect(await examine()).toEqual(clean)
})

it('an agent registers, pays the fee and trades', async () => {
  const [, registered = '', opened = '', history = ''] = await runAll(guide.take('An agent'))
  const { agentId } = JSON.parse(registered)
  const { positionId, transactionHash } = JSON.parse(opened)
  expect({ agentId, positionId }).toEqual({ agentId: '1', positionId: '1' })
  expect(JSON.parse(history)).toMatchObject({ trades: [{ type: 'PositionOpened', transactionHash }] })
})

it('a key rotates through the timelock, and the old one relays nothing', async () => {
  const heading = 'A rotated key'
  const { executor, newExecutor } = holders
  const [shown = '', scheduled = '', waiting = ''] = await runAll(guide.take(heading))
  const change = (before: string, after: string, { address }: { address: string }) => ({
    call: expect.stringContaining(`EXECUTOR_ROLE, ${address}`),
    changes: [{ value: 'hasRole', before, after }],
  })
  const calls = [change('false', 'true', newExecutor), change('true', 'false', executor)]
  expect(JSON.parse(shown)).toMatchObject({ dryRun: true, allowed: true, plans: [{ route: 'timelock', calls }] })
  expect(JSON.parse(scheduled)).toMatchObject({ sent: [{ what: expect.stringContaining('schedule operation') }] })
  expect(JSON.parse(waiting)).toMatchObject({ operations: [{ state: 'waiting', calls }] })

  await devnet.increaseTime(DELAY)
  const exitCodes = { 2: 12, 3: 5 }
  const [refreshed = '', executed = '', unfit, refused] = await runAll(guide.take(heading), exitCodes)
  expect(JSON.parse(refreshed)).toMatchObject({ updated: ['NVDA'] })
  expect(JSON.parse(executed)).toMatchObject({ sent: [{ what: expect.stringContaining('execute operation') }] })
  expect(faultsIn(unfit)).toContainEqual(
    expect.objectContaining({ sentence: `The executor ${executor.address} lacks EXECUTOR_ROLE of TradeRouter.` }),
  )
  expect(refused).toContain('"code":"ACCESS_CONTROL_UNAUTHORIZED_ACCOUNT"')

  folder.fillIn(VARS_FILE, { EXECUTOR_PRIVATE_KEY: newExecutor.privateKey })
  await startService()
  expect(await examine()).toEqual(clean)
})

it('trading pauses and resumes, relayed by the new account', async () => {
  const [, refused, , added = ''] = await runAll(guide.take('Pause and resume'), { 1: 5 })
  expect(refused).toContain('"code":"TRADING_PAUSED"')
  const { from } = await devnet.client.getTransaction({ hash: JSON.parse(added).transactionHash })
  expect(getAddress(from)).toBe(holders.newExecutor.address)
})

it('the index is dropped and says the same afterwards', async () => {
  const [replay = '', progress = '', history = ''] = commandsOf(guide.take('The index'))
  const readTrades = async () => JSON.parse((await runAll(history))[0] ?? '').trades
  await untilIndexed()
  const before = await readTrades()
  expect(before).toMatchObject([{ type: 'PositionIncreased' }, { type: 'PositionOpened' }])
  await runAll(replay)
  await untilIndexed()
  const [shown = ''] = await runAll(progress)
  expect(JSON.parse(shown)).toMatchObject({ index: { cursor: expect.any(String), migrations: { pending: [] } } })
  expect(await readTrades()).toEqual(before)
})

it('the metrics count the trade', async () => {
  const block = guide.take('Metrics')
  const trade = {
    name: 'ats_transactions_total',
    labels: { account: 'executor 1', kind: 'add', result: 'mined' },
    value: 1,
  }
  // Isolates deliver what they count every few seconds.
  await vi.waitFor(
    async () => {
      const metrics = parseOpenMetrics((await runAll(block))[0] ?? '')
      expect(metrics.get('ats_transactions')?.samples).toContainEqual(trade)
    },
    { timeout: 240_000, interval: 250 },
  )
})

it('a webhook delivers a trade that its receiver verifies', async () => {
  setVariables(guide.take('A webhook', 'toml'))
  // What an owner signs for its webhooks names the host, and here the commands reach another one than in production.
  folder.write('wrangler.toml', folder.read('wrangler.toml').replaceAll('https://api-421614.example.com', url))
  await startService()
  const [created = '', closed = ''] = await runAll(guide.take('A webhook'))
  const { transactionHash } = JSON.parse(closed)
  const { text, headers } = await delivery.promise
  expect(new Webhook(JSON.parse(created).secret).verify(text, headers)).toMatchObject({
    type: 'trade',
    data: { type: 'PositionReduced', agentId: '1', transactionHash },
  })
})

it('every command of the section has run', () => {
  expect(guide.untaken()).toEqual([])
})
