import { createClient } from '@agent-trading-service/client'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, describe, expect, it } from 'vitest'
import { startDevnet } from '../../devnet/index.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { prepareService } from '../faults/service.ts'
import { profiles } from '../providers/profiles.ts'
import { startProviderProxy } from '../providers/provider-proxy.ts'
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
  const service = await prepared.start({
    ...workerVars(devnet.deployment),
    RPC_URL: proxy.url,
    X402_ENABLED: 'false',
    OPERATOR_SECRET: 'operator',
    ...vars,
  })
  const account = privateKeyToAccount(generatePrivateKey())
  const owner = privateKeyToAccount(generatePrivateKey())
  const client = createClient({ baseUrl: service.url, account, retryBudgetMs: 0 })
  return {
    service,
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

  it('above the limit of the operator, openings get a 503 and a failed check, and reductions and stops are sent', async () => {
    const { service, proxy, client, owner, register, stop } = await start(60_000, 6_000_000)
    const { agentId } = await register()
    const agent = client.agent(agentId)
    const { positionId } = await agent.open({ symbol: 'NVDA', usdcAmount: '20', exits: LADDER })
    const opening = await agent.prepareOpen({ symbol: 'AAPL', usdcAmount: '20', exits: LADDER })
    proxy.setSpike(true)
    await expect
      .poll(() => quotedCheck(service.url, agentId), { timeout: 15_000 })
      .toMatchObject({
        pass: false,
        code: 'L1_GAS_TOO_HIGH',
        limit: '5000000',
        used: '6000000',
      })
    await expect(opening.sign().then(opening.submit)).rejects.toMatchObject({
      code: 'L1_GAS_TOO_HIGH',
      retryable: true,
      details: { l1Gas: 6_000_000, maxL1Gas: 5_000_000 },
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

async function quotedCheck(url: string, agentId: string) {
  const quote = await fetch(`${url}/agents/${agentId}/trade-intents/quote?symbol=AAPL`)
  const { checks } = (await quote.json()) as { checks: { rule: string }[] }
  return checks.find(({ rule }) => rule === 'l1Gas')
}
