import { usdcText } from './check-figures.ts'
import { durationText } from './duration.ts'
import { type LadderRule, toContractRules } from './exit-rule.ts'
import { OrderCondition, OrderSide } from './order-typed-data.ts'
import { LAST_ORDER_SECOND } from './order-types.ts'
import { percentText } from './percent.ts'
import { hashExits, type PrimaryType, signingTypes } from './typed-data.ts'
import { showUnseen } from './unseen-text.ts'

/** One line of what is signed. */
export type Term = { name: string; value: string }

/** A message as it will be signed. Integers are numbers or digits. */
type Signed = { primaryType: PrimaryType; message: Readonly<Record<string, unknown>> }

/** What the message does not say itself. */
type TermsContext = {
  /** Returns the symbol of a token; undefined if the symbol is no ticker. */
  symbolOf?: (token: string) => string | undefined
  /** The ladder that was asked for, shown if the message has its hash. */
  exits?: readonly LadderRule[] | undefined
}

/** A field of any message. */
export type FieldName = (typeof signingTypes)[PrimaryType][number]['name']
type Given = Signed & TermsContext
/** Returns a field in words, in several lines, or undefined if it says nothing: only one value of a field may do so. */
export type Format = (value: string, given: Given) => string | readonly string[] | undefined

const MAX_QUOTED = 32

/** The longest text that a message may have: a URI. */
const MAX_SIGNED_TEXT = 2_048

/**
 * Tells whether a symbol is a ticker, such as `NVDA`, `F`, `BRK.B` or `NVDAx`: words could say something else than a
 * token.
 */
export const isTicker = (symbol: string): boolean => /^(?=.{1,16}$)[A-Za-z0-9]+([.-][A-Za-z0-9]+)?$/.test(symbol)

/**
 * Returns a text of another program in quotes, at most 32 characters of it, so that it cannot pass for our own words.
 */
export function quoteText(text: string, max = MAX_QUOTED): string {
  const characters = Array.from(showUnseen(text.slice(0, 2 * max)).replaceAll('"', "'"))
  const isCut = characters.length > max || text.length > 2 * max
  return `"${characters.slice(0, max).join('')}${isCut ? '…' : ''}"`
}

/** Says what a rule of a ladder does. */
export const ruleText = ({ triggerBps, exitBps }: LadderRule): string =>
  `${triggerBps < 0 ? 'stop-loss' : 'take-profit'} at ${percentText(triggerBps)}: sell ${percentText(exitBps)}`

const SIDES = ['buy as a new position', 'buy more of a position', 'sell from a position']
const MODES = [
  'may open, add, reduce and close',
  'may only reduce and close',
  'may only reduce, close and tighten exits',
]

export const usdc = (value: string) => `${usdcText(BigInt(value))} USDC`
const limit: Format = value => (value === '0' ? 'no limit' : `at most ${usdc(value)}`)
const asIs: Format = value => value
const unlessZero =
  (format: Format): Format =>
  (value, given) =>
    value === '0' ? undefined : format(value, given)
