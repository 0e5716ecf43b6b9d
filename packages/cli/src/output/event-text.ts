import { usdcText } from '@agent-trading-service/protocol/check-figures'
import { relativeTime, valueText } from './units.ts'

type EventData = Record<string, unknown>

const VERBS: Record<string, string> = {
  PositionOpened: 'bought',
  PositionIncreased: 'bought more',
  PositionReduced: 'sold a part of',
  ExitExecuted: 'exit rule sold',
  ExitRuleExecuted: 'exit rule sold',
}

/** A sale with the PnL of its whole position has closed it. */
const verbOf = ({ type, positionPnlUsdc }: EventData) =>
  type === 'PositionReduced' && typeof positionPnlUsdc === 'string' ? 'sold all of' : (VERBS[`${type}`] ?? type)

/** Returns an event of a stream as one readable line, without its id. */
export function eventText(type: string, data: EventData): string {
  return `${type.padEnd(11)} ${whatHappened(type, data)}`
}

function whatHappened(type: string, data: EventData): string {
  const agent = data.agentId === undefined ? '' : `agent ${data.agentId} `
  switch (type) {
    case 'trade':
    case 'exit':
      return `${agent}${verbOf(data)} ${data.symbol ?? data.token}${traded(data)}`
    case 'ladder':
      return `${agent}changed the exit rules of position ${data.positionId}${data.symbol ? ` (${data.symbol})` : ''}`
    case 'order':
      return `${agent}${orderText(data)}`
    case 'intent':
      return `${agent}${data.kind ?? data.primaryType ?? 'intent'} ${short(data.digest)} is ${data.state}${refusal(data)}`
    case 'price':
      return `${data.symbol} ${data.priceUsd}`
    case 'price-stale':
      return `the price of ${data.symbol} is stale${time(', posted', data.updatedAt)}${closure(data.market)}`
    case 'price-fresh':
      return `the price of ${data.symbol} is fresh again`
    case 'corporateAction':
      return `one ${data.symbol} stands for ${data.newMultiplier} shares${time(' from', data.effectiveAt)}: ${data.state}`
    case 'reorg':
      return `the chain dropped blocks: discard ${Array.isArray(data.withdrawn) ? data.withdrawn.length : 'the named'} events`
    default:
      return `${agent}${values(data)}`
  }
}

function traded({ usdcAmount, priceUsdc, realizedPnlUsdc, positionId, note }: EventData): string {
  const digits = (value: unknown) => /^-?\d+$/.test(`${value}`)
  const amount = digits(usdcAmount) ? ` for ${usdcText(BigInt(`${usdcAmount}`))} USDC` : ''
  const price = digits(priceUsdc) ? ` at ${usdcText(BigInt(`${priceUsdc}`))}` : ''
  const pnl =
    digits(realizedPnlUsdc) && realizedPnlUsdc !== '0' ? `, PnL ${usdcText(BigInt(`${realizedPnlUsdc}`))} USDC` : ''
  const said = typeof note === 'string' ? `, saying: ${note}` : ''
  return `${amount}${price}${pnl}, position ${positionId}${said}`
}

function orderText({ type, orderId, symbol, part, reason }: EventData): string {
  const order = `order ${short(orderId)}`
  if (type === 'OrderPlaced') return `placed ${order} (${symbol})`
  return type === 'OrderExecuted' ? `${order} executed part ${part}` : `${order} ended: ${reason}`
}

const short = (hex: unknown) => `${hex}`.slice(0, 10)
const refusal = ({ refusal }: EventData) =>
  typeof refusal === 'object' && refusal !== null && 'error' in refusal ? `: ${refusal.error}` : ''
const closure = (market: unknown) =>
  typeof market === 'object' && market !== null && 'session' in market && market.session === 'closed'
    ? `; its market is closed${time(', opens', 'nextOpen' in market && market.nextOpen)}`
    : ''
const time = (words: string, seconds: unknown) =>
  /^\d+$/.test(`${seconds}`) ? `${words} ${relativeTime(Number(seconds))}` : ''

/** The single values of an event, without ids and hashes. */
const values = (data: EventData): string =>
  Object.entries(data)
    .filter(([name, value]) => ['string', 'number', 'boolean'].includes(typeof value) && name !== 'agentId')
    .filter(([, value]) => !/^0x[0-9a-f]{40,}/i.test(`${value}`))
    .map(([name, value]) => `${name} ${valueText(value as string, name)}`)
    .join(', ')
