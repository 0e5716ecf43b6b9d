import {
  type ExitRule,
  hashExits,
  type JudgedDeadline,
  type PrimaryType,
  parseToken,
} from '@agent-trading-service/client'
import type { Hex } from 'viem'
import { Failure } from '../failure.ts'
import { ROUTER_TYPES, type Signable } from './signable.ts'

const USDC_DECIMALS = 6
const PRICE_DECIMALS = 8
const MODES = ['trade', 'reduceOnly', 'stopped']
const SIDES = ['open', 'add', 'reduce']
const CONDITIONS = ['none', 'atOrBelow', 'atOrAbove', 'trailing']
const AMOUNTS = ['usdcAmount', 'maxTradeUsdc', 'maxDailyTurnoverUsdc', 'maxExposureUsdc']

/**
 * Throws unless the message is a trade or of the type that the user named, because a service chooses what it quotes.
 * Orders have to be named: they outlive their deadline.
 */
export function assertAskedFor({ primaryType }: Signable, type: string | undefined): void {
  if (type === undefined ? ROUTER_TYPES.includes(primaryType) : type === primaryType) return
  throw refuse(
    'UNEXPECTED_MESSAGE',
    `The quote is for the message ${primaryType}; expected ${type ?? 'a trade'}.`,
    `If you asked for it, read its fields and pass --type ${primaryType}.`,
  )
}

/** Throws if the deadline was judged to be too far, or to have passed. */
export function assertDeadline({ message }: Signable, { refusal }: JudgedDeadline): void {
  if (refusal === undefined) return
  throw refuse(
    'QUOTE_DEADLINE_MISMATCH',
    `The deadline is ${message.deadline}; expected ${refusal.expected}.`,
    refusal.remedy ?? 'Pass a whole, fresh quote. If its deadline is as far again, do not trust the service.',
  )
}

/**
 * Throws unless every field of the body says what the message says. `token` is the address of the symbol in the body.
 */
export function assertBodyMatches({ primaryType, message }: Signable, body: unknown, token: Hex | undefined): void {
  if (typeof body !== 'object' || body === null)
    throw refuse('QUOTE_BODY_MISMATCH', 'The quote has no body to post.', 'Pass a whole quote.')
  for (const [name, value] of Object.entries(body))
    if (!isSame(primaryType, message, { name, value, token }))
      throw refuse(
        'QUOTE_BODY_MISMATCH',
        `The field ${name} of the body is ${JSON.stringify(value)}, which is not what the message says.`,
        'Request a new quote. If it differs again, do not trust the service.',
      )
}

type Field = { name: string; value: unknown; token: Hex | undefined }

function isSame(type: PrimaryType, message: Signable['message'], { name, value, token }: Field): boolean {
  if (AMOUNTS.includes(name)) return unitsOf(value, USDC_DECIMALS) === `${message[name]}`
  if (name === 'price') return unitsOf(value, PRICE_DECIMALS) === message[name]
  if (name === 'side') return SIDES.indexOf(`${value}`) === message.side
  if (name === 'condition') return CONDITIONS.indexOf(`${value}`) === message.condition
  if (name === 'symbol') return token !== undefined && isEqual(token, message.token)
  if (name === 'exits') return Array.isArray(value) && hashOf(value) === message.exitsHash
  if (name === 'mode') return MODES.indexOf(`${value}`) === Number(message.mode)
  if (name === 'action' && type !== 'ManageWebhook')
    return (type === 'CloseAll' && value === 'flatten') || (type === 'StopBuying' && value === 'reduceOnly')
  if (name === 'otherAgentIds') return Array.isArray(message.agentIds) && isEqual(value, message.agentIds.slice(1))
  return Object.hasOwn(message, name) && isEqual(value, message[name])
}

function unitsOf(value: unknown, decimals: number): string | undefined {
  try {
    return `${parseToken(`${value}`, decimals)}`
  } catch {
    return undefined
  }
}

function hashOf(exits: unknown[]): Hex | undefined {
  try {
    return hashExits(exits as ExitRule[])
  } catch {
    return undefined
  }
}

const isEqual = (a: unknown, b: unknown) => text(a) === text(b)

/** Integers are numbers or digits, addresses in upper or lower case. */
const text = (value: unknown): string =>
  Array.isArray(value)
    ? JSON.stringify(value.map(text))
    : /^0x[0-9a-fA-F]*$/.test(`${value}`)
      ? `${value}`.toLowerCase()
      : `${value}`

const refuse = (code: string, message: string, remedy: string) =>
  new Failure('mismatch', `${message} Nothing was signed.`, { code, remedy })
