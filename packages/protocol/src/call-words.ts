import {
  type Abi,
  type AbiParameter,
  type Address,
  decodeAbiParameters,
  type Hex,
  size,
  toFunctionSelector,
} from 'viem'
import { agentRegistryAbi } from '../../../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../../../contracts-abi/allocation-manager.ts'
import { feeManagerAbi } from '../../../contracts-abi/fee-manager.ts'
import { mandateVaultAbi } from '../../../contracts-abi/mandate-vault.ts'
import { multicall3Abi } from '../../../contracts-abi/multicall3.ts'
import { orderBookAbi } from '../../../contracts-abi/order-book.ts'
import { ownerControlsAbi } from '../../../contracts-abi/owner-controls.ts'
import { priceOracleAbi } from '../../../contracts-abi/price-oracle.ts'
import { requestQueueAbi } from '../../../contracts-abi/request-queue.ts'
import { timelockAbi } from '../../../contracts-abi/timelock.ts'
import { tokenRegistryAbi } from '../../../contracts-abi/token-registry.ts'
import { tradeRouterAbi } from '../../../contracts-abi/trade-router.ts'
import { vaultTrackRegistryAbi } from '../../../contracts-abi/vault-track-registry.ts'
import { decodeEvent } from './decode-event.ts'
import { durationText } from './duration.ts'
import { AgentStatus, AllocationStatus, Track } from './enums.ts'
import type { ExitRule } from './exit-rule.ts'
import { type FieldName, type Format, fields, fixed, percent, ruleText, time, titleOf, usdc } from './message-terms.ts'
import { OrderEnd } from './order-typed-data.ts'
import { TRADE_TOPICS } from './trade-events.ts'
import { type PrimaryType, signingTypes } from './typed-data.ts'

/** The contracts whose calls and events have words. Of USDC that is what every ERC-20 token has, as shares do. */
export const describedAbis = {
  AgentRegistry: agentRegistryAbi,
  TradeRouter: tradeRouterAbi,
  OwnerControls: ownerControlsAbi,
  OrderBook: orderBookAbi,
  MandateVault: mandateVaultAbi,
  RequestQueue: requestQueueAbi,
  PriceOracle: priceOracleAbi,
  AllocationManager: allocationManagerAbi,
  FeeManager: feeManagerAbi,
  TokenRegistry: tokenRegistryAbi,
  VaultTrackRegistry: vaultTrackRegistryAbi,
  Timelock: timelockAbi,
  Multicall3: multicall3Abi,
  USDC: mandateVaultAbi.filter(item => item.type === 'function' && /^(approve|transfer)(From)?$/.test(item.name)),
} as const satisfies Record<string, Abi>
export type DescribedContract = keyof typeof describedAbis

/** What is known of the addresses of a deployment. */
export type KnownAddresses = {
  /** Returns the name of the contract at an address, which may have no words. */
  contractAt(address: Address): string | undefined
  /** Returns the symbol of a token, the slug of a vault or the name of a contract. */
  nameOf(address: Address): string | undefined
}

/** A call or an event in words; `name` is that of the ABI, and `field` that of its parameter. */
export type Described = {
  contract: DescribedContract
  name: string
  title: string
  terms: { field: string; name: string; value: string }[]
}

