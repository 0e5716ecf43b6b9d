import { roleHash } from '@agent-trading-service/protocol/roles-of-powers'
import { createWalletClient, defineChain, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { type OperatedChain, startOperatedChain, TIMELOCK_DELAY } from '../support/operated-chain.ts'
import {
  executedIntentsOf,
  type RecoverableService,
  SOON,
  startRecoverableService,
} from '../support/recoverable-service.ts'

// docs/recovery.md: a wrong deploy, and a stolen key. The timelock delays by six days.

let chain: OperatedChain
let service: RecoverableService
beforeAll(async () => {
  chain = await startOperatedChain()
  service = await startRecoverableService(chain.devnet.deployment)
})
afterAll(async () => {
  await service?.remove()
  await chain?.stop()
})

const contracts = () => chain.devnet.deployment.contracts
const intentsOf = (agentId: string) => executedIntentsOf(chain.devnet, agentId)

it('a wrong deploy: it never becomes ready, and the version before goes on where it was', async () => {
  const agent = await service.register()
  const [first, second] = [await agent.signTrade(), await agent.signTrade({ symbol: 'AAPL' })]
  const { body: traded } = await service.send(first)

  const unused = privateKeyToAccount(generatePrivateKey()).address
  const wrong = { CONTRACTS: JSON.stringify({ ...contracts(), TradeRouter: unused }) }
  await service.stop()
  await service.start(wrong)
  expect(await service.readiness()).toMatchObject({
    status: 503,
    body: { details: { problem: expect.stringContaining('contracts have no code: TradeRouter') } },
  })
  expect((await service.send(second)).status).toBeGreaterThanOrEqual(400)
  await service.runCron()

  await service.stop()
  await service.start()
  expect(await service.send(first)).toMatchObject({ status: 201, body: { positionId: traded.positionId } })
  expect((await service.intent(first.digest)).body).toMatchObject({ state: expect.stringMatching(/mined|final/) })
  expect(await intentsOf(agent.agentId)).toBe(1n)
  expect(await agent.trades()).toMatchObject([{ type: 'PositionOpened', positionId: traded.positionId }])
  await vi.waitFor(async () => expect((await service.readiness()).status).toBe(200), SOON)
})

it('an executor key is stolen: the lane stops, one command rotates the key, and nothing that was executed is lost', async () => {
  const { executor, agents } = chain.devnet.deployment.accounts
  const successor = agents[7] ?? expect.unreachable()
  const agent = await service.register()
  const before = await agent.signTrade()
  const { body: traded } = await service.send(before)

  const thief = createWalletClient({
    account: privateKeyToAccount(executor.privateKey),
    chain: defineChain({
      id: chain.devnet.chainId,
      name: 'embedded',
      nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
      rpcUrls: { default: { http: [chain.devnet.rpcUrl] } },
    }),
    transport: http(chain.devnet.rpcUrl),
  })
  for (let stolen = 0; stolen < 2; stolen++) {
    const hash = await thief.sendTransaction({ to: successor.address, value: 1n })
    await chain.node.waitForTransactionReceipt({ hash, pollingInterval: 50 })
  }
  await vi.waitFor(
    async () =>
      expect(await service.readiness()).toMatchObject({
        status: 503,
        body: {
          details: {
            problem: expect.stringContaining('no executor account can send'),
            executor: { lanes: [{ pausedFor: 'shared key' }] },
          },
        },
      }),
    SOON,
  )
  await vi.waitFor(() => expect(service.logged('foreign transaction')).not.toEqual([]), SOON)
  await service.untilMetric('ats_lane_paused', { account: 'executor 1', reason: 'shared key' }, value => value === 1)
  const refused = await service.send(await agent.signTrade({ symbol: 'AAPL' }))
  expect(refused).toMatchObject({
    status: 503,
    body: { code: 'EXECUTOR_PAUSED', retryAfterSeconds: expect.any(Number) },
  })

  const rotate = ['admin', 'rotate', 'executors', '--from-account', executor.address, '--to', successor.address]
  const options = ['--vars', chain.varsWith(), '--key', 'admin', '--yes']
  const { next } = await chain.ats.json(...rotate, ...options)
  expect(next).toContainEqual(expect.stringContaining('npx wrangler secret put EXECUTOR_PRIVATE_KEY'))
  await chain.devnet.increaseTime(TIMELOCK_DELAY)
  await chain.ats.json(...rotate, ...options)
  await chain.devnet.refreshPrices()
  await service.stop()
  await service.start({ EXECUTOR_PRIVATE_KEY: successor.privateKey })

  const hasRole = (account: `0x${string}`) =>
    chain.node.readContract({
      address: contracts().TradeRouter,
      abi: tradeRouterAbi,
      functionName: 'hasRole',
      args: [roleHash('EXECUTOR_ROLE'), account],
    })
  expect([await hasRole(executor.address), await hasRole(successor.address)]).toEqual([false, true])
  expect(await service.intent(before.digest)).toMatchObject({ status: 404, body: { code: 'INTENT_NOT_FOUND' } })
  expect(await service.send(before)).toMatchObject({
    status: 201,
    body: { positionId: traded.positionId, transactionHash: traded.transactionHash },
  })
  expect(await service.send(await agent.signTrade({ symbol: 'AAPL' }))).toMatchObject({ status: 201 })
  expect(await intentsOf(agent.agentId)).toBe(2n)
  await vi.waitFor(
    async () =>
      expect(await service.readiness()).toMatchObject({
        status: 200,
        body: { executor: { lanes: [{ address: successor.address }] } },
      }),
    SOON,
  )
})
