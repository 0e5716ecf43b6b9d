import { createClient } from '@agent-trading-service/client'
import { PositionStatus } from '@agent-trading-service/protocol/enums'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { unlimitedGas, workerVars } from '../../devnet/worker-vars.ts'
import { prepareService, type Service } from '../faults/service.ts'
import { profiles } from '../providers/profiles.ts'
import { type ProviderProxy, startProviderProxy } from '../providers/provider-proxy.ts'
import { createDevnetAgents } from '../support/devnet-agents.ts'

// A node whose consensus client has stopped answers at once and correctly, for ever from the same block. It still
// passes transactions on, so only its answers are old.

const NODE = { ...profiles['lagging-pool'], replicas: 1, lagBlocks: [0, 0], hasSyncSend: false } as const
/** Behind one URL, requests reach a replica that freezes and one that does not. */
const ROUND_ROBIN = { ...NODE, replicas: 2 } as const
/** How long after its trigger a stop may be executed, whatever the first node does. */
const MAX_STOP_MS = 60_000
/** How old in seconds the newest block of a chain is that started in the past. */
const PAST = 600

const prepared = await prepareService()
afterAll(() => prepared.remove())
const signer = privateKeyToAccount(generatePrivateKey())

/** Starts a service on the nodes of a chain. */
const start = (devnet: Devnet, urls: string[], vars: Record<string, string> = {}) =>
  prepared.start({
    ...workerVars(devnet.deployment),
    ...unlimitedGas,
    RPC_URL: urls.join(','),
    X402_ENABLED: 'false',
    ...vars,
  })

