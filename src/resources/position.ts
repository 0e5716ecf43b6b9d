import { PositionStatus } from '@agent-trading-service/protocol/enums'
import type { Position } from '@agent-trading-service/protocol/position'
import { CLOSERS, type PositionLife } from '@agent-trading-service/protocol/position-life'
import { ONE_SHARE, toShareAmount } from '@agent-trading-service/protocol/price-basis'
import { z } from 'zod'
import { exitRule, presentExitRule } from './exit-rule.ts'
import { present } from './present.ts'
import {
  addressOut,
  amount,
  asOf,
  bps,
  capitalMode,
  digits,
  lagBlocks,
  nextCursor,
  presentCapitalMode,
  unixSeconds,
  usdc,
} from './primitives.ts'

const positionDerived = z
  .object({
    totalPnlUsdc: usdc('Realized plus unrealized PnL; only the realized part while priceStale'),
    returnBps: z
      .int()
      .nullable()
      .describe(
        'Open position: unrealized PnL over the cost basis. Closed position: realized PnL over everything paid for it. Basis points; null if unknown or while priceStale',
      ),
  })
  .meta({ id: 'PositionDerived' })

export const agentPosition = z
  .object({
    positionId: digits('Position id'),
    agentId: digits('Agent id').meta({ pattern: '^[1-9][0-9]*$' }),
    symbol: z.string(),
    token: addressOut,
    vault: addressOut,
    capitalMode,
    tokenAmount: amount("Tokens held; the token's base units"),
    shareAmount: amount("Shares that they stand for, by the token's multiplier; in the token's base units"),
    entryPriceUsdc: usdc('Average entry price of one whole token'),
    usdcCostBasis: usdc('Cost of the tokens still held'),
    maxSlippageBps: bps('Maximum shortfall of an exit against the oracle value'),
    status: z.enum(['Open', 'Closed']),
    nextRuleIndex: z.int().describe('exitRules before this index have fired, in that order'),
    exitRules: z.array(exitRule).describe('Fired rules first, then the pending ones'),
    pendingRules: z.array(exitRule).describe('Rules that can still fire'),
    openedAt: unixSeconds('When the position was opened'),
    closedAt: unixSeconds(
      'When its last token was sold; this and the next three are absent while it is open or the index is behind',
    ).optional(),
    closedBy: z
      .enum(CLOSERS)
      .optional()
      .describe(
        "Who or what made the last sale: the agent's signer, its order, a rule of its ladder, the owner or the operator",
      ),
    exitPriceUsdc: usdc('Average price of one whole token over all sales, less bounties').optional(),
    proceedsUsdc: usdc('Everything received for it, less bounties').optional(),
    unrealizedPnlUsdc: usdc('Mark-to-market PnL at the oracle price; absent if closed or while priceStale').optional(),
    realizedPnlUsdc: usdc('PnL realized by reductions and exits so far').optional(),
    priceStale: z.boolean().describe('The oracle has no fresh price, so the mark-to-market values are absent'),
    derived: positionDerived,
  })
  .meta({ id: 'AgentPosition' })

export const positionList = z
  .object({ agentId: digits('Agent id'), positions: z.array(agentPosition), asOf })
  .meta({ id: 'PositionList' })

export const closedPositionList = z
  .object({
    agentId: digits('Agent id'),
    positions: z.array(agentPosition),
    nextCursor,
    window: z
      .int()
      .nullable()
      .describe('How many of the newest positions of all agents were scanned; null if read from the index'),
    asOf,
    lagBlocks,
  })
  .meta({ id: 'ClosedPositionList' })

/** A cursor of closed positions. Parses to the position id that the page starts below. */
export const closedCursor = z
  .string()
  .regex(/^p[1-9]\d{0,15}$/, 'is not a nextCursor of a response')
  .transform(text => BigInt(text.slice(1)))
  .describe('nextCursor of the previous page')

export const presentClosedCursor = (positionId: bigint): string => `p${positionId}`

export const positionResponse = z
  .object({ agentId: digits('Agent id'), position: agentPosition, asOf })
  .meta({ id: 'PositionAnswer' })

/** Presents a position. `life` is what the trades of a closed one say about it. */
export function presentPosition(
  position: Position & { life?: PositionLife | undefined },
  symbol: string,
): z.input<typeof agentPosition> {
  const { unrealizedPnlUsdc, realizedPnlUsdc, usdcCostBasis, nextRuleIndex } = position
  const isOpen = position.status === PositionStatus.Open
  const rules = position.exitRules.map(presentExitRule)
  return present(agentPosition, {
    ...position,
    ...position.life,
    symbol,
    capitalMode: presentCapitalMode(position.capitalMode),
    shareAmount: toShareAmount(position.tokenAmount, position.multiplier ?? ONE_SHARE),
    status: isOpen ? 'Open' : 'Closed',
    exitRules: rules,
    pendingRules: isOpen ? rules.slice(nextRuleIndex) : [],
    priceStale: isOpen && unrealizedPnlUsdc === undefined,
    derived: {
      totalPnlUsdc: `${realizedPnlUsdc + (unrealizedPnlUsdc ?? 0n)}`,
      returnBps: isOpen
        ? returnBps(usdcCostBasis, unrealizedPnlUsdc)
        : returnBps(position.life?.investedUsdc, realizedPnlUsdc),
    },
  })
}

/** Returns PnL over cost in basis points; null if either is unknown. */
const returnBps = (paid: bigint | undefined, pnl: bigint | undefined): number | null =>
  paid === undefined || pnl === undefined || paid === 0n ? null : Number((pnl * 10_000n) / paid)
