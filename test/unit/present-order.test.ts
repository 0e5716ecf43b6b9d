import type { OrderRecord } from '@agent-trading-service/protocol/order-record'
import { OrderCondition, OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import { asTokenPrice } from '@agent-trading-service/protocol/price-basis'
import { numberToHex } from 'viem'
import { describe, expect, it } from 'vitest'
import type { OrderState } from '../../src/chain/read-order-terms.ts'
import { type OrderReport, presentOrder } from '../../src/resources/order.ts'

const token = numberToHex(1, { size: 20 })
const order = {
  agentId: 1n,
  side: OrderSide.Reduce,
  token,
  positionId: 3n,
  usdcAmount: 0n,
  exitBps: 10_000,
  exits: [],
  maxSlippageBps: 0,
  condition: OrderCondition.AtOrBelow,
  price: 120_00000000n,
  trailBps: 0,
  validAfter: 0n,
  validUntil: 2_000n,
  parts: 1,
  interval: 0n,
  key: 0n,
  deadline: 1_100n,
  nonce: 0n,
}
const indexed: OrderRecord = {
  orderId: numberToHex(2, { size: 32 }),
  order,
  executions: [],
  end: null,
  transactionHash: numberToHex(3, { size: 32 }),
  blockNumber: 7n,
  timestamp: 1_000n,
  logIndex: 0,
}
const chain: OrderState = {
  open: { peak: 0n, nextAt: 0 },
  waitsFor: undefined,
  isPositionClosed: false,
  quote: {
    price: asTokenPrice(120_00000000n),
    quoted: true,
    stale: false,
    unsettled: false,
    updatedAt: 1_000n,
    roundId: 1n,
    source: 'updater',
    at: 1_000n,
  },
}
const shown = (
  state: Partial<OrderState> = {},
  { report, now = 1_500n }: { report?: OrderReport; now?: bigint } = {},
) => presentOrder(indexed, { chain: { ...chain, ...state }, report, symbol: 'NVDA', now })

describe('an order', () => {
  it.each([
    [119_99999999n, 0],
    [120_00000000n, 0],
    [120_00000001n, -1],
    [120_02400000n, -1],
    [121_00000000n, -82],
  ])('at a price of %s is %s basis points from its trigger, and 0 only if it has reached it', (price, distanceBps) => {
    expect(shown({ quote: { ...chain.quote, price: asTokenPrice(price) } })).toMatchObject({ distanceBps })
  })

  it('that is due waits for what refused its last try', () => {
    const lastRefusal = { code: 'TRADE_TOO_SMALL', message: 'The trade is too small.', at: '1400' }
    expect(shown({}, { report: { isInFlight: false, lastRefusal, nextTryAt: 1_460n } })).toMatchObject({
      state: 'open',
      waitsFor: { code: 'TRADE_TOO_SMALL', error: 'The trade is too small.' },
    })
    expect(shown().waitsFor).toBeNull()
  })

  it('whose position is closed ended with it, whether or not its place is free', () => {
    const ofClosed = { ...indexed, positionClosedAt: 1_234n }
    const facts = { chain: { ...chain, isPositionClosed: true }, report: undefined, symbol: 'NVDA', now: 1_500n }
    expect(presentOrder(ofClosed, facts)).toMatchObject({ state: 'failed', endedAt: '1234' })
    expect(presentOrder(ofClosed, { ...facts, chain })).toMatchObject({ state: 'open', endedAt: null })
  })

  it('that has expired ended with its last second, whether or not its place is free', () => {
    expect(shown({}, { now: 2_001n })).toMatchObject({ state: 'expired', endedAt: '2000' })
    expect(shown({}, { now: 2_000n })).toMatchObject({ state: 'open', endedAt: null })
  })
})
