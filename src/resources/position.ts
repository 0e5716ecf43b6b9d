import { z } from 'zod'
import type { Position } from '../chain/positions.ts'
import type { ExitRule } from '../protocol/typed-data.ts'
import { addressOut, amount, asOf, bps, digits, lagBlocks, nextCursor, unixSeconds, usdc } from './primitives.ts'

export const exitRule = z
  .strictObject({
    triggerType: z.enum(['StopLoss', 'TakeProfit']),
    triggerBps: bps('Signed distance of the trigger from the entry price: negative for a StopLoss'),
    exitBps: z
      .int()
      .min(1)
      .max(10_000)
      .meta({ description: 'Share of the remaining tokens that is sold; basis points' }),
  })
  .meta({ id: 'ExitRule' })

export const positionDerived = z
  .object({
    totalPnlUsdc: usdc('Realized plus unrealized PnL; realized alone while priceStale'),
    returnBps: z.int().nullable().meta({
      description:
        'Unrealized return on the cost basis; of a closed position in its list the realized one on all that was paid; basis points; null where unknown or while priceStale',
    }),
  })
  .meta({ id: 'PositionDerived' })

export const agentPosition = z
  .object({
    positionId: digits('Position id'),
    agentId: digits('Agent id').meta({ pattern: '^[1-9][0-9]*$' }),
    symbol: z.string(),
    token: addressOut,
    vault: addressOut,
    tokenAmount: amount("Tokens held; the token's base units"),
    entryPriceUsdc: usdc('Average entry price of one whole token'),
    usdcCostBasis: usdc('Cost of the tokens still held'),
    maxSlippageBps: bps('Largest shortfall of an exit against the oracle value'),
    status: z.enum(['Open', 'Closed']),
    nextRuleIndex: z.int().meta({ description: 'exitRules before this index have fired, in that order' }),
    exitRules: z.array(exitRule).meta({ description: 'Fired rules first, then the pending ones' }),
    pendingRules: z.array(exitRule).meta({ description: 'Rules that can still fire' }),
    openedAt: unixSeconds('When the position was opened'),
    unrealizedPnlUsdc: usdc('Mark to market at the oracle price; absent when closed or while priceStale').optional(),
    realizedPnlUsdc: usdc('Realized by reductions and exits so far').optional(),
    priceStale: z.boolean().meta({ description: 'The oracle has no fresh price, so mark-to-market values are absent' }),
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
    window: z.int().nullable().meta({
      description: 'While the history is being indexed: how many of the newest positions of all agents were looked at',
    }),
    asOf,
    lagBlocks,
  })
  .meta({ id: 'ClosedPositionList' })

/** A cursor of closed positions; the id below which the page begins inside. */
export const closedCursor = z
  .string()
  .regex(/^p[1-9]\d{0,15}$/, 'is not a cursor of an answer')
  .transform(text => BigInt(text.slice(1)))
  .meta({ description: 'nextCursor of the page before' })

export const presentClosedCursor = (positionId: bigint): string => `p${positionId}`

export const positionAnswer = z
  .object({ agentId: digits('Agent id'), position: agentPosition, asOf })
  .meta({ id: 'PositionAnswer' })

export const presentExitRule = ({ triggerType, triggerBps, exitBps }: ExitRule): z.input<typeof exitRule> => ({
  triggerType: triggerType === 0 ? 'StopLoss' : 'TakeProfit',
  triggerBps: Number(triggerBps),
  exitBps,
})

/** `investedUsdc`: all that was paid for a position that is closed. */
export function presentPosition(
  position: Position & { investedUsdc?: bigint },
  symbol: string,
): z.input<typeof agentPosition> {
  const { unrealizedPnlUsdc, realizedPnlUsdc, usdcCostBasis, nextRuleIndex } = position
  const isOpen = position.status === 0
  const rules = position.exitRules.map(presentExitRule)
  return {
    positionId: `${position.positionId}`,
    agentId: `${position.agentId}`,
    symbol,
    token: position.token,
    vault: position.vault,
    tokenAmount: `${position.tokenAmount}`,
    entryPriceUsdc: `${position.entryPriceUsdc}`,
    usdcCostBasis: `${usdcCostBasis}`,
    maxSlippageBps: position.maxSlippageBps,
    status: isOpen ? 'Open' : 'Closed',
    nextRuleIndex,
    exitRules: rules,
    pendingRules: isOpen ? rules.slice(nextRuleIndex) : [],
    openedAt: `${position.openedAt}`,
    ...(unrealizedPnlUsdc !== undefined && { unrealizedPnlUsdc: `${unrealizedPnlUsdc}` }),
    realizedPnlUsdc: `${realizedPnlUsdc}`,
    priceStale: isOpen && unrealizedPnlUsdc === undefined,
    derived: {
      totalPnlUsdc: `${realizedPnlUsdc + (unrealizedPnlUsdc ?? 0n)}`,
      returnBps: isOpen ? returnOn(usdcCostBasis, unrealizedPnlUsdc) : returnOn(position.investedUsdc, realizedPnlUsdc),
    },
  }
}

/** In basis points; null where one of the two is unknown. */
const returnOn = (paid: bigint | undefined, pnl: bigint | undefined): number | null =>
  paid === undefined || pnl === undefined || paid === 0n ? null : Number((pnl * 10_000n) / paid)
