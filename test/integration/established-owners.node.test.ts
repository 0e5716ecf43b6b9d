import { createClient } from '@agent-trading-service/client'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { usdcTokenAbi } from '../../contracts-abi/usdc-token.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { prepareService, type Service } from '../faults/service.ts'

// All agents are a few seconds old here, so they share the budget of new agents.

let devnet: Devnet
let service: Service
let prepared: Awaited<ReturnType<typeof prepareService>>
beforeAll(async () => {
  prepared = await prepareService()
  devnet = await startDevnet({ blockMs: 150 })
  service = await prepared.start({
    ...workerVars(devnet.deployment),
    X402_ENABLED: 'false',
    GAS_BUDGET_AGENT: '60000000,300000000',
    // New agents have 6,000,000 of it a day, and those that have traded before half of that. What a day holds hardly
    // refills while the test runs, however slow the machine is.
    GAS_BUDGET_LANE: '60000000,15000000',
  })
})
afterAll(async () => {
  await service?.stop()
  await devnet?.stop()
  prepared?.remove()
})

type Newcomer = Awaited<ReturnType<typeof newcomer>>
const purchase = (symbol: string) => ({ symbol, usdcAmount: '10', exits: [{ triggerBps: -800, exitBps: 10_000 }] })

/** Registers an agent that has bought once, so that it is not served before those that have used less. */
async function newcomer(name: string) {
  const account = privateKeyToAccount(generatePrivateKey())
  const client = createClient({ baseUrl: service.url, account, retryBudgetMs: 0 })
  const { agentId } = await client.register({ vault: 'genesis', name })
  const { positionId } = await client.agent(agentId).open(purchase('NVDA'))
  return { account, client, agentId, positionId }
}

/** Deposits USDC for an owner, who locks all of its shares for its agent. */
async function lock({ account, client, agentId }: Newcomer, usdc: bigint) {
  const { accounts, contracts, vaults } = devnet.deployment
  const vault = vaults.genesis as `0x${string}`
  const token = { address: contracts.USDC, abi: usdcTokenAbi } as const
  const deposit = { address: vault, abi: mandateVaultAbi, functionName: 'deposit' } as const
  await devnet.send(accounts.admin, { ...token, functionName: 'mint', args: [accounts.admin.address, usdc] })
  await devnet.send(accounts.admin, { ...token, functionName: 'approve', args: [vault, usdc] })
  await devnet.send(accounts.admin, { ...deposit, args: [usdc, account.address] })
  const shares = await devnet.client.readContract({
    ...{ address: vault, abi: mandateVaultAbi },
    ...{ functionName: 'balanceOf', args: [account.address] },
  })
  await client.owner(agentId).lockFirstLoss({ shares })
}

const quoteOf = ({ client, agentId }: Newcomer) =>
  client.getTradeIntentQuote({ agentId, symbol: 'AAPL', usdcAmount: '10', exits: '-800:10000' })
const hasGas = ({ checks }: Awaited<ReturnType<typeof quoteOf>>) =>
  checks.find(({ rule }) => rule === 'gasBudget')?.pass === true

/** Buys although a check may fail, and returns the response. */
async function buy(newcomer: Newcomer): Promise<unknown> {
  const { typedData, body } = await quoteOf(newcomer)
  const signature = await newcomer.account.signTypedData(typedData as never)
  const response = await fetch(`${service.url}/agents/${newcomer.agentId}/trade-intents`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, signature }),
  })
  return response.json()
}

it('an agent whose owner has locked 100 USDC does not count as new, and one with less waits with the others', async () => {
  const [plain, locked, almost] = [await newcomer('plain'), await newcomer('locked'), await newcomer('almost')]
  await lock(locked, 100_500_000n)
  await lock(almost, 99_000_000n)
  const { positionId } = plain
  for (let added = 0; hasGas(await quoteOf(plain)) && added < 20; added++)
    await plain.client.agent(plain.agentId).add({ positionId, usdcAmount: '10' })
  const isPaid = async (newcomer: Newcomer) => hasGas(await quoteOf(newcomer))
  expect([await isPaid(plain), await isPaid(almost), await isPaid(locked)]).toEqual([false, false, true])
  const refusal = { code: 'GAS_BUDGET_EXHAUSTED', details: { budget: 'newAgents' } }
  expect(await buy(almost)).toMatchObject(refusal)
  expect(await buy(locked)).toMatchObject({ positionId: expect.any(String) })
  expect(await buy(plain)).toMatchObject(refusal)
})