export const percent: Format = value => percentText(Number(value))
const text: Format = value => quoteText(value, MAX_SIGNED_TEXT)
export const fixed = (value: string, decimals: number) => {
  const digits = value.padStart(decimals + 1, '0')
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`.replace(/\.?0+$/, '')
}

const token: Format = (value, { symbolOf }) => {
  const symbol = symbolOf?.(value)
  return symbol !== undefined && isTicker(symbol) ? `${value} (${symbol})` : value
}

export const time: Format = seconds => {
  const date = new Date(Number(seconds) * 1_000)
  return Number.isNaN(date.getTime()) ? `${seconds} (Unix seconds)` : date.toISOString().replace('.000', '')
}

const isSale = ({ message }: Given) => `${message.side}` === `${OrderSide.Reduce}`

const isTrailing = ({ message }: Given) => Number(message.condition) === OrderCondition.Trailing
const namesPrice = ({ message }: Given) =>
  Number(message.condition) > OrderCondition.None && Number(message.condition) <= OrderCondition.Trailing

const waitsFor: Format = (value, { message: { price, trailBps } }) => {
  const usd = `${fixed(`${price}`, 8)} USD`
  switch (Number(value)) {
    case OrderCondition.AtOrBelow:
      return `an oracle price of ${usd} or less`
    case OrderCondition.AtOrAbove:
      return `an oracle price of ${usd} or more`
    case OrderCondition.Trailing:
      return `a fall of ${percentText(Number(trailBps))} from the highest oracle price since ${`${price}` === '0' ? 'placing' : `the oracle has reached ${usd}`}`
    case OrderCondition.None:
      return 'no price'
    default:
      return `condition ${value}`
  }
}

const end: Format = (value, given) => {
  if (given.primaryType === 'SetMandate') return value === '0' ? 'no end' : time(value, given)
  return value === `${LAST_ORDER_SECOND}` ? (isSale(given) ? 'with its position' : 'never') : time(value, given)
}

/** Only the hash is signed, so rules with another hash are not shown. */
const ladder: Format = (value, { exits = [] }) =>
  hashExits(toContractRules(exits)) === value ? exits.map(ruleText) : `those with the hash ${value}`

/** The name and the words of every field that is signed, in the order in which a reader needs them. Texts come last. */
export const fields: Record<FieldName, readonly [name: string, format: Format]> = {
  side: ['does', value => SIDES[Number(value)] ?? value],
  mode: ['the agent', value => MODES[Number(value)] ?? `mode ${value}`],
  usdcAmount: ['amount', (value, given) => (value === '0' && isSale(given) ? undefined : usdc(value))],
  exitBps: ['share to sell', unlessZero((value, given) => `${percent(value, given)} of the position`)],
  shares: ['vault shares', value => (value === '0' ? 'none: what is locked is released' : fixed(value, 12))],
  token: ['token', token],
  positionId: ['position', unlessZero(asIs)],
  agentId: ['agent', asIs],
  agentIds: ['agents', value => value.replaceAll(',', ', ')],
  maxTradeUsdc: ['one purchase', limit],
  maxDailyTurnoverUsdc: ['purchases of 24 hours', limit],
  maxExposureUsdc: ['open positions', limit],
  allowedTokens: [
    'may buy',
    (value, given) =>
      value === '' ? 'every token of the vault' : value.split(',').map(each => `${token(each, given) ?? each}`),
  ],
  maxSlippageBps: [
    'largest slippage',
    (value, given) => (value === '0' && isSale(given) ? undefined : percent(value, given)),
  ],
  minTokenOut: ['fewest tokens', unlessZero(value => `${value} base units`)],
  condition: ['waits for', waitsFor],
  price: ['price', unlessZero((value, given) => (namesPrice(given) ? undefined : fixed(value, 8)))],
  trailBps: ['trail', unlessZero((value, given) => (isTrailing(given) ? undefined : percent(value, given)))],
  parts: ['parts', value => (value === '1' ? undefined : `${value} equal ones, together as above`)],
  interval: ['between parts', unlessZero(value => `at least ${durationText(BigInt(value))} (${value} s)`)],
  exitsHash: ['exit rule', ladder],
  newOwner: ['new owner', value => (/^0x0{40}$/.test(value) ? `${value} (withdraws the offer)` : value)],
  signer: ['key that trades', asIs],
  vault: ['vault', asIs],
  orderId: ['order', asIs],
  untilNonce: ['first valid nonce', asIs],
  linkERC8004: ['links an identity', value => (value === 'true' ? 'yes' : 'no')],
  erc8004AgentId: [
    'ERC-8004 identity',
    (value, { message }) => (value === '0' && message.linkERC8004 === false ? undefined : value),
  ],
  validAfter: ['not before', unlessZero(time)],
  validUntil: ['ends', end],
  key: ['replaces', unlessZero(value => `the open order with the key ${value}`)],
  deadline: ['deadline', time],
  nonce: ['nonce', asIs],
  webhookId: ['webhook', asIs],
  salt: ['salt', asIs],
  action: ['action', text],
  eventTypes: ['event', value => value.split(',').map(each => quoteText(each))],
  name: ['name', text],
  url: ['URL', text],
  metadataURI: ['metadata', text],
}

/** What each message does. */
const titles: Record<PrimaryType, string> = {
  SelfRegister: 'Register an agent',
  LinkERC8004: 'Link an agent to an ERC-8004 identity',
  OpenPosition: 'Buy a token as a new position',
  AddToPosition: 'Buy more of a position',
  ReducePosition: 'Sell from a position',
  UpdateExitLadder: 'Replace the pending exit rules of a position',
  PlaceOrder: 'Place an order that waits on chain',
  CancelOrder: 'Cancel an order: no later block executes it',
  OwnAgent: 'Become the owner of a new agent',
  OfferOwnership: 'Offer an agent to a new owner: nothing changes before it is accepted',
  AcceptOwnership: 'Become the owner of an agent, and name the only key that trades for it',
  SetSigner: 'Replace the key that trades for an agent: what the former one signed is refused',
  SetMandate: 'Replace the whole mandate of an agent',
  StopBuying: 'Stop agents from buying: open positions stay open, and their exit rules still fire',
  CloseAll: 'Stop agents from buying, and sell all of their positions at least at the floor of the trade policy',
  CancelIntents: 'Void the signed messages of an agent below a nonce',
  LockFirstLoss: 'Let vault shares answer for the losses of an agent until it has left its track',
  CreateWebhook: 'Create a webhook',
  ListWebhooks: 'List the webhooks of an agent',
  ManageWebhook: 'Change a webhook',
}

/** Returns what a message does, in words that depend on its type alone. */
export const titleOf = ({ primaryType }: Pick<Signed, 'primaryType'>): string => titles[primaryType]

/** Returns the fields of a message with their names in words, in the order of `termsOf`. */
export function namedFields(primaryType: PrimaryType): [field: FieldName, name: string][] {
  const signed = new Set<string>(signingTypes[primaryType].map(({ name }) => name))
  return Object.entries(fields).flatMap(([field, [name]]) => (signed.has(field) ? [[field as FieldName, name]] : []))
}

/**
 * Returns what a message says, one line for each thing that it signs: figures and addresses first, texts last.
 * Everything comes from the message, so no text of a service can displace it; only the symbol behind a token's address
 * is somebody's word.
 */
export function termsOf({ primaryType, message }: Signed, context: TermsContext = {}): Term[] {
  const given = { primaryType, message, ...context }
  return namedFields(primaryType).flatMap(([field, name]) => {
    const lines = fields[field][1](`${message[field]}`, given)
    if (lines === undefined) return []
    if (typeof lines === 'string') return [{ name, value: lines }]
    return lines.map((value, index) => ({ name: `${name} ${index + 1}`, value }))
  })
}
