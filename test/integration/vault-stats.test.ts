import { AgentStatus } from '@agent-trading-service/protocol/enums'
import { erc20Abi } from 'viem'
import { beforeAll, describe, expect, it } from 'vitest'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { usdcTokenAbi } from '../../contracts-abi/usdc-token.ts'
import { chain, FRONTIER, newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { call, deployment, type Input } from '../support/surfaces.ts'

// The frontier vault starts agents on real capital. Positions on paper are not in a vault's statistics.

const QUARTER = 900
const { accounts, contracts } = deployment
const stats = async (input: Input = {}): Promise<Body> => {
  const { status, body } = await call('getVaultStats', { id: 'frontier', ...input })
  expect({ status, body }).toMatchObject({ status: 200 })
  return body
}
const sum = (values: bigint[]) => values.reduce((total, value) => total + value, 0n)

let trader: Trader
let positionId: string
beforeAll(async () => {
  trader = await newTrader({ vault: FRONTIER })
  positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '100' })
})

describe('the statistics of a vault', () => {
  it('the statistics of a vault state what deposits and withdrawals cost, and how long new shares are locked', async () => {
    const { liquidity } = await stats()
    expect(liquidity).toEqual({ depositFeeBps: 0, withdrawFeeBps: 10, holdingSeconds: '8', paused: false })
  })

  it('the statistics of a vault have holdings and idle assets that add up to all assets', async () => {
    const { totalAssets, idleAssets, deployed } = await stats()
    const { token, tokenAmount, priceStale } = deployed.find(({ symbol }: Body) => symbol === 'NVDA')
    expect({ token, priceStale }).toEqual({ token: deployment.tokens.NVDA, priceStale: false })
    expect(BigInt(tokenAmount)).toBeGreaterThan(0n)
    expect(sum([BigInt(idleAssets), ...deployed.map(({ valueUsdc }: Body) => BigInt(valueUsdc))])).toBe(
      BigInt(totalAssets),
    )
    const { body } = await call('getVault', { id: 'frontier' })
    expect(body.vault).toMatchObject({ totalAssets, idleAssets })
  })

  it('the statistics of a vault count no position on paper: its caps are those of real capital', async () => {
    const allocationOf = async () => (await call('getVaultStats', { id: 'genesis' })).body.allocation
    const before = await allocationOf()
    const onPaper = await newTrader()
    const id = await openPosition(onPaper, { symbol: 'META', usdcAmount: '70' })
    expect(await allocationOf()).toEqual(before)
    await submit(onPaper, 'submitReduceIntent', { positionId: id, exitBps: 5_000 })
    expect(await allocationOf()).toEqual(before)
  })

  it('the statistics of a vault reflect allocations and the number of agents at once', async () => {
    const before = await stats()
    await submit(trader, 'submitAddIntent', { positionId, usdcAmount: '50' })
    const after = await stats()
    expect(BigInt(after.allocation.used) - BigInt(before.allocation.used)).toBe(50_000_000n)
    const newcomer = await newTrader({ vault: FRONTIER })
    await openPosition(newcomer, { symbol: 'META', usdcAmount: '70' })
    const { agents, allocation } = await stats()
    expect(agents.total).toBe(after.agents.total + 1)
    expect(BigInt(allocation.used) - BigInt(after.allocation.used)).toBe(70_000_000n)
    expect((await stats()).allocation).toEqual(allocation)
    const { cap } = (await call('getRiskState', { agentId: newcomer.agentId })).body.allocation
    expect(BigInt(allocation.cap) - BigInt(after.allocation.cap)).toBe(BigInt(cap))
  })

  it('the statistics of a vault count agents by their status', async () => {
    const count = async (status: number) =>
      (await stats()).agents.byStatus.find((row: Body) => row.status === status)?.count ?? 0
    const [active, suspended] = [await count(AgentStatus.Active), await count(AgentStatus.Suspended)]
    await chain.setAgentStatus(BigInt(trader.agentId), AgentStatus.Suspended)
    expect([await count(AgentStatus.Active), await count(AgentStatus.Suspended)]).toEqual([active - 1, suspended + 1])
    expect([await count(AgentStatus.Active), await count(AgentStatus.Suspended)]).toEqual([active - 1, suspended + 1])
    await chain.setAgentStatus(BigInt(trader.agentId), AgentStatus.Active)
  })

  it('the statistics of a vault follow the share price through trades, deposits and time', async () => {
    const before = await stats()
    const [opened] = before.sharePrices.slice(-1)
    expect(opened).toMatchObject({ sharePriceUsdc: before.sharePriceUsdc, totalShares: before.totalShares })
    await deposit(1_000_000n)
    const after = await stats()
    expect(BigInt(after.totalShares)).toBeGreaterThan(BigInt(before.totalShares))
    expect(after.sharePrices.at(-1)).toMatchObject({
      totalShares: after.totalShares,
      totalAssets: after.totalAssets,
    })
    await chain.increaseTime(QUARTER)
    const [later] = (await stats()).sharePrices.slice(-1)
    expect(Number(later.timestamp)).toBeGreaterThanOrEqual(Number(opened.timestamp) + QUARTER)
  })

  it('the statistics of a vault mark stale prices', async () => {
    await chain.increaseTime(2 * 86_400)
    const { deployed } = await stats()
    expect(deployed.every(({ priceStale }: Body) => priceStale)).toBe(true)
    await chain.refreshPrices()
    expect((await stats()).deployed.every(({ priceStale }: Body) => !priceStale)).toBe(true)
  })

  it('the statistics of a vault compare the share price with that of a week ago', async () => {
    await chain.increaseTime(8 * 86_400)
    await chain.refreshPrices()
    const { performance, asOf, sharePriceUsdc } = await stats()
    const weekAgo = Number(asOf.blockTimestamp) - 7 * 86_400
    const end = `${Math.floor(weekAgo / 3_600) * 3_600 - 1}`
    const [then] = (await stats({ from: end, to: end })).sharePrices
    const [before, now] = [BigInt(then.sharePriceUsdc), BigInt(sharePriceUsdc)]
    expect(performance).toMatchObject({
      return7dPpm: Number(((now - before) * 1_000_000n) / before),
      return90dPpm: null,
      returnPpm: expect.any(Number),
    })
  })

  it.each<[Input, number, string]>([
    [{ id: 'nowhere' }, 404, 'VAULT_NOT_FOUND'],
    [{ from: '0' }, 400, 'TOO_MANY_POINTS'],
  ])('the statistics of a vault refuse %o', async (input, expected, code) => {
    const { status, body } = await call('getVaultStats', { id: FRONTIER, ...input })
    expect({ status, code: body.code }).toEqual({ status: expected, code })
  })
})

async function deposit(assets: bigint) {
  const { admin } = accounts
  const usdc = contracts.USDC as `0x${string}`
  await chain.send(admin, { address: usdc, abi: usdcTokenAbi, functionName: 'mint', args: [admin.address, assets] })
  await chain.send(admin, { address: usdc, abi: erc20Abi, functionName: 'approve', args: [FRONTIER, assets] })
  await chain.send(admin, {
    address: FRONTIER,
    abi: mandateVaultAbi,
    functionName: 'deposit',
    args: [assets, admin.address],
  })
}
