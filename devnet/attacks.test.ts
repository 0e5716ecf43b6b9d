import { type Address, parseEventLogs, parseUnits } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { allocationManagerAbi } from '../contracts-abi/allocation-manager.ts'
import { mandateVaultAbi } from '../contracts-abi/mandate-vault.ts'
import { positionManagerAbi } from '../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import { tradeRouterAbi } from '../contracts-abi/trade-router.ts'
import { usdcTokenAbi } from '../contracts-abi/usdc-token.ts'
import { createDevnetAgents, type DevnetAgents } from '../test/support/devnet-agents.ts'
import { type Devnet, startDevnet } from './index.ts'

// What an attacker who owns agents and moves the pool takes from the vaults of the embedded chain as it is deployed: it
// waits for a real price drop, pushes the pool further down, and fires its own exits.

const SYBILS = inject('isLong') ? 60 : 6
const usdc = (amount: string) => parseUnits(amount, 6)
const newAccount = () => privateKeyToAccount(generatePrivateKey())

let devnet: Devnet
let agents: DevnetAgents
beforeAll(async () => {
  devnet = await startDevnet()
  agents = createDevnetAgents(devnet)
})
afterAll(() => devnet?.stop())

test(`${SYBILS} self-registered agents take nothing from the genesis vault`, async () => {
  const { contracts, vaults, tokens } = devnet.deployment
  const vault = vaults.genesis as Address
  const held = () =>
    Promise.all([
      devnet.client.readContract({ address: vault, abi: mandateVaultAbi, functionName: 'totalAssets' }),
      devnet.client.readContract({
        address: vault,
        abi: mandateVaultAbi,
        functionName: 'tokenLedger',
        args: [tokens.NVDA as Address],
      }),
      devnet.client.readContract({
        address: contracts.USDC,
        abi: usdcTokenAbi,
        functionName: 'balanceOf',
        args: [vault],
      }),
      devnet.client.readContract({
        address: contracts.AllocationManager,
        abi: allocationManagerAbi,
        functionName: 'totalAgentCaps',
        args: [vault],
      }),
    ])
  const before = await held()
  const positionIds: bigint[] = []
  for (let sybil = 0; sybil < SYBILS; sybil++) {
    const account = newAccount()
    const agentId = await agents.register('genesis', account)
    positionIds.push(await agents.open(agentId, account, { symbol: 'NVDA', amount: usdc('9000') }))
  }
  await dropAndPush('NVDA', 180.25)
  for (let first = 0; first < SYBILS; first += 10) await fire(positionIds.slice(first, first + 10))

  const ledgers = await Promise.all(positionIds.map(tokensOf))
  expect(ledgers).toEqual(positionIds.map(() => 0n))
  expect(await held()).toEqual(before)
})

test("an agent of the frontier vault takes at most the policy's slippage of its trade", async () => {
  const account = newAccount()
  const agentId = await agents.register('frontier', account)
  await expect(
    agents.open(agentId, account, { vault: 'frontier', symbol: 'META', amount: usdc('4000'), maxSlippageBps: 10_000 }),
  ).rejects.toThrow('SlippageAboveLimit')
  const positionId = await agents.open(agentId, account, { vault: 'frontier', symbol: 'META', amount: usdc('4000') })
  const tokens = await tokensOf(positionId)
  const price = await dropAndPush('META', 641.75)
  const proceeds = await fire([positionId])
  const sold = tokens - (await tokensOf(positionId))

  const value = (sold * BigInt(Math.round(price * 1e8))) / 10n ** 20n
  expect(sold).toBeGreaterThan(0n)
  expect(proceeds).toBeGreaterThanOrEqual((value * 9_700n) / 10_000n - 1n)
})

/** Lets a price fall by 10 %, and pushes the pool 2.9 % below it. Returns the price. */
async function dropAndPush(symbol: string, price: number): Promise<number> {
  const { accounts, contracts, tokens } = devnet.deployment
  const dropped = price * 0.9
  devnet.marketMaker.resume()
  await devnet.setPrice(symbol, dropped.toFixed(4))
  await devnet.setPrice(symbol, (dropped * 0.971).toFixed(4))
  devnet.marketMaker.pause()
  await devnet.send(accounts.admin, {
    address: contracts.PriceOracle,
    abi: priceOracleAbi,
    functionName: 'forcePrice',
    args: [tokens[symbol] as Address, parseUnits(dropped.toFixed(4), 8)],
  })
  return dropped
}

/** Fires exits when they become due and again when their floors are at their widest. Returns what they brought. */
async function fire(positionIds: bigint[]): Promise<bigint> {
  const { accounts, contracts } = devnet.deployment
  const batch = {
    address: contracts.TradeRouter,
    abi: tradeRouterAbi,
    functionName: 'executeExits',
    args: [positionIds],
  } as const
  const first = await devnet.send(accounts.depositor, batch)
  await devnet.increaseTime(11)
  const second = await devnet.send(accounts.depositor, batch)
  return parseEventLogs({
    abi: tradeRouterAbi,
    logs: [...first.logs, ...second.logs],
    eventName: ['ExitExecuted', 'ExitPartlyExecuted'],
  }).reduce((sum, { args }) => sum + args.usdcOut + args.keeperBounty, 0n)
}

async function tokensOf(positionId: bigint): Promise<bigint> {
  const { tokenAmount } = await devnet.client.readContract({
    address: devnet.deployment.contracts.PositionManager,
    abi: positionManagerAbi,
    functionName: 'getPosition',
    args: [positionId],
  })
  return tokenAmount
}
