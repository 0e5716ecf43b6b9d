import { createPublicClient, formatUnits, http, zeroAddress } from 'viem'
import { afterAll, describe, expect, it } from 'vitest'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { promotionCriteriaAbi } from '../../contracts-abi/promotion-criteria.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import { effectiveCap, fadedWaste, realize, wasteAfterPurchase } from '../../scripts/simulate-economics.ts'
import { chain, GENESIS, newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import { depositFor, sendAsOwner } from '../support/owner.ts'
import { call, deployment } from '../support/surfaces.ts'

// An owner's vault shares answer for its agent's losses on real capital.

const { accounts, contracts } = deployment
const client = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })
const AAPL = '271.4'
const CAP = 50_000_000_000n
const REQUIRED = (CAP * 1_200n) / 10_000n
const POOL_FEE = 0.0005
const MAX_WASTE = 0.1

afterAll(async () => {
  await chain.setPrice('AAPL', AAPL)
})

const promote = ({ agentId }: Trader) =>
  chain.send(accounts.keeper, {
    address: contracts.AgentRegistry,
    abi: [...agentRegistryAbi, ...promotionCriteriaAbi],
    functionName: 'promoteAgent',
    args: [BigInt(agentId), 1],
  })

const sharesOf = ({ account }: Trader) =>
  client.readContract({
    address: GENESIS,
    abi: mandateVaultAbi,
    functionName: 'balanceOf',
    args: [account.address],
  })

type Risk = Awaited<ReturnType<typeof call>>['body']

/** The formulas of `npm run sol:economics` say what the contracts do with a loss and with waste. */
async function expectSimulatedFormulas(trader: Trader, { ready, after }: Record<'ready' | 'after', Risk>) {
  const { agentId } = trader
  const allocations = {
    address: contracts.AllocationManager,
    abi: allocationManagerAbi,
    args: [BigInt(agentId)],
  } as const
  const usdc = (amount: bigint | string) => Number(amount) / 1e6
  const { realizedPnl } = await client.readContract({ ...allocations, functionName: 'trackRecordOf' })
  expect(realizedPnl).toBeLessThan(0n)
  const book = { pnl: 0, peak: 0, waste: 0, lossPaid: 0, lock: usdc(ready.firstLoss.lockedUsdc) }
  const paid = realize(book, usdc(realizedPnl))
  expect(paid).toBeCloseTo(usdc(-realizedPnl), 6)
  expect(book.lock).toBeCloseTo(usdc(after.firstLoss.lockedUsdc), 0)
  const terms = { cap: usdc(CAP), maxCap: 2 * usdc(CAP), firstLoss: usdc(REQUIRED) / usdc(CAP) }
  expect(effectiveCap(terms, usdc(realizedPnl))).toBeCloseTo(usdc(after.allocation.effectiveCap), 4)

  const wasteNow = async () => usdc((await client.readContract({ ...allocations, functionName: 'wasteOf' }))[0])
  const waste = usdc(after.waste.usdc)
  await chain.increaseTime(3_600)
  expect(await wasteNow()).toBeCloseTo(fadedWaste(waste, 1 / 24), 2)

  const before = await wasteNow()
  const id = BigInt(await openPosition(trader, { symbol: 'AAPL', usdcAmount: '10' }))
  const positions = { address: contracts.PositionManager, abi: positionManagerAbi } as const
  const { tokenAmount } = await client.readContract({ ...positions, functionName: 'getPosition', args: [id] })
  const oracle = { address: contracts.PriceOracle, abi: priceOracleAbi } as const
  const [price] = await client.readContract({
    ...oracle,
    functionName: 'peekPrice',
    args: [deployment.tokens.AAPL ?? zeroAddress],
  })
  const lost = 10 * (1 - POOL_FEE) - Number(formatUnits(tokenAmount * price, 26))
  expect(await wasteNow()).toBeCloseTo(wasteAfterPurchase(before, 10, Math.max(0, lost), MAX_WASTE), 1)
}

describe('first-loss capital', () => {
  it("an owner's locked shares are required for promotion, pay the agent's losses, and stay while it may lose", async () => {
    const trader = await newTrader({ vault: GENESIS })
    const { agentId } = trader
    for (const price of ['310', '350']) {
      const positionId = await openPosition(trader, { symbol: 'AAPL', usdcAmount: '3000' })
      await chain.setPrice('AAPL', price)
      expect(await submit(trader, 'submitReduceIntent', { positionId, exitBps: '10000' })).toMatchObject({
        status: 201,
      })
    }
    await chain.setPrice('AAPL', AAPL)
    await chain.increaseTime(60)
    const { body: waiting } = await call('getRiskState', { agentId })
    expect(waiting.promotionReadiness.blockers).toEqual([expect.stringMatching(/^FirstLossMissing: /)])
    expect(waiting.firstLoss).toMatchObject({ lockedShares: '0', requiredUsdc: `${REQUIRED}`, bound: false })
    await expect(promote(trader)).rejects.toThrow('FirstLossMissing')

    const nothing = await sendAsOwner(trader.account, 'lockFirstLoss', { agentId })
    expect(nothing).toMatchObject({ status: 400, body: { code: 'INSUFFICIENT_SHARES' } })
    await depositFor(trader, 2n * REQUIRED)
    expect(await sendAsOwner(trader.account, 'lockFirstLoss', { agentId })).toMatchObject({ status: 201 })
    const { body: ready } = await call('getRiskState', { agentId })
    expect(ready.promotionReadiness).toMatchObject({ eligible: true, blockers: [] })
    expect(BigInt(ready.firstLoss.lockedUsdc)).toBeGreaterThanOrEqual(REQUIRED)
    await promote(trader)

    const less = await sendAsOwner(trader.account, 'lockFirstLoss', { agentId, shares: '1' })
    expect(less).toMatchObject({ status: 400, body: { code: 'FIRST_LOSS_BOUND' } })
    const before = await sharesOf(trader)
    const positionId = await openPosition(trader, { symbol: 'AAPL', usdcAmount: '5000' })
    await submit(trader, 'submitReduceIntent', { positionId, exitBps: '10000' })
    const { body: after } = await call('getRiskState', { agentId })
    expect(BigInt(after.waste.usdc)).toBeGreaterThan(0n)
    expect(after.firstLoss.bound).toBe(false)
    const burned = before - (await sharesOf(trader))
    expect(burned).toBeGreaterThan(0n)
    expect(BigInt(after.firstLoss.lockedShares)).toBe(BigInt(ready.firstLoss.lockedShares) - burned)
    await expectSimulatedFormulas(trader, { ready, after })
  })
})
