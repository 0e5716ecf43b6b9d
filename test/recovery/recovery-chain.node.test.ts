import { marketHours } from '@agent-trading-service/protocol/market-hours'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { type NodeGate, startNodeGate } from '../support/node-gate.ts'
import {
  executedIntentsOf,
  type RecoverableService,
  type Response,
  type SignedIntent,
  SOON,
  startRecoverableService,
} from '../support/recoverable-service.ts'

// docs/recovery.md: the chain halted, and the RPC provider gone.

const HOUR = 3_600
/** The trades of a position that its stop-loss sold, newest first. */
const EXITED = [{ type: 'ExitExecuted' }, { type: 'PositionOpened' }]
let devnet: Devnet
let service: RecoverableService
let gates: [NodeGate, NodeGate]
beforeAll(async () => {
  devnet = await startDevnet({ blockMs: 150, startsAt: Math.floor(Date.now() / 1000) - HOUR })
  gates = [await startNodeGate(devnet.rpcUrl), await startNodeGate(devnet.rpcUrl)]
  const { PriceOracle } = devnet.deployment.contracts
  const NVDA = devnet.deployment.tokens.NVDA ?? '0x'
  await devnet.administer({
    address: PriceOracle,
    abi: priceOracleAbi,
    functionName: 'setAssetConfig',
    args: [NVDA, { maxAge: 1.5 * HOUR, maxDeviationBps: 2_000, deviationWindow: 2 }],
  })
  service = await startRecoverableService(devnet.deployment, {
    RPC_URL: gates.map(({ url }) => url).join(),
    SUBMISSION_TIMEOUT_MS: '3000',
  })
  // A chain whose clock is an hour behind counts as halted until two of its blocks were seen.
  await vi.waitFor(() => service.register(), SOON)
})
afterAll(async () => {
  await service?.remove()
  for (const gate of gates ?? []) gate.stop()
  await devnet?.stop()
})

const executor = () => devnet.deployment.accounts.executor.address
const sentByExecutor = () => devnet.client.getTransactionCount({ address: executor() })
const intentsOf = (agentId: string) => executedIntentsOf(devnet, agentId)

/** Sends a body again while its outcome is unknown, as clients do: the service responds early here. */
async function send(intent: SignedIntent): Promise<Response> {
  for (;;) {
    const response = await service.send(intent)
    if (response.body.code !== 'SUBMISSION_UNKNOWN') return response
  }
}

it('the chain is halted for an hour: everybody sees it, an intent in flight expires, and exits fire once prices are posted', async () => {
  const [holder, trader] = [await service.register(), await service.register()]
  const held = await send(await holder.signTrade())
  expect(held.status, JSON.stringify(held.body)).toBe(201)
  const intent = await trader.signTrade()
  const late = await holder.signTrade({ symbol: 'AAPL' })

  // The newest block is an hour old from here on.
  await devnet.setMining(false)
  expect(await service.send(intent)).toMatchObject({
    status: 502,
    body: { code: 'SUBMISSION_UNKNOWN', retryable: true },
  })
  expect((await service.intent(intent.digest)).body).toMatchObject({ state: 'sent' })
  // An old block alone may come of a wrong clock: that none follows shows within a minute.
  await vi.waitFor(
    async () =>
      expect(await service.readiness()).toMatchObject({
        status: 503,
        body: {
          code: 'NOT_READY',
          details: { problem: expect.stringMatching(/^the newest block(, \d+,)? is 3[567]\d\d seconds old/) },
        },
      }),
    { timeout: 120_000, interval: 1_000 },
  )
  await service.runCron()
  await vi.waitFor(() => expect(service.logged('chain lag').at(-1)?.seconds).toBeGreaterThan(HOUR - 120), SOON)
  await service.untilMetric('ats_ready', {}, value => value === 0)
  await service.untilMetric('ats_chain_head_age_seconds', {}, value => value > HOUR - 120)
  await vi.waitFor(() => expect(service.logged('executor lag')).toMatchObject([{ executor: executor() }]), SOON)
  expect(await service.send(late)).toMatchObject({ status: 503, body: { code: 'NOT_READY', retryable: true } })

  // The hour that the clock is ahead, and one more.
  await devnet.increaseTime(2 * HOUR)
  await devnet.setMining(true)
  await vi.waitFor(
    async () =>
      expect((await service.intent(intent.digest)).body).toMatchObject({
        state: 'reverted',
        refusal: { code: 'EXPIRED_DEADLINE' },
      }),
    SOON,
  )
  expect(await service.send(intent)).toMatchObject({ status: 400, body: { code: 'EXPIRED_DEADLINE' } })
  expect(await intentsOf(trader.agentId)).toBe(0n)
  expect(await holder.trades()).toHaveLength(1)
  // On a weekend, an old price is no fault.
  const isClosed =
    marketHours('us-equity-24-5', Number((await devnet.client.getBlock()).timestamp)).session === 'closed'
  const problems = isClosed ? [] : ['prices are stale: NVDA']
  await vi.waitFor(
    async () => expect(await service.readiness()).toMatchObject({ status: 200, body: { problems } }),
    SOON,
  )
  await service.untilMetric('ats_stale_prices', {}, value => value === problems.length)

  await devnet.setPrice('NVDA', '150')
  await vi.waitFor(async () => expect(await holder.trades()).toMatchObject(EXITED), SOON)
  expect(await send(await trader.signTrade())).toMatchObject({ status: 201 })
  await vi.waitFor(
    async () => expect((await service.readiness()).body).toMatchObject({ status: 'ready', problems: [] }),
    SOON,
  )
})

