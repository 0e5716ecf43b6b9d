import { z } from 'zod'
import { type Place, TRADE_SOURCES, TRADE_TYPES, type Trade } from '../protocol/trade-events.ts'
import { exitRule, presentExitRule } from './position.ts'
import { addressOut, amount, asOf, digits, hashOut, lagBlocks, nextCursor, unixSeconds, usdc } from './primitives.ts'

const trade = z
  .object({
    id: z.string().meta({ description: 'Transaction hash and log index', example: `0x${'5f'.repeat(32)}-3` }),
    type: z.enum(TRADE_TYPES).meta({
      description: 'What happened; a sale that closes a position has a PositionClosed beside it',
    }),
    positionId: digits('Position id'),
    symbol: z.string(),
    token: addressOut,
    vault: addressOut,
    usdcAmount: usdc("What the vault paid, or got; of an exit less the keeper's bounty").nullable(),
    tokenAmount: amount("What was bought or sold; the token's base units").nullable(),
    priceUsdc: usdc('Price of one whole token, from the two amounts').nullable(),
    realizedPnlUsdc: usdc(
      'Of a sale its proceeds less the cost basis released; of a PositionClosed that of the whole position',
    ).nullable(),
    exitBps: exitRule.shape.exitBps.nullable(),
    ruleIndex: z.int().nullable().meta({ description: 'Place in exitRules of the rule that fired' }),
    triggerType: exitRule.shape.triggerType.nullable(),
    triggerBps: exitRule.shape.triggerBps.nullable(),
    source: z.enum(TRADE_SOURCES).meta({
      description: 'intent: signed by the agent. automation: a rule of the ladder fired. operator: closed by force',
    }),
    transactionHash: hashOut,
    blockNumber: digits('Block of the transaction'),
    logIndex: z.int().meta({ description: 'Place of its event in the block' }),
    timestamp: unixSeconds('Time of the block'),
  })
  .meta({ id: 'Trade' })

export const tradeList = z
  .object({
    agentId: digits('Agent id'),
    trades: z.array(trade),
    nextCursor,
    asOf,
    lagBlocks,
  })
  .meta({ id: 'TradeList' })

/** A cursor of an answer; the place in the history inside. */
export const tradeCursor = z
  .string()
  .transform((text, ctx): Place => {
    const place = placeOf(text)
    if (place !== undefined) return place
    ctx.addIssue({ code: 'custom', message: 'is not a cursor of an answer' })
    return z.NEVER
  })
  .meta({ description: 'nextCursor of the page before' })

export const presentCursor = ({ blockNumber, logIndex }: Place): string =>
  btoa(`${blockNumber}-${logIndex}`).replace(/=+$/, '')

/** The place that a cursor stands for. Digits and a hyphen in base64 never need the two characters in which base64url differs. */
function placeOf(text: string): Place | undefined {
  if (!/^[A-Za-z0-9]{1,64}$/.test(text) || text.length % 4 === 1) return undefined
  const [, block, index] = /^(0|[1-9]\d{0,19})-(0|[1-9]\d{0,8})$/.exec(atob(text)) ?? []
  const place = block && index ? { blockNumber: BigInt(block), logIndex: Number(index) } : undefined
  return place && presentCursor(place) === text ? place : undefined
}

const shown = (value: bigint | undefined) => (value === undefined ? null : `${value}`)

export function presentTrade(record: Trade, symbol: string): z.input<typeof trade> {
  const { type, source, token, vault, transactionHash, logIndex, exitBps = null, ruleIndex = null, rule } = record
  const { triggerType, triggerBps } = rule ? presentExitRule(rule) : { triggerType: null, triggerBps: null }
  return {
    id: `${transactionHash}-${logIndex}`,
    type,
    positionId: `${record.positionId}`,
    symbol,
    token,
    vault,
    usdcAmount: shown(record.usdcAmount),
    tokenAmount: shown(record.tokenAmount),
    priceUsdc: shown(record.priceUsdc),
    realizedPnlUsdc: shown(record.realizedPnlUsdc),
    exitBps,
    ruleIndex,
    triggerType,
    triggerBps,
    source,
    transactionHash,
    blockNumber: `${record.blockNumber}`,
    logIndex,
    timestamp: `${record.timestamp}`,
  }
}
