import { type ExitRule, hashExits, type TypedData } from '@agent-trading-service/client'
import { OrderCondition, OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import { LAST_ORDER_SECOND } from '@agent-trading-service/protocol/order-types'
import { formatBps, formatExactly, formatUsdcExactly } from '../format/amounts.ts'
import { formatDuration, formatLocal } from '../format/time.ts'

type SymbolOf = (token: string) => string
type Message = TypedData['message']

const ZERO_ADDRESS = /^0x0{40}$/
const MODES = [
  'The agent may open, add, reduce and close.',
  'The agent may only reduce and close.',
  'The agent may only reduce, close and tighten its exits.',
]

/**
 * Says in sentences what typed data does once it is signed and relayed. It reads nothing but the typed data, so the
 * sentences describe exactly what the wallet signs. `symbolOf` names the tokens; `exits` is the ladder whose hash an order
 * carries.
 */
export function describeMessage(
  { primaryType, message }: TypedData,
  symbolOf: SymbolOf,
  exits: readonly ExitRule[] = [],
): string[] {
  const ids = toList(message.agentIds)
  const agents = `${ids.length === 1 ? 'Agent' : 'Agents'} ${ids.join(', ')}`
  const stop = ids.length === 1 ? 'stops' : 'stop'
  switch (primaryType) {
    case 'StopBuying':
      return [`${agents} ${stop} buying.`, 'Open positions stay open, and their exit rules still fire.']
    case 'CloseAll':
      return [
        `${agents} ${stop} buying, and all of ${ids.length === 1 ? 'its' : 'their'} positions are sold.`,
        'The keeper sells each one at least at the floor of the trade policy, in as many transactions as it takes.',
      ]
    case 'SetMandate':
      return [
        `Agent ${message.agentId} gets a new mandate, which replaces the whole old one.`,
        MODES[Number(message.mode)] ?? `The mode is ${message.mode}.`,
        limit('One trade is at most', message.maxTradeUsdc, 'A trade has no limit of the owner.'),
        limit(
          'Buys of 24 hours are at most',
          message.maxDailyTurnoverUsdc,
          'Buys of 24 hours have no limit of the owner.',
        ),
        limit('All open positions cost at most', message.maxExposureUsdc, 'Open positions have no limit of the owner.'),
        tokensSentence(toList(message.allowedTokens), symbolOf),
        `${message.validUntil}` === '0'
          ? 'It holds until another one replaces it.'
          : `The agent may buy until ${timeOf(message.validUntil)}.`,
      ]
    case 'OfferOwnership':
      return ZERO_ADDRESS.test(`${message.newOwner}`)
        ? [`The offer of agent ${message.agentId} is withdrawn.`]
        : [
            `Agent ${message.agentId} is offered to ${message.newOwner}.`,
            'Nothing changes before that address accepts. A later offer replaces this one.',
          ]
    case 'AcceptOwnership':
      return [
        `Agent ${message.agentId} and its payouts become yours.`,
        `From then on, only ${message.signer} signs its trades.`,
      ]
    case 'SetSigner':
      return [
        `From the next block on, only ${message.signer} signs trades of agent ${message.agentId}.`,
        'What the former signer signed and is not mined yet is refused.',
      ]
    case 'LockFirstLoss':
      if (`${message.shares}` === '0')
        return [
          `None of your vault shares answers for losses of agent ${message.agentId} any more.`,
          'What was locked can be redeemed once a new holding time is over.',
        ]
      return [
        `${formatExactly(`${message.shares}`, 12)} of your vault shares answer for losses of agent ${message.agentId} on real capital.`,
        'They can be neither redeemed nor moved until the agent has left its track and holds nothing; losses burn them.',
      ]
    case 'PlaceOrder':
      return describeOrder(message, symbolOf, exits)
    case 'CancelOrder':
      return [`Order ${message.orderId} of agent ${message.agentId} is cancelled.`, 'No later block executes it.']
    default:
      return [`This is a ${primaryType} message.`]
  }
}

const toList = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : [])

const limit = (what: string, base: unknown, none: string): string =>
  `${base}` === '0' ? none : `${what} ${formatUsdcExactly(`${base}`)} USDC.`

function describeOrder(message: Message, symbolOf: SymbolOf, exits: readonly ExitRule[]): string[] {
  const { agentId, positionId, parts, interval, validAfter, validUntil, key } = message
  const side = Number(message.side)
  const token = nameToken(`${message.token}`, symbolOf)
  const isSale = side === OrderSide.Reduce
  const target = side === OrderSide.Open ? 'as a new position' : `for position #${positionId}`
  return [
    isSale
      ? `Agent ${agentId} sells ${Number(message.exitBps) === 10_000 ? 'all' : formatBps(Number(message.exitBps))} of position #${positionId} in ${token}.`
      : `Agent ${agentId} buys ${token} for ${formatUsdcExactly(`${message.usdcAmount}`)} USDC ${target}.`,
    conditionSentence(message),
    ...(`${validAfter}` === '0' ? [] : [`It executes not before ${timeOf(validAfter)}.`]),
    ...(Number(parts) > 1
      ? [`It executes in ${parts} parts, at least ${formatDuration(Number(interval))} apart.`]
      : []),
    BigInt(`${validUntil}`) < LAST_ORDER_SECOND
      ? `It waits until ${timeOf(validUntil)}.`
      : `It waits ${isSale ? 'as long as the position is open' : 'without an end'}.`,
    ...(isSale
      ? []
      : [
          `A fill is at most ${formatBps(Number(message.maxSlippageBps))} below the oracle's value, or the order waits.`,
        ]),
    ...(side === OrderSide.Open ? exitSentences(message.exitsHash, exits) : []),
    ...(`${key}` === '0' ? [] : [`It replaces the agent's open order with the key ${key}.`]),
  ]
}

function conditionSentence({ condition, price, trailBps }: Message): string {
  const dollars = `${formatExactly(`${price}`, 8)} USD`
  switch (Number(condition)) {
    case OrderCondition.AtOrBelow:
      return `It executes once the price is ${dollars} or lower.`
    case OrderCondition.AtOrAbove:
      return `It executes once the price is ${dollars} or higher.`
    case OrderCondition.Trailing:
      return `It executes once the price is ${formatBps(Number(trailBps))} below its highest since ${`${price}` === '0' ? 'the order was placed' : `it has reached ${dollars}`}.`
    default:
      return 'It waits for no price.'
  }
}

/** Only the hash of a ladder is signed, so a ladder with another hash is not described. */
const exitSentences = (exitsHash: unknown, exits: readonly ExitRule[]): string[] =>
  hashExits(exits) === exitsHash
    ? exits.map(
        ({ triggerBps, exitBps }) =>
          `The position sells ${exitBps === 10_000 ? 'everything' : `${formatBps(exitBps)} of what is left`} ${formatBps(Math.abs(triggerBps))} ${triggerBps < 0 ? 'below' : 'above'} its entry price.`,
      )
    : [`The position gets the exit rules with the hash ${exitsHash}.`]

const timeOf = (seconds: unknown) => formatLocal(Number(seconds), { withSeconds: true })

const nameToken = (token: string, symbolOf: SymbolOf) => `${symbolOf(token)} (${token.slice(0, 6)}…${token.slice(-4)})`

function tokensSentence(tokens: string[], symbolOf: SymbolOf): string {
  if (tokens.length === 0) return 'It may buy every token of its vault.'
  return `It may buy only ${tokens.map(token => nameToken(token, symbolOf)).join(', ')}.`
}
