import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createClient } from '@agent-trading-service/client'
import { numberToHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, describe, expect, it } from 'vitest'
import { startDevnet } from '../../devnet/index.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { createPayer } from '../../packages/client/src/pay.ts'
import { prepareService } from '../faults/service.ts'
import { profiles } from '../providers/profiles.ts'
import { type ProviderProxy, startProviderProxy } from '../providers/provider-proxy.ts'
import { parseOpenMetrics } from '../support/open-metrics.ts'

const prepared = await prepareService()
afterAll(() => prepared.remove())

const LADDER = [
  { triggerBps: -800, exitBps: 10_000 },
  { triggerBps: 1_500, exitBps: 10_000 },
]

/** Starts the service on an Arbitrum chain whose transactions need this much gas for L1, and more during a spike. */
async function start(normal: number, spike = normal, vars: Record<string, string> = {}) {
  const devnet = await startDevnet({ blockMs: 150 })
  devnet.marketMaker.pause()
  const profile = { ...profiles['l1-gas-spike'], l1Gas: { normal, spike } }
  const proxy = await startProviderProxy(devnet.rpcUrl, { profile, seed: 1 })
  const startWith = (more: Record<string, string>) =>
    prepared.start({
      ...workerVars(devnet.deployment),
      RPC_URL: proxy.url,
      X402_ENABLED: 'false',
      OPERATOR_SECRET: 'operator',
      ...vars,
      ...more,
    })
  const service = await startWith({})
  const account = privateKeyToAccount(generatePrivateKey())
  const owner = privateKeyToAccount(generatePrivateKey())
  const client = createClient({ baseUrl: service.url, account, retryBudgetMs: 0 })
  return {
    service,
    /** Starts a second service on the same chain. */
    startAnother: startWith,
    devnet,
    proxy,
    client,
    owner,
    register: () => client.register({ vault: 'genesis', name: 'costly', metadataURI: 'https://a.example', owner }),
    async stop() {
      await service.stop()
      await proxy.stop()
      await devnet.stop()
    },
  }
}

describe('while each transaction needs gas for L1', () => {
  it.each([600_000, 1_200_000, 2_500_000, 4_000_000])(
    'with %i more gas, an agent registers, opens, changes its ladder and reduces, and its owner stops it, at the first try',
    async l1Gas => {
      const { service, client, owner, register, stop } = await start(l1Gas)
      const { agentId } = await register()
      const agent = client.agent(agentId)
      const quote = await fetch(`${service.url}/agents/${agentId}/trade-intents/quote?symbol=NVDA`)
      expect(await quote.json()).toMatchObject({ estimatedGas: { l1: l1Gas, l2: expect.any(Number) } })
      const { positionId } = await agent.open({ symbol: 'NVDA', usdcAmount: '20', exits: LADDER })
      await agent.setLadder({ positionId, exits: [{ triggerBps: -500, exitBps: 10_000 }] })
      await agent.reduce({ positionId, exitBps: 5_000 })
      await client.owner(agentId, owner).stop({ action: 'reduceOnly' })
      await agent.close({ positionId })
      await stop()
    },
  )

  it('it is part of the price of gas, whose ceiling refuses openings, and reductions and stops are sent', async () => {
    const { service, proxy, client, owner, register, stop } = await start(60_000, 6_000_000, { GAS_PRICE_GWEI: '5,50' })
    const { agentId } = await register()
    const agent = client.agent(agentId)
    const { positionId } = await agent.open({ symbol: 'NVDA', usdcAmount: '20', exits: LADDER })
    const opening = await agent.prepareOpen({ symbol: 'AAPL', usdcAmount: '20', exits: LADDER })
    proxy.distort(withBaseFee(8_000_000_000n))
    proxy.setSpike(true)
    await expect
      .poll(() => quotedCheck(service.url, agentId), { timeout: 20_000 })
      .toMatchObject({ pass: false, code: 'GAS_PRICE_TOO_HIGH', limit: '50000000000' })
    await expect(opening.sign().then(opening.submit)).rejects.toMatchObject({
      code: 'GAS_PRICE_TOO_HIGH',
      retryable: true,
      details: { maxGasPriceWei: '50000000000' },
    })
    await agent.setLadder({ positionId, exits: [{ triggerBps: -500, exitBps: 10_000 }] })
    await client.owner(agentId, owner).stop({ action: 'reduceOnly' })
    await agent.close({ positionId })
    const scrape = await fetch(`${service.url}/metrics`, { headers: { authorization: 'Bearer operator' } })
    const samples = parseOpenMetrics(await scrape.text()).get('ats_transaction_gas')?.samples ?? []
    const reductions = samples.filter(({ labels }) => labels.kind === 'reduce')
    expect(reductions.map(({ labels, value }) => [labels.part, value > 5_000_000])).toEqual([
      ['l2', false],
      ['l1', true],
    ])
    await stop()
  })

  it('a transaction whose gas was estimated before a spike is sent again with more gas, and its intent succeeds', async () => {
    const { proxy, client, register, stop } = await start(60_000, 4_000_000)
    const { agentId } = await register()
    const agent = client.agent(agentId)
    const { positionId } = await agent.open({ symbol: 'NVDA', usdcAmount: '20', exits: LADDER })
    proxy.spikeAtNextSend()
    await agent.reduce({ positionId, exitBps: 5_000 })
    proxy.setSpike(false)
    await agent.close({ positionId })
    await stop()
  })
})

