import { z } from 'zod'
import { amount, asOf, bps, digits, lagBlocks, unixSeconds, unixSecondsIn, usdc } from './primitives.ts'

export const INTERVALS = { '5m': 300, '1h': 3_600, '1d': 86_400 } as const
export type Interval = keyof typeof INTERVALS

/** How many intervals a range may have. */
export const MAX_POINTS = 1_000

/** The range and resolution of a time series. */
export const timeSeriesQuery = z.object({
  interval: z.enum(['1h', '1d']).default('1h').meta({ example: '1d' }),
  from: unixSecondsIn.optional().describe('Start in Unix seconds; default: 167 intervals before `to`'),
  to: unixSecondsIn.optional().describe('End in Unix seconds; default: now'),
})

/** Of an agent also in steps of five minutes; a vault is only known at the ends of hours. */
export const equityQuery = timeSeriesQuery.extend({
  interval: z.enum(['5m', '1h', '1d']).default('1h').meta({ example: '1d' }),
})

const pointTime = {
  timestamp: unixSeconds('The last second of the interval; of the last point, the time of its block'),
  blockNumber: digits('The last block that changed the value by then'),
}

const pointsText = `Oldest first, one at the end of each interval; at most ${MAX_POINTS} points`
const openingText = 'The point at the end of the interval before the range'

export const equityPoint = z
  .object({
    ...pointTime,
    equityUsdc: usdc('Allocation cap plus realized and unrealized PnL'),
    realizedPnlUsdc: usdc('Realized PnL since registration'),
    unrealizedPnlUsdc: usdc('Mark-to-market PnL of the open positions'),
    drawdownBps: bps('How far the equity is below its peak'),
    openCount: z.int().describe('Open positions'),
    priceStale: z.boolean().describe('Whether a position was valued at a stale price'),
  })
  .meta({ id: 'EquityPoint' })

export const equityHistory = z
  .object({
    agentId: digits('Agent id'),
    points: z.array(equityPoint).describe(pointsText),
    opening: equityPoint.nullable().describe(openingText),
    asOf,
    lagBlocks,
  })
  .meta({ id: 'EquityHistory' })

export const worthPoint = z
  .object({
    ...pointTime,
    sharePriceUsdc: usdc('Value of one whole share'),
    totalAssets: usdc('Value of all shares'),
    idleAssets: usdc('Of it, USDC that is not invested'),
    totalShares: amount("Shares in circulation; the share's base units"),
  })
  .meta({ id: 'SharePricePoint' })

/** The fields of a response with a share price history. */
export const sharePrices = {
  sharePrices: z.array(worthPoint).describe(pointsText),
  opening: worthPoint.nullable().describe(openingText),
}
