import { powerNames, powers, type RoleName, roleHash } from '@agent-trading-service/protocol/roles-of-powers'
import { type AbiFunction, type Hex, isHex, type PublicClient } from 'viem'
import type { AddressBook, AdminCall } from './admin-call.ts'

/** A value that a call changes. */
export type Change = { value: string; before: string; after: string }

/** What a call does, in words, and what it changes. */
export type CallDescription = { call: string; sentence: string; changes: Change[] }

/** A getter that shows what a setter changes: its arguments are the first ones of the call. */
type Getter = { getter: string; args?: number; after: (args: readonly unknown[]) => unknown }

const argument =
  (index: number) =>
  (args: readonly unknown[]): unknown =>
    args[index]
const shows = (getter: string, index = 0, args = 0): Getter => ({ getter, args, after: argument(index) })

/** The getters of each function whose effect can be shown before it happens. */
const getters: Record<string, Getter[]> = {
  setKeeperBounty: [shows('keeperBountyBps', 0), shows('maxKeeperBounty', 1)],
  setSwapAdapter: [shows('swapAdapter')],
  setTradePolicy: [shows('tradePolicy')],
  setAgentRegistry: [shows('agentRegistry')],
  setTradeRouter: [shows('tradeRouter')],
  setPriceOracle: [shows('priceOracle')],
  setPromotionCriteria: [shows('promotionCriteria')],
  setOrderBook: [shows('orderBook')],
  setRequestQueue: [shows('requestQueue')],
  setOwnerControls: [shows('ownerControls')],
  setRegistrationFee: [shows('getRegistrationFee')],
  setRegistrationFeeRelayer: [shows('registrationFeeRelayer')],
  setTreasury: [shows('treasury')],
  setMaxPriceAge: [shows('maxPriceAge')],
  setLiquidityPolicy: [shows('liquidityPolicy')],
  setFees: [shows('depositFeeBps', 0), shows('withdrawFeeBps', 1), shows('feeRecipient', 2)],
  setTokenWrittenOff: [shows('isTokenWrittenOff', 1, 1)],
  setTokenActive: [shows('isTokenActive', 1, 1)],
  setTradingPaused: [shows('tradingPaused')],
  setLiquidityPaused: [shows('liquidityPaused')],
  pause: [{ getter: 'paused', after: () => true }],
  unpause: [{ getter: 'paused', after: () => false }],
  setAssetConfig: [shows('assetConfig', 1, 1)],
  setSecondOpinion: [shows('secondOpinionOf', 1, 1)],
  setSource: [shows('sourceOf', 1, 1)],
  setVerifier: [shows('verifier')],
  setLimits: [shows('limitsOf', 2, 2)],
  setTwapRequired: [shows('isTwapRequired', 1, 1)],
  setVaultTrackConfig: [shows('getVaultTrackConfig', 2, 2)],
  setVaultTrackCapitalMode: [shows('capitalModeOf', 2, 2)],
  setPool: [shows('poolFeeOf', 1, 1)],
  updateDelay: [shows('getMinDelay')],
  setAgentStatus: [shows('statusOf', 1, 1)],
  grantRole: [{ getter: 'hasRole', args: 2, after: () => true }],
  revokeRole: [{ getter: 'hasRole', args: 2, after: () => false }],
  beginDefaultAdminTransfer: [shows('pendingDefaultAdmin')],
  setPrice: [shows('peekPrice', 1, 1)],
  forcePrice: [shows('peekPrice', 1, 1)],
}

const AGENT_STATUSES = ['Draft', 'Active', 'Suspended', 'Failed', 'Graduated', 'Exited']
const roleNames = new Map<Hex, RoleName>(
  powerNames.flatMap(power => powers[power].map(({ role }): [Hex, RoleName] => [roleHash(role), role])),
)

/** Describes a call with the present values that it changes. A value that cannot be read is left out. */
export async function describeCall(client: PublicClient, book: AddressBook, call: AdminCall): Promise<CallDescription> {
  const { contract, functionName, args } = call
  const inputs = functionOf(call)?.inputs ?? []
  const shown = args.map((value, index) => `${inputs[index]?.name || index}: ${show(book, value, functionName)}`)
  const changes = await Promise.all((getters[functionName] ?? []).map(getter => changesOf(client, book, call, getter)))
  return {
    call: `${contract}.${functionName}(${args.map(value => show(book, value)).join(', ')})`,
    sentence: `${contract}: ${inWords(functionName)}${shown.length > 0 ? ` (${shown.join(', ')})` : ''}`,
    changes: changes.flat(),
  }
}

async function changesOf(
  client: PublicClient,
  book: AddressBook,
  { address, abi, functionName, args }: AdminCall,
  { getter, args: count = 0, after }: Getter,
): Promise<Change[]> {
  const read = { address, abi, functionName: getter, args: args.slice(0, count) }
  const before = await client.readContract(read).catch(() => undefined)
  if (before === undefined) return []
  // peekPrice returns several values, of which the first is set.
  const present = Array.isArray(before) ? before[0] : before
  return differences(book, getter, present, after(args), functionName)
}

/** Returns the fields that differ, of structs field by field. */
function differences(book: AddressBook, name: string, before: unknown, after: unknown, functionName: string): Change[] {
  if (isRecord(before) && isRecord(after))
    return Object.entries(after).flatMap(([field, value]) =>
      differences(book, field, before[field], value, functionName),
    )
  const [was, becomes] = [show(book, before, functionName), show(book, after, functionName)]
  return was === becomes ? [] : [{ value: name, before: was, after: becomes }]
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Shows a value: addresses and roles by their names, statuses in words. */
export function show(book: AddressBook, value: unknown, functionName = ''): string {
  if (Array.isArray(value)) return `[${value.map(each => show(book, each)).join(', ')}]`
  if (isRecord(value))
    return `{${Object.entries(value)
      .map(([name, each]) => `${name}: ${show(book, each)}`)
      .join(', ')}}`
  if (isHex(value)) return nameOf(book, value) ?? roleNames.get(value) ?? value
  if (functionName === 'setAgentStatus' && typeof value === 'number') return AGENT_STATUSES[value] ?? `${value}`
  return `${value}`
}

const nameOf = ({ contracts, vaults, tokens }: AddressBook, address: string): string | undefined =>
  Object.entries({ ...contracts, ...vaults, ...tokens }).find(
    ([, known]) => known.toLowerCase() === address.toLowerCase(),
  )?.[0]

const inWords = (functionName: string) => functionName.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)

const functionOf = ({ abi, functionName, args }: AdminCall): AbiFunction | undefined =>
  abi.find(
    (item): item is AbiFunction =>
      item.type === 'function' && item.name === functionName && item.inputs.length === args.length,
  )