async function get(
  service: Service,
  path: string,
  init?: RequestInit,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${service.url}${path}`, init)
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

const post = (service: Service, path: string, body: object) =>
  get(service, path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

const statusOf = async ({ client, deployment }: Devnet, positionId: bigint) => {
  const position = await client.readContract({
    address: deployment.contracts.PositionManager as `0x${string}`,
    abi: positionManagerAbi,
    functionName: 'getPosition',
    args: [positionId],
  })
  return position.status
}

const PLACES = [
  { place: 'in first place', profile: NODE, urls: (frozen: string, live: string) => [frozen, live] },
  { place: 'in second place', profile: NODE, urls: (frozen: string, live: string) => [live, frozen] },
  { place: 'behind the URL of a live one', profile: ROUND_ROBIN, urls: (pool: string) => [pool] },
]

describe.each(PLACES)('a node $place that freezes', ({ profile, urls }) => {
  let devnet: Devnet
  let proxy: ProviderProxy
  let service: Service
  let agentId: bigint
  const positions: Record<string, bigint> = {}
  beforeAll(async () => {
    devnet = await startDevnet()
    proxy = await startProviderProxy(devnet.rpcUrl, { profile, seed: 1 })
    const agents = createDevnetAgents(devnet)
    agentId = await agents.register('genesis', signer)
    for (const [nonce, symbol] of ['NVDA', 'AAPL', 'MSFT', 'AMZN', 'META'].entries())
      positions[symbol] = await agents.open(agentId, signer, { symbol, amount: 20_000_000n, nonce: BigInt(nonce) })
    service = await start(devnet, urls(proxy.url, devnet.rpcUrl))
  })
  afterAll(async () => {
    await service?.stop()
    await proxy?.stop()
    await devnet?.stop()
  })

  /**
   * Moves a price 10 % down, past the stops at -8 %. Returns when the service shows the position closed, in
   * milliseconds from then.
   */
  async function trigger(symbol: string): Promise<number> {
    const { prices } = (await get(service, '/prices')).body as { prices: Record<string, { priceUsd: string }> }
    await devnet.setPrice(symbol, (Number(prices[symbol]?.priceUsd) * 0.9).toFixed(2))
    const startedAt = Date.now()
    await expect.poll(() => statusOf(devnet, positions[symbol] as bigint)).toBe(PositionStatus.Closed)
    await expect
      .poll(() => get(service, `/agents/${agentId}/positions/${positions[symbol]}`))
      .toMatchObject({ body: { position: { status: 'Closed' } } })
    return Date.now() - startedAt
  }

  const newestBlock = async () => Number(await devnet.client.getBlockNumber({ cacheTime: 0 }))
  const shownBlock = async () => {
    const { asOf } = (await get(service, '/prices')).body as { asOf: { blockNumber: string } }
    return Number(asOf.blockNumber)
  }
  const close = (symbol: string) =>
    createClient({ baseUrl: service.url, account: signer, retryBudgetMs: 0 })
      .agent(`${agentId}`)
      .close({ positionId: `${positions[symbol]}` })

  it('before a trigger does not keep the stop from being executed, and prices and closes follow the other node', async () => {
    await expect.poll(() => get(service, '/health/ready')).toMatchObject({ status: 200 })
    await proxy.freeze(0)
    const frozenAt = await newestBlock()
    await expect.poll(newestBlock).toBeGreaterThan(frozenAt + 5)
    expect(await trigger('NVDA')).toBeLessThan(MAX_STOP_MS)
    expect(await shownBlock()).toBeGreaterThan(frozenAt + 5)
    expect(await close('AAPL')).toMatchObject({ positionId: `${positions.AAPL}` })
    expect(await statusOf(devnet, positions.AAPL as bigint)).toBe(PositionStatus.Closed)
  })

  it('is used again once it has caught up', async () => {
    await proxy.freeze()
    const calls = () => proxy.counts.calls.get('eth_call') ?? 0
    const before = calls()
    if (urls('frozen', 'live')[0] === 'frozen')
      await expect.poll(async () => (await shownBlock()) && calls()).toBeGreaterThan(before)
    expect(await shownBlock()).toBeGreaterThan((await newestBlock()) - 3)
  })

  it('with the block of a trigger does not keep the stop from being executed', async () => {
    await proxy.freeze(0)
    expect(await trigger('MSFT')).toBeLessThan(MAX_STOP_MS)
    await proxy.freeze()
  })

  it('after the block of a trigger and before that of the exit does not hide that the position is closed', async () => {
    await devnet.setMining(false)
    const closed = trigger('META')
    await expect
      .poll(() => devnet.client.request({ method: 'txpool_status' } as never))
      .toMatchObject({ pending: '0x1' })
    await proxy.freeze(0, (await newestBlock()) + 1)
    await devnet.setMining(true)
    expect(await closed).toBeLessThan(MAX_STOP_MS)
    await proxy.freeze()
  })

  it('just before a close is sent does not leave its outcome unknown', async () => {
    await shownBlock()
    await proxy.freeze(0)
    expect(await close('AMZN')).toMatchObject({ positionId: `${positions.AMZN}` })
    await proxy.freeze()
  })
})

it('when all nodes are frozen, readiness names each, and what trades is refused until one goes on, but for what was accepted', async () => {
  const devnet = await startDevnet({ startsAt: Math.floor(Date.now() / 1_000) - PAST })
  const [first, second] = await Promise.all(
    [1, 2].map(seed => startProviderProxy(devnet.rpcUrl, { profile: NODE, seed })),
  )
  const agents = createDevnetAgents(devnet)
  const agentId = await agents.register('genesis', signer)
  const positionId = await agents.open(agentId, signer, { symbol: 'NVDA', amount: 20_000_000n, nonce: 0n })
  const service = await start(devnet, [first?.url ?? '', second?.url ?? ''], { KEEPER_ENABLED: 'false' })
  const path = `/agents/${agentId}/reduce-intents`
  const reduce = async (exitBps: number) => {
    const { body: quoted } = await get(service, `${path}/quote?positionId=${positionId}&exitBps=${exitBps}`)
    const { typedData, body } = quoted as { typedData: Parameters<typeof signer.signTypedData>[0]; body: object }
    return { ...body, signature: await signer.signTypedData(typedData) }
  }
  const quote = () => get(service, `/agents/${agentId}/trade-intents/quote?symbol=NVDA&usdcAmount=10`)
  const isQuoted = async () => (await quote()).status === 200
  await expect.poll(isQuoted).toBe(true)
  const accepted = await reduce(5_000)
  const outcome = await post(service, path, accepted)
  expect(outcome).toMatchObject({ status: 201 })
  const close = await reduce(10_000)
  await first?.freeze(0)
  await second?.freeze(0)
  await service.kill() // it forgets that the chain had new blocks

  const { status, body } = await get(service, '/health/ready')
  expect(status).toBe(503)
  const frozen = expect.stringMatching(/has shown no newer block for \d+ seconds/)
  expect(body).toMatchObject({
    details: {
      rpc: {
        nodes: [
          { place: 1, problem: frozen },
          { place: 2, problem: frozen },
        ],
      },
    },
  })
  const refusal = {
    status: 503,
    body: { code: 'NOT_READY', retryable: true, remedy: expect.stringContaining('/health/ready') },
  }
  expect(await quote()).toMatchObject(refusal)
  expect(await post(service, path, close)).toMatchObject(refusal)
  const { transactionHash } = outcome.body
  expect(await post(service, path, accepted)).toMatchObject({ status: 201, body: { transactionHash } })

  await second?.freeze()
  // The clock of this chain is behind, so only blocks that follow each other show that it goes on.
  await expect.poll(isQuoted).toBe(true)
  expect(await post(service, path, close)).toMatchObject({ status: 201 })
  await service.stop()
  await Promise.all([first?.stop(), second?.stop()])
  await devnet.stop()
})

it('a chain that makes blocks on demand and was quiet for minutes is ready, and trades', async () => {
  const devnet = await startDevnet({ startsAt: Math.floor(Date.now() / 1_000) - PAST })
  const agentId = await createDevnetAgents(devnet).register('genesis', signer)
  await devnet.setMining(false)
  await devnet.client.request<{ Method: 'evm_setAutomine'; Parameters: [boolean]; ReturnType: null }>({
    method: 'evm_setAutomine',
    params: [true],
  })
  const nodes = await Promise.all([1, 2].map(seed => startProviderProxy(devnet.rpcUrl, { profile: NODE, seed })))
  const urls = nodes.map(({ url }) => url)
  const service = await start(devnet, urls, { BLOCKS_ON_DEMAND: 'true', KEEPER_ENABLED: 'false' })
  await expect
    .poll(() => get(service, '/health/ready'))
    .toMatchObject({
      status: 200,
      body: { rpc: { nodes: urls.map((_, index) => ({ place: index + 1, problem: null })) } },
    })
  const client = createClient({ baseUrl: service.url, account: signer, retryBudgetMs: 0 })
  const opened = await client.agent(`${agentId}`).open({
    symbol: 'NVDA',
    usdcAmount: '20',
    exits: [{ triggerBps: -800, exitBps: 10_000 }],
  })
  expect(opened).toMatchObject({ positionId: expect.any(String) })
  await service.stop()
  await Promise.all(nodes.map(node => node.stop()))
  await devnet.stop()
})
