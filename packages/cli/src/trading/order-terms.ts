import { type components, formatToken, formatUsdc, parseToken } from '@agent-trading-service/client'
import { durationText } from '@agent-trading-service/protocol/duration'
import { OrderCondition, OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import { LAST_ORDER_SECOND } from '@agent-trading-service/protocol/order-types'
import { percentText } from '../output/units.ts'
import type { Plan } from './plan.ts'

const PRICE_DECIMALS = 8
/** The message of an order, as it will be signed. */
type Message = Record<string, unknown>

/** Parses a price in US dollars to the oracle's 8 decimals. Throws a `ValidationError`. */
export const parsePrice = (priceUsd: string): bigint => parseToken(priceUsd, PRICE_DECIMALS)

/** Says what an order does, without the agent: `buy NVDA for 250 USDC as a new position`. */
export function orderTitle({ side, usdcAmount, exitBps, positionId }: Message, symbol: string): string {
  if (side === OrderSide.Reduce) return `sell ${percentText(Number(exitBps))} of position ${positionId} (${symbol})`
  const where = side === OrderSide.Open ? 'as a new position' : `for position ${positionId}`
  return `buy ${symbol} for ${formatUsdc(`${usdcAmount}`)} USDC ${where}`
}

/** Says the same of an order that the service lists. */
export const presentedTitle = ({
  side,
  symbol,
  usdcAmount,
  exitBps,
  positionId,
}: components['schemas']['Order']): string =>
  side === 'reduce'
    ? `sell ${percentText(exitBps)} of position ${positionId} (${symbol})`
    : `buy ${symbol} for ${formatUsdc(usdcAmount ?? '0')} USDC`

/** Says what an order waits for, in how many parts it trades and when it ends. `presentUsd` is the oracle's present price. */
export function orderTerms(message: Message, presentUsd: string | undefined): Plan['terms'] {
  const { usdcAmount, exitBps, parts, interval, validAfter, validUntil, key, maxSlippageBps } = message
  const buys = message.side !== OrderSide.Reduce
  const all = buys ? `${formatUsdc(`${usdcAmount}`)} USDC` : percentText(Number(exitBps))
  const isTimed = message.condition === OrderCondition.None
  return [
    { name: 'waits for', value: waitsFor(message, presentUsd) },
    ...(Number(parts) > 1
      ? [{ name: 'parts', value: `${parts} equal ones, ${all} together, one every ${durationText(Number(interval))}` }]
      : []),
    ...(validAfter !== '0' && !isTimed ? [{ name: 'not before', value: timeText(`${validAfter}`) }] : []),
    { name: 'ends', value: validUntil === `${LAST_ORDER_SECOND}` ? 'with its position' : timeText(`${validUntil}`) },
    ...(key === '0' ? [] : [{ name: 'replaces', value: `the open order with the key ${key}` }]),
    ...(buys ? [{ name: 'largest slippage', value: percentText(Number(maxSlippageBps)) }] : []),
  ]
}

function waitsFor({ condition, price, trailBps, validAfter }: Message, presentUsd: string | undefined): string {
  const usd = `${formatToken(`${price}`, PRICE_DECIMALS)} USD`
  const now = presentUsd === undefined ? '' : `, now ${presentUsd} USD`
  switch (condition) {
    case OrderCondition.AtOrBelow:
      return `an oracle price of ${usd} or less${now}`
    case OrderCondition.AtOrAbove:
      return `an oracle price of ${usd} or more${now}`
    case OrderCondition.Trailing: {
      const since = price === '0' ? 'placing' : `the oracle has reached ${usd}`
      return `a fall of ${percentText(Number(trailBps))} from the highest oracle price since ${since}${now}`
    }
    default:
      return validAfter === '0' ? 'nothing: its first part is due at once' : timeText(`${validAfter}`)
  }
}

/** Returns a time in Unix seconds as people read it. */
function timeText(seconds: string): string {
  const time = new Date(Number(seconds) * 1_000)
  return Number.isNaN(time.getTime()) ? `${seconds} (Unix seconds)` : time.toISOString().replace('.000', '')
}
