import { hashExits } from '@agent-trading-service/client'
import { expect, it } from 'vitest'
import { formatUsdcExactly, parseAmount } from '../../web/src/format/amounts.ts'
import { describeMessage } from '../../web/src/wallet/describe-message.ts'

it('takes a comma in an amount only as a separator of thousands', () => {
  expect(['1,250.5', '1,234,567', '12'].map(text => parseAmount(text))).toEqual([
    1_250_500_000n,
    1_234_567_000_000n,
    12_000_000n,
  ])
  expect(['1,5', '1,50', '12,34.5', '1,2345', ',500', '1.5,000'].map(text => parseAmount(text))).toEqual(
    Array(6).fill(undefined),
  )
})

it('shows amounts that someone approves with every digit', () => {
  expect(['1000000', '1234500', '999999', '1', '1234567890123'].map(formatUsdcExactly)).toEqual([
    '1.00',
    '1.2345',
    '0.999999',
    '0.000001',
    '1,234,567.890123',
  ])
  const limits = { maxTradeUsdc: '250000001', maxDailyTurnoverUsdc: '0', maxExposureUsdc: '0' }
  const message = { agentId: '7', mode: 0, ...limits, allowedTokens: [], validUntil: '0' }
  const typedData = { primaryType: 'SetMandate', message } as unknown as Parameters<typeof describeMessage>[0]
  expect(describeMessage(typedData, () => '')).toContain('One trade is at most 250.000001 USDC.')
})

it('describes the exits of an order only if their hash is what is signed', () => {
  const exits = [{ triggerBps: -1_000, exitBps: 10_000 }]
  const exitsHash = hashExits(exits)
  const terms = {
    usdcAmount: '120500000',
    maxSlippageBps: 100,
    condition: 1,
    price: '125000000',
    validUntil: '1800000000',
  }
  const rest = { exitBps: 0, trailBps: 0, validAfter: '0', parts: 1, interval: '0', key: '0' }
  const message = { agentId: '7', side: 0, token: '0x1', positionId: '0', exitsHash, ...terms, ...rest }
  const typedData = { primaryType: 'PlaceOrder', message } as unknown as Parameters<typeof describeMessage>[0]
  const symbolOf = () => 'COIN'
  expect(describeMessage(typedData, symbolOf, exits)).toContain(
    'The position sells everything 10.00\u00a0% below its entry price.',
  )
  const others = describeMessage(typedData, symbolOf, [{ triggerBps: -100, exitBps: 10_000 }])
  expect(others).toContain(`The position gets the exit rules with the hash ${exitsHash}.`)
  expect(others.join()).not.toContain('below its entry price')
})
