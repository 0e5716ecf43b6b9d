import { z } from 'zod'
import { type EquityPoint, MOST_POINTS, type WorthPoint } from '../history/time-series.ts'
import { amount, asOf, bps, digits, lagBlocks, unixSeconds, usdc } from './primitives.ts'

export const INTERVALS = { '1h': 3_600, '1d': 86_400 } as const
export type Interval = keyof typeof INTERVALS

const time = z
  .string()
  .regex(/^[0-9]{1,10}$/, 'must be Unix seconds')
  .transform(Number)

/** Which part of a series is asked for. */
export const chartQuery = z.object({
  interval: z.enum(['1h', '1d']).default('1h').meta({ example: '1d' }),
  from: time.optional().meta({ description: 'Unix seconds, by default 167 intervals before to' }),
  to: time.optional().meta({ description: 'Unix seconds, by default now' }),
})

const place = {
  timestamp: unixSeconds('Time of the block that was looked at'),
  blockNumber: digits('That block'),
}

const pointsWords = `Oldest first: the last sample of each interval that has one, at most ${MOST_POINTS}`
const beforeWords = 'The last sample before the range'

const equityPoint = z
  .object({
    ...place,
    equityUsdc: usdc('Allocation cap, realized and unrealized PnL'),
    realizedPnlUsdc: usdc('Realized in its life'),
    unrealizedPnlUsdc: usdc('Of the open positions'),
    drawdownBps: bps('Below the peak'),
    openCount: z.int().meta({ description: 'Open positions; with none, all of this stays until the next point' }),
    priceStale: z.boolean().meta({ description: 'A position was counted at a last known price' }),
  })
  .meta({ id: 'EquityPoint' })

export const equityHistory = z
  .object({
    agentId: digits('Agent id'),
    points: z.array(equityPoint).meta({ description: pointsWords }),
    opening: equityPoint.nullable().meta({ description: beforeWords }),
    asOf,
    lagBlocks,
  })
  .meta({ id: 'EquityHistory' })

const worthPoint = z
  .object({
    ...place,
    sharePriceUsdc: usdc('What one whole share was worth'),
    totalAssets: usdc('What all shares were worth'),
    totalShares: amount("All shares; the share's base units"),
  })
  .meta({ id: 'SharePricePoint' })

/** What a share was worth over time, as parts of an answer. */
export const sharePrices = {
  sharePrices: z.array(worthPoint).meta({ description: pointsWords }),
  opening: worthPoint.nullable().meta({ description: beforeWords }),
}

export const presentEquity = (point: EquityPoint): z.input<typeof equityPoint> => ({
  timestamp: `${point.timestamp}`,
  blockNumber: `${point.blockNumber}`,
  equityUsdc: `${point.equity}`,
  realizedPnlUsdc: `${point.realized}`,
  unrealizedPnlUsdc: `${point.unrealized}`,
  drawdownBps: point.drawdownBps,
  openCount: point.openCount,
  priceStale: point.isStale,
})

export const presentWorth = (point: WorthPoint): z.input<typeof worthPoint> => ({
  timestamp: `${point.timestamp}`,
  blockNumber: `${point.blockNumber}`,
  sharePriceUsdc: `${point.sharePrice}`,
  totalAssets: `${point.totalAssets}`,
  totalShares: `${point.totalShares}`,
})
