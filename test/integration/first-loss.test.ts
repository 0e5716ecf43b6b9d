import { createPublicClient, http } from 'viem'
import { afterAll, describe, expect, it } from 'vitest'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { promotionCriteriaAbi } from '../../contracts-abi/promotion-criteria.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import { chain, GENESIS, newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import { depositFor, sendAsOwner } from '../support/owner.ts'
import { call, deployment } from '../support/surfaces.ts'

// An owner's vault shares answer for its agent's losses on real capital.

const { accounts, contracts } = deployment
const client = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })
const AAPL = '271.4'
const CAP = 50_000_000_000n
const REQUIRED = (CAP * 1_200n) / 10_000n

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

    const less = await sendAsOwner(trader.account, 'lockFirstLoss', { agentId, shares: '0' })
    expect(less).toMatchObject({ status: 400, body: { code: 'FIRST_LOSS_BOUND' } })
    const before = await sharesOf(trader)
    const positionId = await openPosition(trader, { symbol: 'AAPL', usdcAmount: '5000' })
    await submit(trader, 'submitReduceIntent', { positionId, exitBps: '10000' })
    const { body: after } = await call('getRiskState', { agentId })
    expect(BigInt(after.waste.usdc)).toBeGreaterThan(0n)
    expect(after.firstLoss.bound).toBe(true)
    const burned = before - (await sharesOf(trader))
    expect(burned).toBeGreaterThan(0n)
    expect(BigInt(after.firstLoss.lockedShares)).toBe(BigInt(ready.firstLoss.lockedShares) - burned)
  })
})
