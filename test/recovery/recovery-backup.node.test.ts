import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Address, createTestClient, http } from 'viem'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { listen } from '../support/event-stream.ts'
import {
  executedIntentsOf,
  type RecoverableService,
  type ServiceWithReceiver,
  SOON,
  startServiceWithReceiver,
} from '../support/recoverable-service.ts'

// docs/recovery.md: the machine is lost, and a backup is not.

const backups = mkdtempSync(join(tmpdir(), 'recovery-backup-'))
let devnet: ServiceWithReceiver['devnet']
let service: RecoverableService
let receiver: ServiceWithReceiver['receiver']
let executor: Address
let stop: ServiceWithReceiver['stop'] | undefined
beforeAll(async () => {
  ;({ devnet, service, receiver, executor, stop } = await startServiceWithReceiver())
})
afterAll(async () => {
  await stop?.()
  rmSync(backups, { recursive: true, force: true })
})

const sentBy = (address: Address, blockTag: 'latest' | 'pending' = 'latest') =>
  devnet.client.getTransactionCount({ address, blockTag })
const untilSent = (count: number) => vi.waitFor(async () => expect(await sentBy(executor, 'pending')).toBe(count), SOON)
/** Sends an intent whose response is lost with the service. */
const sendAndForget = (intent: Parameters<RecoverableService['send']>[0]) =>
  service.send(intent).catch(() => 'the connection closed')

/** Expects a lane that sends, also after it has read the account's nonce twice: it reads that every two seconds. */
async function expectReadyLane(): Promise<void> {
  await service.readiness()
  const later = (await devnet.client.getBlockNumber({ cacheTime: 0 })) + 20n
  await vi.waitFor(
    async () => expect(await devnet.client.getBlockNumber({ cacheTime: 0 })).toBeGreaterThan(later),
    SOON,
  )
  const { body } = await service.readiness()
  const { executor: group } = body.details ?? body
  expect(group.lanes).toMatchObject([{ address: executor, pausedFor: null }])
  expect(service.logged('foreign transaction')).toEqual([])
}

it('the machine is lost: a backup that was made during trading comes back, and the chain says what followed it', async () => {
  const agents = await Promise.all(Array.from({ length: 6 }, () => service.register()))
  const [done, inFlight, later, again, lost, next] = await Promise.all(agents.map(agent => agent.signTrade()))
  const [first, , , , , last] = agents
  if (!done || !inFlight || !later || !again || !lost || !next || !first || !last) expect.unreachable()
  expect((await first.createWebhook(receiver.url)).status).toBe(201)
  const stream = listen(await first.events())
  const { body: traded } = await service.send(done)
  const { id } = await stream.next('trade')
  await stream.leave()

  await devnet.setMining(false)
  const before = await sentBy(executor)
  const interrupted = [sendAndForget(inFlight)]
  await untilSent(before + 1)
  const backup = join(backups, 'while-trading')
  await service.backUp(backup)
  await devnet.setMining(true)
  await Promise.all(interrupted)
  const after = [await service.send(later), await service.send(again)]
  expect(after).toMatchObject([{ status: 201 }, { status: 201 }])
  await devnet.setMining(false)
  interrupted.push(sendAndForget(lost))
  await untilSent(before + 4)
  await service.kill()
  await Promise.all(interrupted)
  service.loseMachine()
  await service.restore(backup)
  await devnet.setMining(true)
  await service.start()

  const { body: found } = await service.send(inFlight)
  expect(found).toMatchObject({ positionId: expect.any(String) })
  expect((await service.intent(inFlight.digest)).body).toMatchObject({ state: expect.stringMatching(/mined|final/) })
  expect((await service.intent(done.digest)).body).toMatchObject({ positionId: traded.positionId })
  expect(await service.intent(later.digest)).toMatchObject({ status: 404 })
  expect(await service.send(later)).toMatchObject({ status: 201, body: { positionId: after[0]?.body.positionId } })
  expect(await service.send(again)).toMatchObject({ status: 201, body: { positionId: after[1]?.body.positionId } })
  expect(await service.send(lost)).toMatchObject({ status: 201 })
  expect(await sentBy(executor)).toBe(before + 4)
  await expectReadyLane()

  expect(await service.send(next)).toMatchObject({ status: 201 })
  for (const { agentId } of agents) expect(await executedIntentsOf(devnet, agentId)).toBe(1n)
  await vi.waitFor(async () => expect((await service.readiness()).status).toBe(200), SOON)
  const resumed = listen(await first.events(id))
  const bought = await service.send(await first.signTrade({ symbol: 'AAPL' }))
  expect(await resumed.next('trade')).toMatchObject({ data: { positionId: bought.body.positionId } })
  await resumed.leave()
  await vi.waitFor(
    () =>
      expect(
        receiver.received.filter(({ body }) => body.type === 'trade').map(({ body }) => body.data.positionId),
      ).toEqual([traded.positionId, bought.body.positionId]),
    SOON,
  )
  await devnet.setPrice('NVDA', '150') // below the stop-loss of every position
  await vi.waitFor(async () => expect(await last.trades()).toMatchObject([{ type: 'ExitExecuted' }, {}]), SOON)
  await expectReadyLane()
})

it('a lane that is thousands of transactions behind its account goes on from the nonce of the chain', async () => {
  await devnet.refreshPrices()
  const agent = await service.register()
  const backup = join(backups, 'old')
  await service.backUp(backup)
  await service.kill()
  const nonce = (await sentBy(executor)) + 3_000
  await createTestClient({ mode: 'anvil', transport: http(devnet.rpcUrl) }).setNonce({ address: executor, nonce })
  service.loseMachine()
  await service.restore(backup)
  await service.start()
  expect(await service.send(await agent.signTrade({ symbol: 'AAPL' }))).toMatchObject({ status: 201 })
  expect(await sentBy(executor)).toBe(nonce + 1)
  await expectReadyLane()
})

it('a backup goes to a new folder, and comes back to an empty one, whole', async () => {
  const backup = join(backups, 'whole')
  await service.backUp(backup)
  await expect(service.backUp(backup)).rejects.toThrow('FOLDER_IN_USE')
  await expect(service.restore(backup)).rejects.toThrow('FOLDER_IN_USE')
  await service.kill()
  service.loseMachine()
  await expect(service.restore(join(backups, 'absent'))).rejects.toThrow('BACKUP_INVALID')
})
