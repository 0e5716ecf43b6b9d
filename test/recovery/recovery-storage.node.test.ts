import type { Address, Hex } from 'viem'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { listen } from '../support/event-stream.ts'
import {
  executedIntentsOf,
  type RecoverableService,
  type ServiceWithReceiver,
  type SignedIntent,
  SOON,
  startServiceWithReceiver,
} from '../support/recoverable-service.ts'

// docs/recovery.md: the database lost, a lane lost, all objects lost. The files are deleted while the service is
// stopped.

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
})

const head = () => devnet.client.getBlockNumber({ cacheTime: 0 })
const sentBy = (address: Address) => devnet.client.getTransactionCount({ address })

const intentsOf = (agentId: string) => executedIntentsOf(devnet, agentId)

async function execute(intent: SignedIntent): Promise<{ positionId: string; transactionHash: Hex }> {
  const { status, body } = await service.send(intent)
  expect(status, JSON.stringify(body)).toBe(201)
  return body
}

/** What the history answers, without what depends on when it is read. */
async function history(agentId: string) {
  const { asOf: _, lagBlocks: __, ...leaderboard } = await service.get('/leaderboard?capital=simulated&minTrades=0')
  return {
    trades: (await service.get(`/agents/${agentId}/trades`)).trades,
    closed: (await service.get(`/agents/${agentId}/closed-positions`)).positions,
    agents: (await service.get('/agents')).agents,
    ranking: leaderboard.entries?.map(({ agentId, trades, pnlUsdc }: Record<string, unknown>) => [
      agentId,
      trades,
      pnlUsdc,
    ]),
  }
}

it('the database is lost: it is read from the chain again, and streams and webhooks lose nothing', async () => {
  const agent = await service.register()
  expect((await agent.createWebhook(receiver.url)).status).toBe(201)
  const stream = listen(await agent.events())
  const intent = await agent.signTrade()
  const { positionId } = await execute(intent)
  const { id } = await stream.next('trade')
  await stream.leave()
  await service.runCron() // samples the agent, so that it is ranked
  const before = await history(agent.agentId)
  expect(before).toMatchObject({
    trades: [{ type: 'PositionOpened', positionId }],
    ranking: [[agent.agentId, 1, expect.any(String)]],
  })

  await service.stop()
  service.loseDatabase()
  await service.start()

  const again = listen(await agent.events(id))
  await service.untilIndexed(await head())
  await service.runCron()
  expect(await history(agent.agentId)).toEqual(before)
  const { body: status } = await service.intent(intent.digest)
  expect(status).toMatchObject({ state: expect.stringMatching(/mined|final/), positionId })
  expect(await execute(intent)).toMatchObject({ positionId })
  expect(await intentsOf(agent.agentId)).toBe(1n)

  // A client that connects while the index is behind the event log gets a reorg event. Usually the index is in time.
  const next = await execute(await agent.signTrade({ symbol: 'AAPL' }))
  expect(await again.next('trade')).toMatchObject({ data: { positionId: next.positionId } })
  const reorgs = again.events.filter(({ event }) => event === 'reorg')
  expect(reorgs.map(({ data }) => data.commonAncestor)).toEqual(reorgs.map(() => null))
  await again.leave()
  const delivered = () => receiver.received.filter(({ body }) => body.type === 'trade')
  await vi.waitFor(() => expect(delivered()).toHaveLength(2), SOON)
  expect(delivered().map(({ body }) => body.data.positionId)).toEqual([positionId, next.positionId])
})

it('a lane is lost: its nonce comes from the chain, and what it had executed or sent is never executed again', async () => {
  const agents = await Promise.all(Array.from({ length: 3 }, () => service.register()))
  const [done, sent, dropped] = await Promise.all(agents.map(agent => agent.signTrade()))
  if (!done || !sent || !dropped) expect.unreachable()
  const executed = await execute(done)
  const before = await sentBy(executor)

  await devnet.setMining(false)
  const interrupted = [sent, dropped].map(intent => service.send(intent).catch(() => 'the connection closed'))
  await vi.waitFor(
    async () =>
      expect(await devnet.client.getTransactionCount({ address: executor, blockTag: 'pending' })).toBe(before + 2),
    SOON,
  )
  await service.kill()
  await Promise.all(interrupted)
  await service.loseLane(executor)
  await devnet.setMining(true)
  await vi.waitFor(async () => expect(await sentBy(executor)).toBe(before + 2), SOON)
  await service.start()

  expect(await service.intent(done.digest)).toMatchObject({ status: 404, body: { code: 'INTENT_NOT_FOUND' } })
  expect(await execute(done)).toMatchObject(executed)
  const found = await execute(sent)
  expect(await execute(sent)).toEqual(found)
  expect(await sentBy(executor)).toBe(before + 2)
  for (const { agentId } of agents) expect(await intentsOf(agentId)).toBe(1n)
  expect((await service.readiness()).body).toMatchObject({
    status: 'ready',
    executor: { lanes: [{ address: executor, nextNonce: before + 2 }] },
  })
  const [agent] = agents
  await execute((await agent?.signTrade({ symbol: 'AAPL' })) ?? expect.unreachable())
  expect(await sentBy(executor)).toBe(before + 3)
})

it('after all objects are lost, nothing is executed twice, exits still fire, and clients learn what they missed', async () => {
  const [agent, other] = [await service.register(), await service.register()]
  expect((await agent.createWebhook(receiver.url)).status).toBe(201)
  expect(
    (await service.asOperator('PUT', '/operator/intake', { ownerMessages: { open: false, reason: 'A test.' } })).status,
  ).toBe(200)
  const stream = listen(await agent.events())
  const opened = await agent.signTrade()
  const { positionId } = await execute(opened)
  const { id } = await stream.next('trade')
  await stream.leave()
  const unsent = await other.signTrade()
  await service.untilIndexed(await head())
  const before = await history(agent.agentId)
  const sent = await sentBy(executor)

  await service.kill()
  service.loseObjects()
  await devnet.setPrice('NVDA', '150') // below the stop-loss of every position
  await service.start()

  expect(await execute(opened)).toMatchObject({ positionId })
  expect(await execute(unsent)).toEqual(await execute(unsent))
  expect(await sentBy(executor)).toBe(sent + 1)
  expect(await intentsOf(agent.agentId)).toBe(1n)
  await vi.waitFor(
    async () =>
      expect(await agent.trades()).toMatchObject([
        { type: 'ExitExecuted', positionId },
        { type: 'PositionOpened', positionId },
      ]),
    SOON,
  )
  expect((await history(agent.agentId)).trades.slice(1)).toEqual(before.trades)

  expect(await service.request(`/agents/${agent.agentId}/events`, { headers: { 'Last-Event-ID': id } })).toMatchObject({
    status: 400,
    body: { code: 'EVENT_ID_UNKNOWN' },
  })
  expect(await agent.registerAgain()).toMatchObject({ status: 400, body: { code: 'INVALID_NONCE' } })
  expect((await history(agent.agentId)).agents).toEqual(before.agents)
  expect(await agent.webhooks()).toEqual([])
  expect((await service.get('/health')).closedIntake).toEqual([])
  await vi.waitFor(async () => expect((await service.readiness()).body).toMatchObject({ status: 'ready' }), SOON)
})