/** What calls and events do, where that is neither what a signed message of the same name does nor the name itself. */
const titles: Readonly<Record<string, string>> = {
  registerAgent: titleOf({ primaryType: 'SelfRegister' }),
  registerOwnedAgent: titleOf({ primaryType: 'SelfRegister' }),
  selfRegisterAgent: titleOf({ primaryType: 'SelfRegister' }),
  linkERC8004Identity: titleOf({ primaryType: 'LinkERC8004' }),
  linkERC8004IdentityWithSignature: titleOf({ primaryType: 'LinkERC8004' }),
  setAgentSigner: titleOf({ primaryType: 'SetSigner' }),
  promoteAgent: 'Promote an agent to another track',
  transferAgentOwnership: 'Transfer an agent to another owner',
  pause: 'Pause registrations and purchases',
  unpause: 'Resume registrations and purchases',
  cancelNonce: 'Void the signed message with a nonce',
  executeExit: 'Fire the due exit rule of a position',
  executeExitFor: 'Fire the due exit rule of a position',
  executeExits: 'Fire the due exit rules of positions',
  forceClose: 'Close a position as the operator',
  executeOrder: 'Execute a due order',
  executeOrderFor: 'Execute a due order',
  executeOrders: 'Execute due orders',
  endDeadOrders: 'End orders that can no longer execute',
  raisePeaks: 'Record new peaks for trailing orders',
  recordDueOrders: 'Record that orders are due',
  approve: 'Let an account spend',
  transfer: 'Transfer',
  transferFrom: 'Transfer from an account',
  deposit: 'Deposit USDC for vault shares',
  mint: 'Deposit USDC for vault shares',
  redeem: 'Redeem vault shares for USDC',
  withdraw: 'Redeem vault shares for USDC',
  checkpointSharePrice: 'Record the share price of a vault',
  requestDeposit: 'Request a deposit at the next price',
  requestRedeem: 'Request a redemption at the next price',
  claimAssets: 'Claim USDC that waits in the queue',
  settle: 'Settle waiting deposits and redemptions',
  post: 'Post prices',
  setPrice: 'Post a price',
  setPrices: 'Post prices',
  postPrices: 'Post prices of signed reports and push feeds',
  postReports: 'Post prices of signed reports',
  syncFeeds: 'Post prices of push feeds',
  withPrices: 'Bring prices along for a call',
  aggregate3: 'Make several calls',
  aggregate3Value: 'Make several calls',
  tryAggregate: 'Make several calls',
  execute: 'Execute an operation of the timelock',
  executeBatch: 'Execute an operation of the timelock',
  schedule: 'Schedule an operation of the timelock',
  scheduleBatch: 'Schedule an operation of the timelock',
  cancel: 'Cancel an operation of the timelock',
  Deposit: 'USDC deposited for vault shares',
  Withdraw: 'Vault shares redeemed for USDC',
  FeeRetained: 'Fee retained by the vault',
  OrdersVoided: 'Earlier orders void',
  ERC8004IdentityLinked: 'ERC-8004 identity linked',
  ERC8004IdentityUnlinked: 'ERC-8004 identity unlinked',
}

/** The calls that calls make, as far as their arguments say so. */
const innerCalls: Readonly<Record<string, (args: Arguments, to: Address) => { to: unknown; data: unknown }[]>> = {
  withPrices: ({ call }, to) => [{ to, data: call }],
  aggregate3: inBatch,
  aggregate3Value: inBatch,
  tryAggregate: inBatch,
  execute: ({ target, payload }) => [{ to: target, data: payload }],
  schedule: ({ target, data }) => [{ to: target, data }],
  executeBatch: inOperation,
  scheduleBatch: inOperation,
}

function inBatch({ calls }: Arguments) {
  return (calls as { target: unknown; callData: unknown }[]).map(({ target, callData }) => ({
    to: target,
    data: callData,
  }))
}

function inOperation({ targets, payloads }: Arguments) {
  return (targets as unknown[]).map((to, index) => ({ to, data: (payloads as unknown[])[index] }))
}

/** Says nothing to a reader, or is in the inner calls or the trades. */
const HIDDEN =
  /^((signature|predecessor|roundId|call|callData|payload|data|allowFailure|requireSuccess|consent)s?|salt|(buy|sale)Epoch)$/
const HIDDEN_EVENTS = ['Transfer', 'Approval', 'CallSalt', 'EIP712DomainChanged']

/** The parameters of `withPrices`, which have no names in the ABI. */
const UNNAMED = ['reports', 'feeds']

const shares: Format = value => fixed(value, 12).replace(/^\d+/, grouped)
const usd: Format = value => `${fixed(value, 8)} USD`
const namesOf = (values: Readonly<Record<string, number>>): Format => {
  const names = Object.fromEntries(Object.entries(values).map(([name, value]) => [value, name]))
  return value => names[value] ?? value
}
const track = namesOf(Track)

/** Values with a unit or of an enum, by the names of parameters that no signed message has. First match wins. */
const units: readonly (readonly [name: RegExp, format: Format])[] = [
  [/^(assets|usdc(In|Out)|fee|oldFee|newFee|cap|oldCap|newCap|keeperBounty|max)$|Usdc$/, value => usdc(value)],
  [/^(shares|pending)$/, shares],
  [/^(prices?|peak|anchor)$/, usd],
  [/^(observedAt|since|dueSince|closingSince|unlocksAt|acceptedAt)$/, time],
  [/^bps$|Bps_?$/, percent],
  [/^(delay|newDelay|maxAge|holdingTime|oldDuration|newDuration)$|PriceAge_?$|Window$|Period$/, durationOf],
  [/^(fromT|toT|t)rack(Id)?$/, track],
]

