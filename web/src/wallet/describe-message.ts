import type { TypedData } from '@agent-trading-service/client'
import { formatExactly, formatUsdcExactly } from '../format/amounts.ts'
import { formatLocal } from '../format/time.ts'

const ZERO_ADDRESS = /^0x0{40}$/
const MODES = [
  'The agent may open, add, reduce and close.',
  'The agent may only reduce and close.',
  'The agent may only reduce, close and tighten its exits.',
]

/**
 * Says in sentences what typed data does once it is signed and relayed. It reads nothing but the typed data, so the
 * sentences describe exactly what the wallet signs. `symbolOf` names the tokens.
 */
export function describeMessage({ primaryType, message }: TypedData, symbolOf: (token: string) => string): string[] {
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
          : `The agent may buy until ${formatLocal(Number(message.validUntil), { withSeconds: true })}.`,
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
    default:
      return [`This is a ${primaryType} message.`]
  }
}

const toList = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : [])

const limit = (what: string, base: unknown, none: string): string =>
  `${base}` === '0' ? none : `${what} ${formatUsdcExactly(`${base}`)} USDC.`

function tokensSentence(tokens: string[], symbolOf: (token: string) => string): string {
  if (tokens.length === 0) return 'It may buy every token of its vault.'
  return `It may buy only ${tokens.map(token => `${symbolOf(token)} (${token.slice(0, 6)}…${token.slice(-4)})`).join(', ')}.`
}
