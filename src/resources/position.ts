import { z } from 'zod'
import type { Position } from '../chain/positions.ts'
import type { ExitRule } from '../chain/typed-data.ts'
import { addressOut, amount, asOf, bps, digits, unixSeconds, usdc } from './primitives.ts'

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
    returnBps: z
      .int()
      .nullable()
      .meta({ description: 'Unrealized return on the cost basis; basis points; null when closed or while priceStale' }),
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
export const positionAnswer = z
  .object({ agentId: digits('Agent id'), position: agentPosition, asOf })
  .meta({ id: 'PositionAnswer' })

export const presentExitRule = ({ triggerType, triggerBps, exitBps }: ExitRule): z.input<typeof exitRule> => ({
  triggerType: triggerType === 0 ? 'StopLoss' : 'TakeProfit',
  triggerBps: Number(triggerBps),
  exitBps,
})

export function presentPosition(position: Position, symbol: string): z.input<typeof agentPosition> {
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
      returnBps:
        unrealizedPnlUsdc === undefined || usdcCostBasis === 0n
          ? null
          : Number((unrealizedPnlUsdc * 10_000n) / usdcCostBasis),
    },
  }
}
