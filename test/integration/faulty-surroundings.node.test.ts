import { createClient } from '@agent-trading-service/client'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { startAnvil } from '../../devnet/anvil.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { unlimitedGas, workerVars } from '../../devnet/worker-vars.ts'
import { prepareService, type Service } from '../faults/service.ts'
import { profiles } from '../providers/profiles.ts'
import { type ProviderProxy, startProviderProxy } from '../providers/provider-proxy.ts'
import { parseOpenMetrics } from '../support/open-metrics.ts'

// The chain's clock starts 700 seconds behind this machine's. With a node whose clock agrees with the chain, the
// service's clock is 700 seconds ahead; without, the chain had no block for so long.

const SECONDS = 700
const LADDER = [
  { triggerBps: -800, exitBps: 10_000 },
  { triggerBps: 1_500, exitBps: 10_000 },
]
const account = privateKeyToAccount(generatePrivateKey())
let devnet: Devnet
let proxy: ProviderProxy
let service: Service
let agentId: string
const clientOf = ({ url } = service) => createClient({ baseUrl: url, rpcUrl: devnet.rpcUrl, account, retryBudgetMs: 0 })
const agent = () => clientOf().agent(agentId)

let prepared: Awaited<ReturnType<typeof prepareService>>
beforeAll(async () => {
  prepared = await prepareService()
  devnet = await startDevnet({ blockMs: 150, startsAt: Math.floor(Date.now() / 1000) - SECONDS })
  devnet.marketMaker.pause()
  proxy = await startProviderProxy(devnet.rpcUrl, { profile: profiles['no-batch'], seed: 1 })
  proxy.setClock(-SECONDS)
  service = await start(proxy.url)
})
const start = (...urls: string[]) =>
  prepared.start({
    ...workerVars(devnet.deployment),
    ...unlimitedGas,
    RPC_URL: urls.join(','),
    X402_ENABLED: 'false',
    OPERATOR_SECRET: 'operator',
    BLOCKS_ON_DEMAND: 'true',
  })
afterAll(async () => {
  await service?.stop()
  await proxy?.stop()
  await devnet?.stop()
  prepared?.remove()
})

const get = async (path: string, { url } = service) =>
  (await fetch(`${url}${path}`)).json() as Promise<Record<string, unknown>>
const readiness = async (of = service) => {
  const body = await get('/health/ready', of)
  return (body.details ?? body) as { problem?: string; problems?: string[]; rpc: Record<string, unknown> }
}
const chainTime = async () => Number((await devnet.client.getBlock()).timestamp)
const clock = () => Math.floor(Date.now() / 1000)
const request = (method: string, params: unknown[]) =>
  devnet.client.request({ method, params } as never) as Promise<unknown>

/** Moves the chain's clock to this machine's, without a block. From now on a block is made for each transaction. */
async function makeBlocksOnDemand() {
  await devnet.setMining(false)
  await request('evm_setTime', [clock()])
  await request('evm_setAutomine', [true])
}

async function stalePrices(): Promise<Record<string, boolean>> {
  const { prices } = (await get('/prices')) as { prices: Record<string, { stale: boolean }> }
  return Object.fromEntries(Object.entries(prices).map(([symbol, { stale }]) => [symbol, stale]))
}

/** Returns the quote of a purchase. */
const quoteOf = (symbol: string) =>
  get(`/agents/${agentId}/trade-intents/quote?symbol=${symbol}&usdcAmount=20&exits=-800:10000,1500:10000`)

/** Signs a quote, posts it and returns the response. */
async function post({ typedData, body }: Record<string, unknown>): Promise<Record<string, unknown>> {
  const signature = await account.signTypedData(typedData as Parameters<typeof account.signTypedData>[0])
  const response = await fetch(`${service.url}/agents/${agentId}/trade-intents`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...(body as object), signature }),
  })
  return response.json() as Promise<Record<string, unknown>>
}

const operator = { headers: { authorization: 'Bearer operator' } }
async function metric(name: string, { url } = service): Promise<number[]> {
  const scrape = await fetch(`${url}/metrics`, operator)
  return (parseOpenMetrics(await scrape.text()).get(name)?.samples ?? []).map(({ value }) => value)
}

