import type { ServiceEvent } from '@agent-trading-service/client'
import { expect, it } from 'vitest'
import { changeOf, isTouched } from '../../web/src/data/touched-reads.ts'

const event = (type: string, data: Record<string, unknown>) => ({ id: '1-1', type, data }) as ServiceEvent
const purchase = changeOf(event('trade', { agentId: '7', positionId: '3', positionPnlUsdc: null }))
const close = changeOf(event('exit', { agentId: '7', positionId: '3', positionPnlUsdc: '-5' }))

it('reads again what a trade changes, and no other agent, position or list', () => {
  expect(isTouched('getRiskState', { agentId: '7' }, purchase)).toBe(true)
  expect(isTouched('getTradeHistory', { agentId: '7', limit: 15 }, purchase)).toBe(true)
  expect(isTouched('getPosition', { agentId: '7', positionId: '3' }, purchase)).toBe(true)
  expect(isTouched('getRiskState', { agentId: '8' }, purchase)).toBe(false)
  expect(isTouched('getPosition', { agentId: '7', positionId: '4' }, purchase)).toBe(false)
  expect(isTouched('getMandate', { agentId: '7' }, purchase)).toBe(false)
  expect(isTouched('listVaults', {}, purchase)).toBe(false)
})

it('reads closed positions again after a close alone', () => {
  expect(isTouched('listClosedPositions', { agentId: '7' }, purchase)).toBe(false)
  expect(isTouched('listClosedPositions', { agentId: '7' }, close)).toBe(true)
})

it('reads everything again after a reorg, and what an event without a subject may be about', () => {
  expect(isTouched('listVaults', {}, changeOf(event('reorg', { withdrawn: [] })))).toBe(true)
  expect(isTouched('getRiskState', { agentId: '7' }, changeOf(event('price-stale', { symbol: 'NVDA' })))).toBe(true)
})

it('reads again when the stream opens what it read as of an earlier block, unless no event touches it', () => {
  const opened = { type: 'opened', block: 20 } as const
  expect(isTouched('listOrders', { agentId: '7' }, opened, 19)).toBe(true)
  expect(isTouched('listOrders', { agentId: '7' }, opened, 20)).toBe(false)
  expect(isTouched('listVaults', {}, opened, 19)).toBe(false)
})
