import { z } from 'zod'
import { exits } from './exit-rule.ts'
import { deadline, digitsAsNumber, nonce, note, positionId, signature, uint, usdcAmount } from './primitives.ts'

const MAX_BPS = 10_000
const DEFAULT_SLIPPAGE_BPS = 100
const slippageText = 'Maximum shortfall against the oracle value; bps'

const minTokenOut = uint.meta({ description: 'Minimum tokens to buy; base units', example: '0' }).default(0n)

/** Basis points in a query. */
export const bpsQuery = (min: number) => digitsAsNumber(z.int().min(min).max(MAX_BPS))

export const symbol = z.string().min(1).max(64).meta({ description: 'Token symbol', example: 'NVDA' })

/** The fields that the body of every intent carries. */
export const signedFields = { deadline, nonce, signature }

/** What a body that buys tokens carries. The defaults are part of the signed message. */
const purchaseFields = {
  usdcAmount,
  minTokenOut,
  maxSlippageBps: z.int().min(0).max(MAX_BPS).describe(slippageText).default(DEFAULT_SLIPPAGE_BPS),
}

/** The same in the query of a quote, where everything is optional. */
export const purchaseQuery = {
  usdcAmount: usdcAmount.optional(),
  maxLossUsdc: usdcAmount
    .meta({
      description: 'Instead of usdcAmount: the most that the stops may lose',
      example: '50',
    })
    .optional(),
  minTokenOut,
  maxSlippageBps: bpsQuery(0).default(DEFAULT_SLIPPAGE_BPS).describe(slippageText),
  deadline: deadline.optional(),
}

export const positionQuery = { positionId }

const exitShareText = 'Share of the remaining tokens to sell; bps, 10000 closes'

export const exitBps = z.int().min(1).max(MAX_BPS).meta({ description: exitShareText, example: 5000 })
export const exitBpsQuery = bpsQuery(1).optional().meta({ description: exitShareText, example: 5000 })

/** The bodies that quotes return, with the signature. */
export const openIntentBody = z.object({ symbol, exits, ...purchaseFields, ...signedFields })
export const addIntentBody = z.object({ positionId, ...purchaseFields, ...signedFields })
export const reduceIntentBody = z.object({ positionId, exitBps, ...signedFields })
export const exitLadderBody = z.object({ positionId, exits, ...signedFields })

/** Adds what a body carries that is not signed. */
export const withNote = <Shape extends z.ZodRawShape>(body: z.ZodObject<Shape>) =>
  body.extend({ note: note.optional() })