it('one of two RPC URLs is gone: nothing changes but the metric of that node', async () => {
  const [gone] = gates
  gone.close()
  const agent = await service.register()
  expect(await send(await agent.signTrade())).toMatchObject({ status: 201 })
  expect((await service.readiness()).status).toBe(200)
  expect(await agent.trades()).toHaveLength(1)
  await service.untilMetric('ats_rpc_requests_total', { node: gone.name, result: 'fault' }, value => value > 0)
  gone.open()
})

it('while the RPC provider is gone, callers may repeat every request; once it is back, sent transactions are found', async () => {
  const [holder, sender, waiting] = [await service.register(), await service.register(), await service.register()]
  expect(await send(await holder.signTrade())).toMatchObject({ status: 201 })
  const [inFlight, unsent] = [await sender.signTrade(), await waiting.signTrade()]
  const before = await sentByExecutor()

  await devnet.setMining(false)
  const interrupted = service.send(inFlight)
  await vi.waitFor(async () => expect((await service.intent(inFlight.digest)).body.state).toBe('sent'), SOON)
  for (const gate of gates) gate.close()
  await devnet.setMining(true)
  expect(await interrupted).toMatchObject({ status: 502, body: { code: 'SUBMISSION_UNKNOWN', retryable: true } })
  expect(await service.send(unsent)).toMatchObject({
    status: 502,
    body: { code: 'CHAIN_UNREACHABLE', retryable: true },
  })
  expect(await service.readiness()).toMatchObject({
    status: 503,
    body: { code: 'NOT_READY', details: { problem: 'the node cannot be reached' } },
  })
  expect((await service.get('/health')).status).toBe('ok')
  await service.runCron()
  await vi.waitFor(() => expect(service.logged('lag unknown')).not.toEqual([]), SOON)
  await service.untilMetric('ats_ready', {}, value => value === 0)
  await service.untilMetric('ats_part_up', { part: 'readiness' }, value => value === 0)
  await devnet.setPrice('NVDA', '120') // below the stop-loss of every position

  for (const gate of gates) gate.open()
  await vi.waitFor(async () => expect((await service.send(inFlight)).status).toBe(201), SOON)
  expect((await service.intent(inFlight.digest)).body.attempts).toHaveLength(1)
  expect(await send(unsent)).toMatchObject({ status: 201 })
  expect(await sentByExecutor()).toBe(before + 2)
  await vi.waitFor(async () => expect(await holder.trades()).toMatchObject(EXITED), SOON)
  await vi.waitFor(async () => expect((await service.readiness()).status).toBe(200), SOON)
})
