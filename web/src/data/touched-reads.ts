import type { ReadId, ServiceEvent } from '@agent-trading-service/client'

/**
 * What happened: an event's type and subject, any events up to the block at which the stream opened, or `everything`
 * where a page must read all it shows.
 */
export type Change =
  | 'everything'
  | { type: 'opened'; block: number }
  | { type: ServiceEvent['type']; agentId?: string; positionId?: string; isClose?: boolean }

const FILLS = ['trade', 'exit'] as const
const PRICES = ['price-stale', 'price-fresh'] as const

/**
 * The events after which a read has another result. Reads that are not listed change for reasons without an event, such
 * as prices: the page reads them at its interval.
 */
const TOUCHED_BY: { [Id in ReadId]?: readonly ServiceEvent['type'][] } = {
  getAgent: ['mandate'],
  getRiskState: [...FILLS, 'risk', ...PRICES],
  getMandate: ['mandate'],
  listOwnerEvents: ['mandate'],
  listOffers: ['mandate'],
  listPositions: [...FILLS, 'ladder', ...PRICES],
  getPosition: [...FILLS, 'ladder', ...PRICES],
  getPositionAutomation: [...FILLS, 'ladder', ...PRICES],
  listClosedPositions: FILLS,
  getTradeHistory: [...FILLS, 'ladder'],
  listTrades: [...FILLS, 'ladder'],
  listOrders: ['order', ...PRICES],
  getOrder: ['order', ...PRICES],
  getIntent: ['intent'],
  getTransaction: ['intent', ...FILLS],
  listAgentsByOwner: ['mandate'],
}

type Subject = { agentId?: unknown; positionId?: unknown }

export const isOpening = (change: Change): boolean => change !== 'everything' && change.type === 'opened'

/** Whether a read whose data is as of a block has to be repeated after a change. */
export function isTouched(id: ReadId, input: unknown, change: Change, block = 0): boolean {
  if (change === 'everything') return true
  if (change.type === 'opened') return TOUCHED_BY[id] !== undefined && block < change.block
  if (!TOUCHED_BY[id]?.includes(change.type)) return false
  if (id === 'listClosedPositions' && !change.isClose) return false
  const { agentId, positionId } = (input ?? {}) as Subject
  return isSame(agentId, change.agentId) && isSame(positionId, change.positionId)
}

/** An event without the subject may be about any. */
const isSame = (read: unknown, changed: string | undefined) =>
  read === undefined || changed === undefined || `${read}` === changed

/** Returns what an event changed. A reorg may have changed everything. */
export function changeOf({ type, data }: ServiceEvent): Change {
  if (type === 'reorg') return 'everything'
  const { agentId, positionId, positionPnlUsdc } = data as Record<string, unknown>
  return {
    type,
    ...(typeof agentId === 'string' && { agentId }),
    ...(typeof positionId === 'string' && { positionId }),
    isClose: typeof positionPnlUsdc === 'string',
  }
}
