import { createPublicClient, createTestClient, type Hex, http } from 'viem'
import { afterAll, describe, expect, it } from 'vitest'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { promotionCriteriaAbi } from '../../contracts-abi/promotion-criteria.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import { chain, FRONTIER, GENESIS, newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { lockFirstLoss } from '../support/owner.ts'
import { call, deployment } from '../support/surfaces.ts'

// The genesis vault starts agents on paper, the frontier vault on real capital.

const { accounts, contracts, tokens } = deployment
const client = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })
const MSFT = '512.6'
afterAll(() => chain.setPrice('MSFT', MSFT))

/** Returns what a vault holds: all assets, idle USDC, its MSFT and the value of a million shares. */
function holdingsOf(address: `0x${string}`) {
  const vault = { address, abi: mandateVaultAbi } as const
  return Promise.all([
    client.readContract({ ...vault, functionName: 'totalAssets' }),
    client.readContract({ ...vault, functionName: 'idleAssets' }),
    client.readContract({ ...vault, functionName: 'tokenLedger', args: [tokens.MSFT ?? '0x'] }),
    client.readContract({ ...vault, functionName: 'convertToAssets', args: [1_000_000n] }),
  ])
}

const promote = ({ agentId }: Trader) =>
  chain.send(accounts.keeper, {
    address: contracts.AgentRegistry,
    abi: [...agentRegistryAbi, ...promotionCriteriaAbi], // the registry passes the errors of the criteria on
    functionName: 'promoteAgent',
    args: [BigInt(agentId), 1],
  })

const readinessOf = async ({ agentId }: Trader): Promise<Body> =>
  (await call('getRiskState', { agentId })).body.promotionReadiness

const positionOf = async ({ agentId }: Trader, positionId: string): Promise<Body> =>
  (await call('getPosition', { agentId, positionId })).body.position

describe('an agent on paper', () => {
  it("an agent on paper trades without touching the vault's assets and share price", async () => {
    const trader = await newTrader({ vault: GENESIS })
    const before = await holdingsOf(GENESIS)
    const positionId = await openPosition(trader, { symbol: 'MSFT', usdcAmount: '1000' })
    expect(await positionOf(trader, positionId)).toMatchObject({
      capitalMode: 'Simulated',
      usdcCostBasis: '1000000000',
    })
    const { body: quote } = await call('getAddIntentQuote', { agentId: trader.agentId, positionId })
    expect(quote.allocation).toMatchObject({ capitalMode: 'Simulated', used: '1000000000' })
    expect(quote.tradePolicy).toMatchObject({ maxEntrySlippageBps: 100, minTradeUsdc: '1000000' })
    expect(await submit(trader, 'submitReduceIntent', { positionId, exitBps: '10000' })).toMatchObject({ status: 201 })
    expect(await holdingsOf(GENESIS)).toEqual(before)

    const { body } = await call('getTradeHistory', { agentId: trader.agentId })
    expect(body.trades.map(({ type, capitalMode }: Body) => [type, capitalMode])).toEqual([
      ['PositionReduced', 'Simulated'],
      ['PositionOpened', 'Simulated'],
    ])
  })

  it('an agent on paper is refused promotion with the missing criterion until it meets all of them', async () => {
    const trader = await newTrader({ vault: GENESIS })
    await openPosition(trader, { symbol: 'MSFT', usdcAmount: '10' })
    await expect(promote(trader)).rejects.toThrow('TooFewTrades')
    const readiness = await readinessOf(trader)
    expect(readiness).toMatchObject({ tradesCompleted: 1, meetsMinTrades: false, alphaScore: 0, eligible: false })
    expect(readiness.blockers.map((blocker: string) => blocker.split(':')[0])).toEqual([
      'TooFewTrades',
      'EvaluationPeriodNotOver',
      'ScoreTooLow',
      'OpenPositionsOfOtherMode',
      'FirstLossMissing',
    ])
  })

  it('an agent on paper trades real capital once it has been promoted', async () => {
    const trader = await newTrader({ vault: GENESIS })
    const { agentId } = trader
    for (const price of ['600', '700']) {
      const positionId = await openPosition(trader, { symbol: 'MSFT', usdcAmount: '3000' })
      await chain.setPrice('MSFT', price)
      expect(await submit(trader, 'submitReduceIntent', { positionId, exitBps: '10000' })).toMatchObject({
        status: 201,
      })
    }
    // The score counts what the agent made beyond holding the token until now.
    await chain.setPrice('MSFT', MSFT)
    await lockFirstLoss(trader)
    await chain.increaseTime(60)
    expect(await readinessOf(trader)).toMatchObject({
      tradesCompleted: 4,
      alphaScore: 100,
      meetsAlphaScore: true,
      eligible: true,
      blockers: [],
    })
    await promote(trader)

    const { body: risk } = await call('getRiskState', { agentId })
    expect(risk).toMatchObject({ trackId: 1, capitalMode: 'Real', allocation: { cap: '50000000000' } })
    expect(risk).toMatchObject({ equity: { currentUsdc: '50000000000' }, derived: { returnBps: 0 } })
    expect(risk.promotionReadiness).toMatchObject({ tradesCompleted: 0, alphaScore: 0, eligible: false })
    const [, , before] = await holdingsOf(GENESIS)
    const positionId = await openPosition(trader, { symbol: 'MSFT', usdcAmount: '1000' })
    const position = await positionOf(trader, positionId)
    expect(position.capitalMode).toBe('Real')
    const [, , after] = await holdingsOf(GENESIS)
    expect(after - before).toBe(BigInt(position.tokenAmount))

    const { body } = await call('getTradeHistory', { agentId, type: 'PositionOpened' })
    expect(body.trades.map(({ capitalMode }: Body) => capitalMode)).toEqual(['Real', 'Simulated', 'Simulated'])
  })
})

