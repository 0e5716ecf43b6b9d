import { env } from 'cloudflare:workers'
import { createPublicClient, createTestClient, type Hex, http } from 'viem'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { tradePolicyAbi } from '../../contracts-abi/trade-policy.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import { chain, FRONTIER, newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { disarmKeeper, runCycle, runCycleAt } from '../support/keeper-cycles.ts'
import { closeAll, newOwner, type Owner, ownedBy, ownerOf, setMandate } from '../support/owner-calls.ts'
import { call, deployment } from '../support/surfaces.ts'
import { allowCost } from '../support/thin-pool.ts'

// What becomes of the positions of an owner who closes all of them.

const AGENTS = inject('isLong') ? 20 : 6
const PRICE = '921.5'
const { contracts, accounts } = deployment
const client = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })
const testClient = createTestClient({ mode: 'anvil', transport: http(deployment.rpcUrl) })
const router = { address: contracts.TradeRouter, abi: tradeRouterAbi } as const

const keeper = () => env.KEEPER.get(env.KEEPER.idFromName(`${deployment.chainId}:${contracts.TradeRouter}`))
const disarm = () => disarmKeeper(keeper())
type Held = { trader: Trader; positionId: string }
const automation = async ({ trader: { agentId }, positionId }: Held): Promise<Body> => {
  const { status, body } = await call('getPositionAutomation', { agentId, positionId })
  expect({ status, body }).toMatchObject({ status: 200 })
  return body
}
async function bought(trader: Trader, symbol: string): Promise<Held> {
  const positionId = await openPosition(trader, { symbol, usdcAmount: '90', exits: '-800:10000' })
  return { trader, positionId }
}
const salesOf = async (positionIds: string[]) =>
  (
    await client.getContractEvents({
      ...router,
      eventName: 'OwnerCloseExecuted',
      args: { positionId: positionIds.map(BigInt) },
      fromBlock: 0n,
      strict: true,
    })
  ).map(({ args, transactionHash }) => ({ ...args, transactionHash }))

/** Keeps the pools where trades leave them while `run` runs: the market maker has no gas. */
async function withoutMarketMaker<T>(run: () => Promise<T>): Promise<T> {
  const { address } = accounts.marketMaker
  const value = await client.getBalance({ address })
  await testClient.setBalance({ address, value: 0n })
  return run().finally(() => testClient.setBalance({ address, value }))
}

beforeAll(() => allowCost(true))
afterAll(async () => {
  await disarm()
  await chain.setPrice('COST', PRICE)
  await allowCost(false)
})

describe('an owner who closes all positions', () => {
  let owner: Owner
  const held: Held[] = []

  beforeAll(async () => {
    owner = await newOwner()
    for (let agent = 0; agent < AGENTS; agent++) {
      const trader = await ownedBy(owner, await newTrader({ vault: FRONTIER }))
      await chain.setPrice('COST', PRICE) // resolves once the pool is back at the price
      held.push(await bought(trader, 'COST'))
    }
    const [{ trader }] = held as [Held]
    held.push(await bought(trader, 'META'))
    await chain.setPrice('COST', PRICE)
    await disarm()
  }, 300_000)

  it('of which a thin pool takes some: each is reported, and those that remain say why', async () => {
    const before = await automation(held[0] as Held)
    expect(before).toMatchObject({ ownerClose: null, lastOutcome: { outcome: 'notReached' } })
    const agentIds = [...new Set(held.map(({ trader }) => trader.agentId))]
    const { blockNumber } = await closeAll(owner, agentIds)
    const { timestamp } = await client.getBlock({ blockNumber })

    await withoutMarketMaker(async () => {
      await runCycle(keeper()) // the floor widens from this first attempt on
      await chain.increaseTime(61) // it is as low as it gets, and the keeper tries again
      await runCycle(keeper())
      const reports = await Promise.all(held.map(automation))
      const closed = reports.filter(({ status }) => status === 'Closed')
      const remaining = reports.filter(({ status }) => status === 'Open')
      expect(closed.length).toBeGreaterThan(1)
      expect(remaining.length).toBeGreaterThan(1)
      for (const { ownerClose, lastOutcome } of closed) {
        expect(ownerClose).toBeNull()
        expect(lastOutcome).toMatchObject({ outcome: 'executed', firedBy: 'keeper', usdcOut: expect.any(String) })
        expect(lastOutcome).not.toHaveProperty('ruleIndex')
      }
      for (const { ownerClose, lastOutcome } of remaining) {
        expect(ownerClose).toMatchObject({
          since: `${timestamp}`,
          tokenAmount: expect.stringMatching(/^[1-9]\d*$/),
          slippageBps: expect.any(Number),
          minUsdcOut: expect.stringMatching(/^[1-9]\d*$/),
        })
        expect(lastOutcome).toMatchObject(
          lastOutcome.outcome === 'partlyExecuted'
            ? { tokensLeft: ownerClose.tokenAmount, nextTryAt: expect.any(String) }
            : { outcome: 'deferred', reason: 'poolPrice', nextTryAt: expect.any(String) },
        )
      }
      // One for each attempt that used up the pool.
      expect(remaining.map(({ lastOutcome }) => lastOutcome.outcome)).toContain('partlyExecuted')
    })
  })

  it('has every position sold within the policy, once each, and none is left or unreported', async () => {
    const positionIds = held.map(({ positionId }) => positionId)
    const limits = await client.readContract({
      address: contracts.TradePolicy as Hex,
      abi: tradePolicyAbi,
      functionName: 'limitsOf',
      args: [FRONTIER, 0n],
    })
    let open = held
    for (let minute = 1; open.length > 0 && minute < 30; minute++) {
      await chain.setPrice('COST', PRICE)
      await runCycleAt(keeper(), Date.now() + minute * 61_000)
      const reports = await Promise.all(open.map(automation))
      open = open.filter((_, index) => reports[index]?.status === 'Open')
    }
    expect(open).toEqual([])
    const reports = await Promise.all(held.map(automation))
    for (const { ownerClose, lastOutcome } of reports)
      expect({ ownerClose, lastOutcome }).toMatchObject({
        ownerClose: null,
        lastOutcome: { outcome: 'executed', firedBy: 'keeper' },
      })

    const sales = await salesOf(positionIds)
    expect(new Set(sales.map(({ transactionHash }) => transactionHash)).size).toBeGreaterThan(1)
    const ofCost = new Set(held.slice(0, AGENTS).map(({ positionId }) => positionId))
    for (const { positionId, tokensSold, usdcOut, keeperBounty } of sales) {
      if (!ofCost.has(`${positionId}`)) continue
      const value = (tokensSold * 921_500_000n) / 10n ** 18n
      const floor = (value * BigInt(10_000 - limits.maxExitSlippageBps)) / 10_000n
      expect(usdcOut + keeperBounty + 1n).toBeGreaterThanOrEqual(floor)
    }
    for (const { trader, positionId } of held) {
      const { body } = await call('getTradeHistory', { agentId: trader.agentId, positionId })
      const parts = body.trades.filter(({ type }: Body) => type === 'OwnerCloseExecuted')
      const ofPosition = sales.filter(sale => `${sale.positionId}` === positionId)
      expect(parts.map(({ transactionHash }: Body) => transactionHash).reverse()).toEqual(
        ofPosition.map(({ transactionHash }) => transactionHash),
      )
      expect(body.trades[0]).toMatchObject({ source: 'owner', positionPnlUsdc: expect.any(String) })
      const { body: rest } = await call('listPositions', { agentId: trader.agentId })
      expect(rest.positions).toEqual([])
    }
  }, 300_000)
})