describe('while the clock is ten minutes ahead', () => {
  it('an agent registers and trades with deadlines of the chain, and the quote suggests such a deadline', async () => {
    const registered = await clientOf().register({ vault: 'genesis', name: 'clocks', metadataURI: 'https://a.example' })
    agentId = registered.agentId
    const quote = await get(`/agents/${agentId}/trade-intents/quote?symbol=NVDA`)
    const time = await chainTime()
    expect(Number(quote.serverTime)).toBeLessThanOrEqual(time + 2)
    expect(Math.abs(Number(quote.suggestedDeadline) - (time + 600))).toBeLessThan(10)
    const near = { symbol: 'NVDA', usdcAmount: '20', exits: LADDER, deadline: BigInt(time + 60) }
    const { positionId } = await agent().open(near)
    await agent().close({ positionId })
  })

  it('readiness and metrics say so, and trading is possible', async () => {
    const { problem, problems, rpc } = await readiness()
    expect(problem).toBeUndefined()
    expect(problems).toContainEqual(
      expect.stringMatching(/^the clock is (699|70\d) seconds ahead of the nodes' clocks/),
    )
    expect(rpc).toMatchObject({ lagSeconds: expect.any(Number) })
    expect(rpc.lagSeconds).toBeLessThan(60)
    const [skew] = await metric('ats_clock_skew_seconds')
    expect(skew).toBeGreaterThan(690)
  })
})

describe('on a chain that makes blocks on demand, after 700 quiet seconds', () => {
  beforeAll(async () => {
    await devnet.administer({
      address: devnet.deployment.contracts.PriceOracle as `0x${string}`,
      abi: priceOracleAbi,
      functionName: 'setAssetConfig',
      args: [
        devnet.deployment.tokens.AAPL as `0x${string}`,
        { maxAge: 400n, maxDeviationBps: 1_000n, deviationWindow: 3_600n },
      ],
    } as never)
    expect((await stalePrices()).AAPL).toBe(false)
    await makeBlocksOnDemand()
    proxy.setClock(0)
  })

  it('a deadline that has passed is refused with the present time, not the newest block’s', async () => {
    const { serverTime } = await get(`/agents/${agentId}/trade-intents/quote?symbol=NVDA`)
    expect(Math.abs(Number(serverTime) - clock())).toBeLessThan(10)
    const deadline = Number(serverTime) - 100
    expect(deadline).toBeGreaterThan(await chainTime())
    const refused = await get(`/agents/${agentId}/trade-intents/quote?symbol=NVDA&deadline=${deadline}`)
    expect(refused.code).toBe('EXPIRED_DEADLINE')
    const [given, now] = [...String(refused.error).matchAll(/\d{10}/g)].map(([time]) => Number(time))
    expect(given).toBe(deadline)
    expect(now).toBeGreaterThan(deadline)
  })

  it('the service is ready, because nothing waits for a block', async () => {
    expect(clock() - (await chainTime())).toBeGreaterThan(600)
    await expect.poll(async () => (await fetch(`${service.url}/health/ready`)).status, { timeout: 10_000 }).toBe(200)
    expect(await metric('ats_chain_halted')).toEqual([0])
  })

  it('a price that expired since the newest block is stale in lists and quotes, and costs no transaction', async () => {
    await expect.poll(stalePrices, { timeout: 5_000 }).toMatchObject({ AAPL: true, NVDA: false }) // cached for a moment
    const before = await devnet.client.getBlockNumber({ cacheTime: 0 })
    const quote = await quoteOf('AAPL')
    expect(quote.checks).toContainEqual(expect.objectContaining({ rule: 'freshPrice', pass: false }))
    expect(await post(quote)).toMatchObject({ code: 'STALE_PRICE' })
    expect(await devnet.client.getBlockNumber({ cacheTime: 0 })).toBe(before)
  })

  it('a quote that is signed and posted at once succeeds', async () => {
    const { positionId } = await agent().open({ symbol: 'NVDA', usdcAmount: '20', exits: LADDER })
    expect(await agent().close({ positionId })).toMatchObject({ positionId })
  })
})

describe('with a second copy of the service and its keys', () => {
  const executor = () => devnet.deployment.accounts.executor.address

  it('the first says that the key is used, shows the transaction, accepts nothing, and trades again once resumed', async () => {
    const copy = await start(proxy.url)
    const { positionId } = await clientOf(copy).agent(agentId).open({ symbol: 'MSFT', usdcAmount: '20', exits: LADDER })
    await clientOf(copy).agent(agentId).close({ positionId })
    await copy.stop()
    const problemOf = async () => (await readiness()).problems?.find(problem => problem.includes('have used the key'))
    const lanes = async () => (await readiness()) as unknown as { executor: { lanes: { pausedFor: string | null }[] } }
    await expect
      .poll(
        async () => {
          await request('evm_mine', []) // a nonce counts as used by others once a later block shows it too
          return (await lanes()).executor.lanes[0]?.pausedFor
        },
        { timeout: 30_000 },
      )
      .toBe('shared key')
    const { problem } = await readiness()
    expect(problem).toContain('no executor account can send')
    await expect(agent().open({ symbol: 'MSFT', usdcAmount: '20', exits: LADDER })).rejects.toMatchObject({
      code: 'EXECUTOR_PAUSED',
      retryable: true,
    })
    const resume = await fetch(`${service.url}/operator/lanes/${executor()}/resume`, { method: 'POST', ...operator })
    expect(await resume.json()).toEqual({ address: executor(), wasPaused: true })
    const again = await agent().open({ symbol: 'MSFT', usdcAmount: '20', exits: LADDER })
    await agent().close({ positionId: again.positionId })
    await expect.poll(problemOf, { timeout: 30_000 }).toBeUndefined() // readiness is read every two seconds
    expect(service.logs()).toMatch(
      new RegExp(`foreign transaction found.*"to":"${devnet.deployment.contracts.TradeRouter}"`),
    )
  })
})

describe('with a node that refuses every transaction for a reason that nobody knows', () => {
  it('nothing is called sent, readiness and one line of the log have its words, and trades go on once it stops', async () => {
    const { address } = devnet.deployment.accounts.executor
    const words = 'the pool is closed for cleaning'
    proxy.refuseSends(words)
    const quote = await quoteOf('MSFT')
    expect(await post(quote)).toMatchObject({
      code: 'SUBMISSION_UNKNOWN',
      error: 'The outcome of the intent is not known yet.',
    })
    await expect
      .poll(async () => (await readiness()).problem, { timeout: 30_000 })
      .toContain(`no executor account can send: a node refuses those of ${address}, “${words}”`)
    expect(service.logs().match(/"send refused"/g)).toHaveLength(1)
    expect(service.logs()).toMatch(new RegExp(`"send refused".*"executor":"${address}".*"message":"${words}"`))
    proxy.refuseSends(undefined)
    await expect.poll(async () => (await readiness()).problem, { timeout: 30_000 }).toBeUndefined()
    const { positionId } = await agent().open({ symbol: 'MSFT', usdcAmount: '20', exits: LADDER })
    await agent().close({ positionId })
  })
})

describe('with a second node', () => {
  it('of another chain, listed first, agents trade on the right one, and readiness names the wrong one', async () => {
    const other = await startAnvil({ chainId: 5, accounts: 1, blockMs: 250 })
    const mixed = await start(other.rpcUrl, proxy.url)
    expect(await get(`/agents/${agentId}`, mixed)).toMatchObject({ agentId })
    const trader = clientOf(mixed).agent(agentId)
    const { positionId } = await trader.open({ symbol: 'AMZN', usdcAmount: '20', exits: LADDER })
    expect(await trader.close({ positionId })).toMatchObject({ positionId })
    const { problems } = await readiness(mixed)
    expect(problems).toContain('node 1 of RPC_URL is on chain 5, not on 31337')
    expect(await metric('ats_node_disagrees', mixed)).toEqual([1, 0])
    await mixed.stop()
    await other.stop()
  })

  it('of the same chain id with other blocks, the service is not ready', async () => {
    const fork = await startAnvil({ accounts: 1, blockMs: 100 })
    const mixed = await start(proxy.url, fork.rpcUrl)
    await expect
      .poll(async () => (await readiness(mixed)).problem, { timeout: 30_000 })
      .toContain('the nodes have different chains')
    expect(await metric('ats_node_disagrees', mixed)).toEqual([0, 1])
    await mixed.stop()
    await fork.stop()
  })
})