function durationOf(value: string): string {
  return durationText(BigInt(value))
}

/** Values that mean something else in one contract. */
const ofContract: { readonly [contract in DescribedContract]?: Readonly<Record<string, Format>> } = {
  AgentRegistry: { status: namesOf(AgentStatus), oldStatus: namesOf(AgentStatus), newStatus: namesOf(AgentStatus) },
  AllocationManager: {
    status: namesOf(AllocationStatus),
    oldStatus: namesOf(AllocationStatus),
    newStatus: namesOf(AllocationStatus),
  },
  FeeManager: { amount: usdc },
  USDC: { value: usdc },
  MandateVault: { value: (value, given) => `${shares(value, given)} shares`, shares },
  RequestQueue: { shares },
  PriceOracle: { price: usd },
  OrderBook: { reason: namesOf(OrderEnd), amount: () => undefined },
}

/** Names that do not follow from those of the parameters. */
const fieldNames: Readonly<Record<string, string>> = {
  exits: 'exit rules',
  positionIds: 'positions',
  requestId: 'request',
  ruleIndex: 'index of the rule',
  usdcIn: 'USDC paid',
  usdcOut: 'USDC received',
  assets: 'amount',
  'assets[]': 'tokens',
  asset: 'token',
  max: 'most',
  bps: 'share',
  erc8004IdentityRegistry: 'ERC-8004 registry',
  erc8004ChainId: 'ERC-8004 chain',
}

/** Each vault has one of these, which goes by its name. */
const OF_VAULT: readonly DescribedContract[] = ['MandateVault', 'RequestQueue']

type Arguments = Readonly<Record<string, unknown>>
type Layout = { name: string; inputs: readonly AbiParameter[] }

/** As many entries of a list, or inner calls, are described: anyone may send longer ones. */
const MAX_LISTED = 20
const MAX_DEPTH = 3

const layouts = new Map<DescribedContract, Map<string, Layout>>()

/** Returns the functions of a contract by selector, which are hashed once. */
function functionsOf(contract: DescribedContract): Map<string, Layout> {
  const known = layouts.get(contract)
  if (known) return known
  const abi: Abi = describedAbis[contract]
  const bySelector = new Map(
    abi.flatMap(item => (item.type === 'function' ? [[toFunctionSelector(item), item] as const] : [])),
  )
  layouts.set(contract, bySelector)
  return bySelector
}

function contractAt(address: Address, known: KnownAddresses): DescribedContract | undefined {
  const name = known.contractAt(address)
  return name !== undefined && Object.hasOwn(describedAbis, name) ? (name as DescribedContract) : undefined
}

/** Returns what a call does in words, then the calls that it makes; nothing for contracts of others. */
export function describeCall(
  { to, data }: { to: Address; data: Hex },
  known: KnownAddresses,
  depth: number = MAX_DEPTH,
): Described[] {
  const contract = contractAt(to, known)
  const layout = contract && functionsOf(contract).get(data.slice(0, 10))
  const args = layout && tryDecode(layout, `0x${data.slice(10)}`)
  if (contract === undefined || layout === undefined || args === undefined) return []
  const inner = depth === 0 ? [] : (innerCalls[layout.name]?.(args, to).slice(0, MAX_LISTED) ?? [])
  return [
    describe({ contract, address: to }, layout, args, known),
    ...inner.flatMap(call => describeCall(call as { to: Address; data: Hex }, known, depth - 1)),
  ]
}

function tryDecode({ inputs }: Layout, data: Hex): Arguments | undefined {
  try {
    const values = decodeAbiParameters(inputs, data)
    return Object.fromEntries(inputs.map((input, index) => [nameOf(input, index), values[index]]))
  } catch {
    return undefined
  }
}

const nameOf = ({ name }: AbiParameter, index: number): string => name || (UNNAMED[index] ?? `${index}`)

/** Returns an event in words; undefined for those of trades, which have their own, and of contracts of others. */
export function describeEvent(
  { address, topics, data }: { address: Address; topics: readonly Hex[]; data: Hex },
  known: KnownAddresses,
): Described | undefined {
  const contract = contractAt(address, known)
  const isOfTrade = contract === 'TradeRouter' && TRADE_TOPICS.includes(topics[0] ?? '0x')
  if (contract === undefined || isOfTrade) return undefined
  const abi: Abi = describedAbis[contract]
  try {
    const { eventName, args } = decodeEvent(abi, { topics, data })
    const item = abi.find(each => each.type === 'event' && each.name === eventName)
    if (item?.type !== 'event' || HIDDEN_EVENTS.includes(item.name)) return undefined
    return describe({ contract, address }, item, (args ?? {}) as Arguments, known)
  } catch {
    return undefined
  }
}