describe('a position that its owner closes', () => {
  it('waits while the price is stale, whatever its ladder says, and is sold once the price is fresh', async () => {
    const trader = await newTrader({ vault: FRONTIER })
    const position = await bought(trader, 'META')
    await disarm()
    await closeAll(await ownerOf(trader), [trader.agentId])
    await chain.increaseTime(90_000)
    await runCycle(keeper())
    expect(await automation(position)).toMatchObject({
      ownerClose: { slippageBps: null, minUsdcOut: null },
      lastOutcome: { outcome: 'deferred', reason: 'priceStale' },
    })
    await chain.refreshPrices()
    await runCycle(keeper())
    expect(await automation(position)).toMatchObject({ status: 'Closed', lastOutcome: { outcome: 'executed' } })
  })

  it('stays open if the owner lets the agent trade again before it is sold', async () => {
    const trader = await newTrader({ vault: FRONTIER })
    const position = await bought(trader, 'META')
    await disarm()
    const owner = await ownerOf(trader)
    await closeAll(owner, [trader.agentId])
    await setMandate(owner, trader.agentId)
    await runCycle(keeper())
    expect(await automation(position)).toMatchObject({
      status: 'Open',
      ownerClose: null,
      lastOutcome: { outcome: 'notReached' },
    })
    expect(
      await submit(trader, 'submitReduceIntent', { positionId: position.positionId, exitBps: 10_000 }),
    ).toMatchObject({ status: 201 })
  })

  it('is not reported as sold after a reorg took back the sale', async () => {
    const trader = await newTrader({ vault: FRONTIER })
    const position = await bought(trader, 'META')
    await disarm()
    const owner = await ownerOf(trader)
    await chain.reorg(async () => {
      await closeAll(owner, [trader.agentId])
      await runCycle(keeper())
      expect((await automation(position)).lastOutcome).toMatchObject({ outcome: 'executed', firedBy: 'keeper' })
    })
    await runCycle(keeper())
    expect((await automation(position)).lastOutcome?.outcome).not.toBe('executed')
    await disarm()
  })

  it('is reported when somebody else sells it', async () => {
    const trader = await newTrader({ vault: FRONTIER })
    const position = await bought(trader, 'META')
    await disarm()
    await closeAll(await ownerOf(trader), [trader.agentId])
    const args = [[BigInt(position.positionId)]] as const
    const { transactionHash } = await chain.send(accounts.depositor, { ...router, functionName: 'executeExits', args })
    await runCycle(keeper())
    expect(await automation(position)).toMatchObject({
      status: 'Closed',
      lastOutcome: { outcome: 'executed', firedBy: 'others', transactionHash },
    })
  })
})
