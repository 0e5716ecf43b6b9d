import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { bundleWorker } from '../../bench/workerd.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { VERSION } from '../../src/config/config.ts'
import { listen } from '../support/event-stream.ts'
import {
  executedIntentsOf,
  type RecoverableService,
  type SignedIntent,
  SOON,
  startRecoverableService,
} from '../support/recoverable-service.ts'

// docs/operations.md: an upgrade, and the version before again. The next version has a migration of the database and an
// upgrade of the lanes' journals.

const NEXT = '9.9.9'
const MAX_OUTAGE_MS = 60_000
const folder = mkdtempSync(join(tmpdir(), 'upgrade-'))
let devnet: Devnet
let service: RecoverableService
let next: string

beforeAll(async () => {
  devnet = await startDevnet({ blockMs: 150 })
  service = await startRecoverableService(devnet.deployment)
  next = nextVersionOf(await bundleWorker('src/index.ts', join(folder, 'built')))
})
afterAll(async () => {
  await service?.remove()
  await devnet?.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Writes a bundle of the next version and returns its path. */
function nextVersionOf(bundle: string): string {
  const copy = join(folder, 'next')
  cpSync(dirname(bundle), copy, { recursive: true })
  const path = join(copy, basename(bundle))
  const changes: [RegExp, string][] = [
    [new RegExp(`(var VERSION = ")${VERSION.replaceAll('.', '\\.')}`), `$1${NEXT}`],
    [
      /(var migrations = \[)/,
      '$1{ name: "0000_next.sql", statements: ["CREATE TABLE IF NOT EXISTS next (id INTEGER PRIMARY KEY)"] },',
    ],
    [/(var UPGRADES = \[[^\]]*["`])(\s*\])/, '$1, `ALTER TABLE intent ADD COLUMN next TEXT`$2'],
  ]
  let text = readFileSync(path, 'utf8')
  for (const [pattern, replacement] of changes) {
    expect(text).toMatch(pattern)
    text = text.replace(pattern, replacement)
  }
  writeFileSync(path, text)
  return path
}

type Agent = Awaited<ReturnType<RecoverableService['register']>>

/** What must hold whatever version runs: each intent was executed once, and the service says so. */
async function expectExecutedOnce(agent: Agent, intents: readonly SignedIntent[]): Promise<void> {
  for (const intent of intents) {
    expect(await service.send(intent)).toMatchObject({ status: 201 })
    expect((await service.intent(intent.digest)).body).toMatchObject({ state: expect.stringMatching(/mined|final/) })
  }
  expect(await executedIntentsOf(devnet, agent.agentId)).toBe(BigInt(intents.length))
}

/** Sends an intent that the version which stops has in flight, and changes the version. Returns how long it took. */
async function changeVersion(inFlight: SignedIntent, bundle?: string): Promise<number> {
  const executor = devnet.deployment.accounts.executor.address
  const sent = () => devnet.client.getTransactionCount({ address: executor, blockTag: 'pending' })
  const before = await sent()
  await devnet.setMining(false)
  const interrupted = service.send(inFlight).catch(() => undefined)
  await vi.waitFor(async () => expect(await sent()).toBe(before + 1), SOON)
  const stoppedAt = Date.now()
  await service.stop()
  await interrupted
  await service.start({}, bundle)
  await devnet.setMining(true)
  await vi.waitFor(async () => expect((await service.readiness()).status).toBe(200), SOON)
  return Date.now() - stoppedAt
}

const version = async (): Promise<string> => (await service.get('/')).version

it('an upgrade and its rollback lose and double nothing: positions, orders, streams and intents in flight', async () => {
  const agent = await service.register()
  const stream = listen(await agent.events())
  await stream.open()
  const opened = await agent.signTrade()
  const { body: position } = await service.send(opened)
  const order = await agent.signOrder({ type: 'limit', symbol: 'AAPL', usdcAmount: '25', price: '200' })
  expect(await service.send(order)).toMatchObject({ status: 201 })
  const { id } = await stream.next('trade')
  await stream.leave()
  const intents = [opened, order]

  // To the next version.
  const upgrade = await agent.signTrade({ symbol: 'MSFT' })
  const outage = await changeVersion(upgrade, next)
  expect(await version()).toBe(NEXT)
  intents.push(upgrade)
  await expectExecutedOnce(agent, intents)
  const resumed = listen(await agent.events(id))
  expect((await resumed.next('trade')).data.positionId).not.toBe(position.positionId)
  const resumeFrom = resumed.lastEventId()
  await resumed.leave()

  // And back: the database keeps the migration, the journals their column.
  const rollback = await agent.signTrade({ symbol: 'GOOGL' })
  const rolledBack = await changeVersion(rollback)
  expect(await version()).toBe(VERSION)
  intents.push(rollback)
  await expectExecutedOnce(agent, intents)
  const again = listen(await agent.events(resumeFrom))
  await again.next('trade')
  await again.leave()
  await devnet.setPrice('NVDA', '150') // below the stop-loss of the first position
  await devnet.setPrice('AAPL', '190') // below the limit of the order
  const tradesOf = async (symbol: string) =>
    (await agent.trades()).filter(trade => trade.symbol === symbol).map(({ type }) => type)
  await vi.waitFor(async () => {
    expect(await tradesOf('NVDA')).toEqual(['ExitExecuted', 'PositionOpened'])
    expect(await tradesOf('AAPL')).toEqual(['PositionOpened'])
  }, SOON)

  // And once more: an upgrade of a journal never runs twice.
  const repeated = await agent.signTrade({ symbol: 'AMZN' })
  await changeVersion(repeated, next)
  intents.push(repeated)
  await expectExecutedOnce(agent, intents)
  expect(Math.max(outage, rolledBack)).toBeLessThan(MAX_OUTAGE_MS)
})
