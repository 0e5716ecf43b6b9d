import { TriggerType } from '@agent-trading-service/protocol/enums'
import { OrderCondition, OrderSide, orderIdOf } from '@agent-trading-service/protocol/order-typed-data'
import { digestOf, hashExits, signingTypes } from '@agent-trading-service/protocol/typed-data'
import { hashTypedData } from 'viem'
import { describe, expect, it } from 'vitest'

// contracts/test/orders/OrderVectors.t.sol has the same order and the same digests.
const domain = {
  name: 'Service OrderBook',
  version: '1',
  chainId: 31_337n,
  verifyingContract: '0x000000000000000000000000000000000000b00c',
} as const
const order = {
  agentId: 7n,
  side: OrderSide.Open,
  token: '0x00000000000000000000000000000000000000aa',
  positionId: 0n,
  usdcAmount: 250_000_000n,
  exitBps: 0,
  exits: [{ triggerType: TriggerType.StopLoss, triggerBps: -800n, exitBps: 10_000 }],
  maxSlippageBps: 100,
  condition: OrderCondition.AtOrBelow,
  price: 12_000_000_000n,
  trailBps: 0,
  validAfter: 1_800_000_000n,
  validUntil: 1_800_086_400n,
  parts: 10,
  interval: 900n,
  key: 3n,
  deadline: 1_799_999_999n,
  nonce: 5n,
} as const
const ORDER_ID = '0x84245de287973ce74ee422fe1dfff9a9e41c0b7e7bc6898305541b42d5b95ca1'
const CANCELLATION = '0x0ad9caabd40fe73a7ede8f84b45c4450f297f599aeb0325e2948a275633001c1'

describe('an order', () => {
  it('has the id that the contract computes', () => {
    expect(orderIdOf(domain, order)).toBe(ORDER_ID)
  })

  it('has the digest of its typed data', () => {
    const { exits, ...message } = { ...order, exitsHash: hashExits(order.exits) }
    expect(hashTypedData({ domain, types: signingTypes, primaryType: 'PlaceOrder', message })).toBe(ORDER_ID)
  })

  it('is cancelled with the digest that the contract computes', () => {
    const message = { agentId: 7n, orderId: ORDER_ID, deadline: 1_799_999_999n, nonce: 6n } as const
    expect(digestOf(domain, 'CancelOrder', message)).toBe(CANCELLATION)
    expect(hashTypedData({ domain, types: signingTypes, primaryType: 'CancelOrder', message })).toBe(CANCELLATION)
  })
})