type Place = { contract: DescribedContract; address: Address }

function describe({ contract, address }: Place, { name, inputs }: Layout, args: Arguments, known: KnownAddresses) {
  const signed = capitalized(name)
  const title = titles[name] ?? (isSigned(signed) ? titleOf({ primaryType: signed }) : capitalized(inWords(name)))
  const vault = OF_VAULT.includes(contract) && known.nameOf(address)
  const place = vault ? [{ field: 'vault', name: 'vault', value: vault }] : []
  return { contract, name, title, terms: [...place, ...termsIn(contract, inputs, args, known)] }
}

const isSigned = (name: string): name is PrimaryType => Object.hasOwn(signingTypes, name)

/** Returns the arguments in words, those of structs next to the others, each field once. */
function termsIn(
  contract: DescribedContract,
  inputs: readonly AbiParameter[],
  args: Arguments,
  known: KnownAddresses,
): Described['terms'] {
  const flat = new Map<string, { type: string; value: unknown }>()
  const add = (parameters: readonly AbiParameter[], values: Arguments) => {
    for (const [index, parameter] of parameters.entries()) {
      const field = nameOf(parameter, index)
      if (HIDDEN.test(field)) continue
      if ('components' in parameter && parameter.type === 'tuple') add(parameter.components, values[field] as Arguments)
      else if (!flat.has(field)) flat.set(field, { type: parameter.type, value: values[field] })
    }
  }
  add(inputs, args)
  const message = Object.fromEntries([...flat].map(([field, { value }]) => [field, value]))
  return [...flat].flatMap(([field, { type, value }]) => {
    const words = wordsOf(contract, field, { type, value, message }, known)
    const name =
      (type === 'address[]' ? fieldNames[`${field}[]`] : fieldNames[field]) ??
      fields[field as FieldName]?.[0] ??
      inWords(field)
    return words === undefined ? [] : [{ field, name, value: words }]
  })
}

type Value = { type: string; value: unknown; message: Arguments }

function wordsOf(
  contract: DescribedContract,
  field: string,
  { type, value, message }: Value,
  known: KnownAddresses,
): string | undefined {
  if (Array.isArray(value)) {
    if (value.length === 0) return field === 'allowedTokens' ? 'every token of the vault' : undefined
    if (field === 'exits') return (value as ExitRule[]).map(rule => ruleText(toLadderRule(rule))).join('; ')
    const each = type.slice(0, -2)
    if (each === 'bytes' || each === 'tuple') return `${value.length}`
    const listed = value
      .slice(0, MAX_LISTED)
      .map(item => wordsOf(contract, field, { type: each, value: item, message }, known))
    return `${listed.join(', ')}${value.length > MAX_LISTED ? ` and ${value.length - MAX_LISTED} more` : ''}`
  }
  if (type === 'address') return known.nameOf(value as Address) ?? `${value}`
  if (type === 'bool') return value ? 'yes' : 'no'
  if (type === 'bytes') return `${size(value as Hex)} bytes`
  const format =
    ofContract[contract]?.[field] ??
    units.find(([name]) => !(field in fields) && name.test(field))?.[1] ??
    fields[field as FieldName]?.[1]
  if (format === undefined) return `${value}`
  const primaryType = 'maxTradeUsdc' in message ? 'SetMandate' : 'PlaceOrder'
  const words = format(`${value}`, { primaryType, message })
  return typeof words === 'object' ? words.join('; ') : words?.replace(/\d+(?=\.\d+ USDC)/g, grouped)
}

/** Groups the digits of an integer in threes, as pages do. */
const grouped = (digits: string) => digits.replace(/\B(?=(\d{3})+$)/g, ',')

const toLadderRule = ({ triggerBps, exitBps }: ExitRule) => ({ triggerBps: Number(triggerBps), exitBps })

/** Splits a name of an ABI into words: `maxPriceAge_` becomes `max price age`. */
const inWords = (name: string): string =>
  name
    .replace(/_+$/, '')
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .replace(/\busdc\b/g, 'USDC')
const capitalized = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`