it('an agent does not add to a position of other capital than its own', async () => {
  const trader = await newTrader({ vault: GENESIS })
  const positionId = await openPosition(trader, { symbol: 'MSFT', usdcAmount: '100' })
  const registry = { address: contracts.AgentRegistry, abi: agentRegistryAbi } as const
  // Criteria that every agent meets: the deployment's promote no agent with an open position.
  const lenient = '0x00000000000000000000000000000000000c817e'
  const setCriteria = (address: Hex) =>
    chain.administer({ ...registry, functionName: 'setPromotionCriteria', args: [address] })
  await createTestClient({ mode: 'anvil', transport: http(deployment.rpcUrl) }).setCode({
    address: lenient,
    bytecode: '0x00',
  })
  await setCriteria(lenient)
  await promote(trader).finally(() => setCriteria(contracts.PromotionCriteria as Hex))

  const { body: quote } = await call('getAddIntentQuote', { agentId: trader.agentId, positionId, usdcAmount: '10' })
  expect(quote).toMatchObject({ bindingRule: 'capitalMode', maxUsdcAmount: '0', allocation: { capitalMode: 'Real' } })
  const failing = quote.checks.filter(({ pass }: Body) => !pass)
  expect(failing).toMatchObject([{ rule: 'capitalMode', code: 'CAPITAL_MODE_MISMATCH' }])
  const { status, body } = await submit(trader, 'submitAddIntent', { positionId, usdcAmount: '10' })
  expect({ status, code: body.code, remedy: body.remedy }).toEqual({
    status: 400,
    code: 'CAPITAL_MODE_MISMATCH',
    remedy: failing[0].remedy,
  })
  expect(await submit(trader, 'submitReduceIntent', { positionId, exitBps: '10000' })).toMatchObject({ status: 201 })
  expect(await positionOf(trader, positionId)).toMatchObject({ status: 'Closed', capitalMode: 'Simulated' })
})

it('an agent of the frontier vault starts on real capital', async () => {
  const trader = await newTrader({ vault: FRONTIER })
  const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '10' })
  expect((await positionOf(trader, positionId)).capitalMode).toBe('Real')
})
