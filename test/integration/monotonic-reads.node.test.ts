import { createClient } from '@agent-trading-service/client'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { unlimitedGas, workerVars } from '../../devnet/worker-vars.ts'
import { prepareService, type Service } from '../faults/service.ts'
import { liveHonestly } from '../providers/honest-agent.ts'
import { profiles } from '../providers/profiles.ts'
import { type ProviderProxy, startProviderProxy } from '../providers/provider-proxy.ts'
import { randomOf } from '../support/seeded-random.ts'

const prepared = await prepareService()
afterAll(() => prepared.remove())

const LADDER = [
  { triggerBps: -800, exitBps: 10_000 },
  { triggerBps: 1_500, exitBps: 10_000 },
]

type Pool = { lag: number; replicas?: number; splitsBatches?: boolean }
type Running = { devnet: Devnet; proxy: ProviderProxy; services: Service[]; stop(): Promise<void> }

/** Starts services behind a pool of nodes whose replicas are up to `lag` blocks behind. */
async function start({ lag, replicas = 4, splitsBatches = true }: Pool, count = 1): Promise<Running> {
  const devnet = await startDevnet({ blockMs: 250 })
  const profile = { ...profiles['lagging-pool'], replicas, splitsBatches, lagBlocks: [0, lag] } as const
  const proxy = await startProviderProxy(devnet.rpcUrl, { profile, seed: lag })
  const vars = { ...workerVars(devnet.deployment), ...unlimitedGas, RPC_URL: proxy.url, X402_ENABLED: 'false' }
  const services = await Promise.all(Array.from({ length: count }, () => prepared.start(vars)))
  return {
    devnet,
    proxy,
    services,
    async stop() {
      await Promise.all(services.map(service => service.stop()))
      await proxy.stop()
      await devnet.stop()
    },
  }
}

it.each([
  { lag: 2, splitsBatches: true },
  { lag: 2, splitsBatches: false },
  ...(inject('isLong')
    ? [
        { lag: 1, splitsBatches: true },
        { lag: 1, splitsBatches: false },
      ]
    : []),
])(
  'every operation of an honest agent succeeds at once and shows nothing older than before, behind a pool with %o',
  async pool => {
    const { devnet, services, stop } = await start(pool)
    const attempts = await Promise.all(
      [1, 2].map(index =>
        liveHonestly(services[0]?.url ?? '', {
          key: generatePrivateKey(),
          vault: devnet.deployment.vaults.genesis as string,
          rounds: 2,
          random: randomOf('monotonic', pool.lag, index),
          name: `agent ${index}`,
        }),
      ),
    )
    await stop()
    const failed = attempts.flat().filter(({ status, falsehood }) => (status !== 200 && status !== 201) || falsehood)
    expect(failed).toEqual([])
    expect(attempts.flat().length).toBeGreaterThan(50)
  },
)

describe('behind a pool whose replicas are two blocks behind', () => {
  let running: Running
  beforeAll(async () => {
    running = await start({ lag: 2 }, 2)
  })
  afterAll(() => running.stop())
  const urlOf = (index: number) => running.services[index]?.url ?? ''
  const newestBlock = () => running.devnet.client.getBlockNumber({ cacheTime: 0 })

  it('a client reads nothing older than it has seen from another server of the service', async () => {
    const [writer, reader] = [urlOf(0), urlOf(1)]
    const client = createClient({
      baseUrl: writer,
      account: privateKeyToAccount(generatePrivateKey()),
      fetch: (url, init) => fetch(init.method === 'GET' ? url.replace(writer, reader) : url, init),
    })
    const { agentId } = await client.register({ vault: 'genesis', name: 'reader', metadataURI: 'https://a.example' })
    const agent = client.agent(agentId)
    const { positionId } = await agent.open({ symbol: 'NVDA', usdcAmount: '20', exits: LADDER })
    for (let step = 0; step < 4; step++) {
      await agent.reduce({ positionId, exitBps: 1_000 })
      const { position } = await client.getPosition({ agentId, positionId })
      expect(Number(position.tokenAmount)).toBeGreaterThan(0)
    }
    await agent.close({ positionId })
    expect(await client.getPosition({ agentId, positionId })).toMatchObject({ position: { status: 'Closed' } })
    expect(await client.listPositions({ agentId })).toMatchObject({ positions: [] })
  })

  it('a read with Min-Block waits until a node has that block, and its response says which block it shows', async () => {
    for (let attempt = 0; attempt < 5; attempt++) {
      const minBlock = (await newestBlock()) + 1n
      const response = await fetch(`${urlOf(0)}/agents/1`, { headers: { 'min-block': `${minBlock}` } })
      expect(response.status).toBe(200)
      expect(BigInt(response.headers.get('x-as-of-block') ?? 0)).toBeGreaterThanOrEqual(minBlock)
      const { asOf } = (await response.json()) as { asOf: { blockNumber: string } }
      expect(BigInt(asOf.blockNumber)).toBeGreaterThanOrEqual(minBlock)
    }
  })

  it('a read with a Min-Block far in the future is refused at once, and with one that never comes after seconds', async () => {
    const read = async (minBlock: bigint | string) => {
      const startedAt = Date.now()
      const response = await fetch(`${urlOf(0)}/agents/1`, { headers: { 'min-block': `${minBlock}` } })
      const { code, retryable } = (await response.json()) as { code?: string; retryable?: boolean }
      return { status: response.status, code, retryable, ms: Date.now() - startedAt }
    }
    const far = await read((await newestBlock()) + 1_000n)
    expect(far).toMatchObject({ status: 400, code: 'MIN_BLOCK_AHEAD' })
    expect(await read('latest')).toMatchObject({ status: 400, code: 'INVALID_REQUEST' })
    await running.devnet.setMining(false)
    const late = await read((await newestBlock()) + 30n)
    await running.devnet.setMining(true)
    expect(late).toMatchObject({ status: 502, code: 'NODES_BEHIND', retryable: true })
    expect(late.ms).toBeLessThan(5_000)
  })
})