describe('at a base fee of 1,000 gwei', () => {
  it('nothing but exits and stops is relayed, quotes and readiness say so, and no facilitator is asked for a fee', async () => {
    const { service, devnet, proxy, client, owner, register, stop, startAnother } = await start(0, 0, {
      GAS_PRICE_GWEI: '10,100',
    })
    const { agentId } = await register()
    const agent = client.agent(agentId)
    const { positionId } = await agent.open({ symbol: 'NVDA', usdcAmount: '20', exits: LADDER })
    const added = await agent.prepareAdd({ positionId, usdcAmount: '20' })
    const opened = await agent.prepareOpen({ symbol: 'AAPL', usdcAmount: '20', exits: LADDER })
    const ordered = await agent.orders.preparePlace({
      type: 'limit',
      symbol: 'AAPL',
      usdcAmount: '20',
      price: '1',
      exits: LADDER,
    })

    proxy.distort(withBaseFee(1_000_000_000_000n))
    const ready = async () => (await fetch(`${service.url}/health/ready`)).json()
    await expect
      .poll(ready, { timeout: 20_000 })
      .toMatchObject({ details: { problem: expect.stringContaining('highest price of GAS_PRICE_GWEI') } })
    const sent = () => proxy.counts.calls.get('eth_sendRawTransactionSync') ?? 0
    const before = sent()
    const settled: string[] = []
    const facilitator = createServer((request, response) => {
      settled.push(`${request.url}`)
      response.writeHead(500).end('{}')
    }).listen(0)
    const { port } = facilitator.address() as AddressInfo
    const paid = await startAnother({ X402_ENABLED: 'true', X402_FACILITATOR_URL: `http://127.0.0.1:${port}` })
    const { accounts, contracts, chainId } = devnet.deployment
    const payer = createPayer({
      account: privateKeyToAccount(accounts.payer.privateKey),
      chainId,
      asset: contracts.USDC,
      maxAmount: 10_000_000n,
    })
    const refused = { code: 'GAS_PRICE_TOO_HIGH', retryable: true, details: { maxGasPriceWei: '100000000000' } }
    const signed = { vault: 'genesis', name: 'late', metadataURI: 'https://a.example', owner }
    const attempts = {
      open: () => opened.sign().then(opened.submit),
      add: () => added.sign().then(added.submit),
      order: () => ordered.sign().then(ordered.submit),
      mandate: () => client.owner(agentId, owner).setMandate({ mode: 'trade', maxTradeUsdc: '5' }),
      registration: () => client.register(signed),
      paidRegistration: () =>
        createClient({
          baseUrl: paid.url,
          account: privateKeyToAccount(generatePrivateKey()),
          retryBudgetMs: 0,
        }).register({
          ...signed,
          payer,
        }),
    }
    for (const [kind, attempt] of Object.entries(attempts))
      await expect.soft(attempt(), kind).rejects.toMatchObject(refused)
    expect([sent(), settled]).toEqual([before, []])
    const mandate = await fetch(`${service.url}/agents/${agentId}/mandate/quote?mode=trade`)
    expect(await mandate.json()).toMatchObject({ warnings: [expect.stringContaining('GAS_PRICE_TOO_HIGH')] })

    await agent.setLadder({ positionId, exits: [{ triggerBps: -500, exitBps: 10_000 }] })
    await agent.reduce({ positionId, exitBps: 5_000 })
    await client.owner(agentId, owner).stop({ action: 'reduceOnly' })
    await agent.close({ positionId })
    expect(sent()).toBe(before + 4)
    facilitator.close()
    await paid.stop()
    await stop()
  })
})

/** Shows another base fee than the chain has. */
const withBaseFee =
  (wei: bigint): Parameters<ProviderProxy['distort']>[0] =>
  ({ method }, reply) =>
    method === 'eth_getBlockByNumber' && reply.result
      ? { result: { ...reply.result, baseFeePerGas: numberToHex(wei) } }
      : reply

async function quotedCheck(url: string, agentId: string) {
  const quote = await fetch(`${url}/agents/${agentId}/trade-intents/quote?symbol=AAPL`)
  const { checks } = (await quote.json()) as { checks: { rule: string }[] }
  return checks.find(({ rule }) => rule === 'gasPrice')
}
