import { createPublicClient, http } from 'viem'
import { afterAll, describe, expect, inject, it } from 'vitest'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tradeRouterLensAbi } from '../../contracts-abi/trade-router-lens.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import { chain, GENESIS, newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { randomOf } from '../support/seeded-random.ts'
import { call, deployment } from '../support/surfaces.ts'

// A token of a few millionths of a dollar costs a few units of USDC, so its entry price in such units says little. The
// triggers that the service shows must be those at which the router fires.

const POSITIONS = inject('isLong') ? 20 : 2
/** An agent's gas budget of one minute pays for seven positions opened and closed. */
const MAX_POSITIONS_PER_AGENT = 4
const { accounts, contracts, tokens } = deployment
const TSLA = tokens.TSLA as `0x${string}`
const client = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })

/** Returns a price with 8 decimals as decimal US dollars. */
const usd = (price: bigint) => `${price / 10n ** 8n}.${`${price % 10n ** 8n}`.padStart(8, '0')}`
const units = (usd: string) => BigInt(Math.round(Number(usd) * 1e8))

const post = (price: bigint) =>
  chain.send(accounts.admin, {
    address: contracts.PriceOracle,
    abi: priceOracleAbi,
    functionName: 'forcePrice',
    args: [TSLA, price],
  })

const isTriggerMet = (positionId: string) =>
  client.readContract({
    address: contracts.TradeRouterLens,
    abi: tradeRouterLensAbi,
    functionName: 'isTriggerMet',
    args: [BigInt(positionId)],
  })

describe('the exit triggers of a cheap token', () => {
  let trader: Trader
  afterAll(() => chain.setPrice('TSLA', '421.3'))

  const pendingRules = async (positionId: string): Promise<Body[]> =>
    (await call('getPositionAutomation', { agentId: trader.agentId, positionId })).body.pendingRules

  it('the exit triggers of a cheap token are the prices at which the router fires, to the last digit', async () => {
    const random = randomOf('cheap tokens')
    for (let opened = 0; opened < POSITIONS; opened++) {
      if (opened % MAX_POSITIONS_PER_AGENT === 0) trader = await newTrader({ vault: GENESIS })
      const price = BigInt(random.integer(200, 20_000))
      await chain.setPrice('TSLA', usd(price))
      await chain.increaseTime(3) // the pool's average follows
      const positionId = await openPosition(trader, {
        symbol: 'TSLA',
        usdcAmount: `${random.integer(1, 6)}.${random.integer(100_000, 999_999)}`,
        exits: `-${random.integer(200, 3_000)}:10000,${random.integer(200, 9_000)}:10000`,
      })
      const [stop, take] = await pendingRules(positionId)
      const [stopPrice, takePrice] = [units(stop.triggerPriceUsd), units(take.triggerPriceUsd)]
      for (const [price, index, isMet] of [
        [stopPrice, 0, true],
        [stopPrice + 1n, 0, false],
        [takePrice - 1n, 1, false],
        [takePrice, 1, true],
      ] as const) {
        await post(price)
        const rule = (await pendingRules(positionId))[index]
        const shown = { isMet: rule.distanceBps === 0, triggerPriceUsd: rule.triggerPriceUsd }
        expect({ price, ...shown, byRouter: await isTriggerMet(positionId) }).toEqual({
          price,
          isMet,
          triggerPriceUsd: index === 0 ? stop.triggerPriceUsd : take.triggerPriceUsd,
          byRouter: isMet,
        })
      }
      await chain.setPrice('TSLA', usd(price))
      await chain.increaseTime(3)
      expect(await submit(trader, 'submitReduceIntent', { positionId, exitBps: '10000' })).toMatchObject({
        status: 201,
      })
    }
  })
})
