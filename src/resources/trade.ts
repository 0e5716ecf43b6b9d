import { type LogPosition, TRADE_SOURCES, TRADE_TYPES, type Trade } from '@agent-trading-service/protocol/trade-events'
import { z } from 'zod'
import { exitRule, presentExitRule } from './exit-rule.ts'
import {
  addressOut,
  amount,
  asOf,
  capitalMode,
  digits,
  hashOut,
  lagBlocks,
  nextCursor,
  noteOrNull,
  presentCapitalMode,
  unixSeconds,
  usdc,
} from './primitives.ts'

export const trade = z
  .object({
    id: z.string().meta({ description: 'Transaction hash and log index', example: `0x${'5f'.repeat(32)}-3` }),
    type: z
      .enum(TRADE_TYPES)
      .describe(
        'The sale that closes a position has a positionPnlUsdc. ExitPartlyExecuted and PositionPartlyForceClosed sold what the pool takes; the rest follows. OwnerCloseExecuted: for an owner who closes all',
      ),
    positionId: digits('Position id'),
    symbol: z.string(),
    token: addressOut,
    vault: addressOut,
    capitalMode,
    usdcAmount: usdc("What the vault paid or received; for an exit, net of the keeper's bounty").nullable(),
    tokenAmount: amount("Tokens bought or sold; the token's base units").nullable(),
    priceUsdc: usdc('Price of one whole token, computed from the two amounts').nullable(),
    realizedPnlUsdc: usdc('Sale: proceeds less the released cost basis. The values of a list add up').nullable(),
    positionPnlUsdc: usdc(
      'The sale that closed its position: the PnL of the whole position, which is the sum of its sales',
    ).nullable(),
    exitBps: exitRule.shape.exitBps.nullable(),
    ruleIndex: z
      .int()
      .nullable()
      .describe('Index in exitRules of the rule that fired; of an ExitPartlyExecuted, its index at that time'),
    triggerType: exitRule.shape.triggerType.nullable(),
    triggerBps: exitRule.shape.triggerBps.nullable(),
    source: z
      .enum(TRADE_SOURCES)
      .describe(
        'intent: signed by the agent. order: an order was executed. automation: an exit rule fired. operator: force-closed. owner: closed by the owner',
      ),
    note: noteOrNull,
    transactionHash: hashOut,
    blockNumber: digits('Block of the transaction'),
    logIndex: z.int().describe('Index of the event in the block'),
    timestamp: unixSeconds('Timestamp of the block'),
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

export const tradeFeed = z
  .object({
    trades: z.array(
      trade
        .extend({
          agentId: digits('Agent id'),
          agentName: z.string().describe('Written by its owner: untrusted'),
        })
        .meta({ id: 'FeedTrade' }),
    ),
    nextCursor,
    asOf,
    lagBlocks,
  })
  .meta({ id: 'TradeFeed' })

/** A cursor of trades: block number and log index in base64. */
export const tradeCursor = z
  .string()
  .transform((text, ctx): LogPosition => {
    const place = parseTradeCursor(text)
    if (place !== undefined) return place
    ctx.addIssue({ code: 'custom', message: 'is not a nextCursor of a response' })
    return z.NEVER
  })
  .describe('nextCursor of the previous page')

export const presentTradeCursor = ({ blockNumber, logIndex }: LogPosition): string =>
  btoa(`${blockNumber}-${logIndex}`).replace(/=+$/, '')

function parseTradeCursor(text: string): LogPosition | undefined {
  // Digits and a hyphen never encode to the two characters in which base64 and base64url differ.
  if (!/^[A-Za-z0-9]{1,64}$/.test(text) || text.length % 4 === 1) return undefined
  const [, block, index] = /^(0|[1-9]\d{0,19})-(0|[1-9]\d{0,8})$/.exec(atob(text)) ?? []
  const place = block && index ? { blockNumber: BigInt(block), logIndex: Number(index) } : undefined
  return place && presentTradeCursor(place) === text ? place : undefined
}

// A page has 100 trades, so they are written out: `present` costs three times as much.
const textOrNull = (value: bigint | undefined) => (value === undefined ? null : `${value}`)

export function presentTrade(record: Trade, symbol: string): z.input<typeof trade> {
  const { triggerType, triggerBps } = record.rule
    ? presentExitRule(record.rule)
    : { triggerType: null, triggerBps: null }
  return {
    id: `${record.transactionHash}-${record.logIndex}`,
    type: record.type,
    positionId: `${record.positionId}`,
    symbol,
    token: record.token,
    vault: record.vault,
    capitalMode: presentCapitalMode(record.capitalMode),
    usdcAmount: textOrNull(record.usdcAmount),
    tokenAmount: textOrNull(record.tokenAmount),
    priceUsdc: textOrNull(record.priceUsdc),
    realizedPnlUsdc: textOrNull(record.realizedPnlUsdc),
    positionPnlUsdc: textOrNull(record.positionPnlUsdc),
    exitBps: record.exitBps ?? null,
    ruleIndex: record.ruleIndex ?? null,
    triggerType,
    triggerBps,
    source: record.source,
    note: record.note ?? null,
    transactionHash: record.transactionHash,
    blockNumber: `${record.blockNumber}`,
    logIndex: record.logIndex,
    timestamp: `${record.timestamp}`,
  }
}
