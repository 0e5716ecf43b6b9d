import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Pins } from '@agent-trading-service/client'
import { findSymbol } from '@agent-trading-service/protocol/find-symbol'
import { isTicker, quoteText } from '@agent-trading-service/protocol/message-terms'
import { type Address, getAddress } from 'viem'
import { Failure } from '../failure.ts'
import { makePrivateFolder } from '../keys/private-mode.ts'
import { readTextFile } from '../text-file.ts'
import type { Reader } from './create-reader.ts'

/** What a service may have signed: learned at the first contact and held from then on. */
export type ServicePins = Pins & {
  /** Token addresses by symbol. A symbol that is listed later is added when it is first traded. */
  tokens: Readonly<Record<string, Address>>
}

/** Where the registration fee is paid. `network` is a CAIP-2 id; the payee is known once a fee was paid. */
export type FeePins = { network: string; asset?: Address | undefined; payTo?: Address | undefined }

/** Pins by the origin of the service. Entries of earlier versions lack tokens and fee. */
type StoredPins = Record<string, Pins & { fee?: FeePins }>

const pinsPath = (home: string) => join(home, 'deployments.json')

/**
 * Returns the chain, the contracts and the tokens that a service may have signed. The first contact stores what the
 * service names; later ones hold it to that, so a service that is taken over gets no signature for other contracts or
 * tokens.
 */
export async function pinsOf(home: string, url: string, reads: Reader): Promise<ServicePins> {
  const { origin } = new URL(url)
  const known = readStored(home)[origin]
  if (known) return withTokens(home, origin, known, reads)
  const { chainId, contracts } = await reads.getDiscovery()
  if (chainId === null || contracts.TradeRouter === undefined)
    throw new Failure('unavailable', `The service at ${url} names no chain or no router.`, {
      code: 'NOT_DEPLOYED',
      remedy: 'Check the URL, or ask the operator.',
    })
  const pins = {
    chainId,
    tradeRouter: contracts.TradeRouter,
    ...(contracts.AgentRegistry && { agentRegistry: contracts.AgentRegistry }),
    ...(contracts.OwnerControls && { ownerControls: contracts.OwnerControls }),
    ...(contracts.OrderBook && { orderBook: contracts.OrderBook }),
    ...(contracts.USDC && { fee: { network: `eip155:${chainId}`, asset: contracts.USDC } }),
  } as StoredPins[string]
  return withTokens(home, origin, pins, reads)
}

/**
 * Stores the tokens of the service, unless they are known. A symbol of several tokens, or that is no ticker, is left
 * out.
 */
async function withTokens(home: string, origin: string, pins: Pins, reads: Reader): Promise<ServicePins> {
  if (pins.tokens) return { ...pins, tokens: pins.tokens }
  const { tokens } = await reads.listTokens()
  const isUnique = (symbol: string) => tokens.filter(token => token.symbol === symbol).length === 1
  const unique = tokens.filter(({ symbol }) => isUnique(symbol) && isTicker(symbol))
  const learned = {
    ...pins,
    tokens: Object.fromEntries(unique.map(({ symbol, address }) => [symbol, getAddress(address)])),
  }
  store(home, { ...readStored(home), [origin]: learned })
  return learned
}

/** Returns what this machine holds a service to; undefined before the first contact. */
export const storedPinsOf = (home: string, url: string): Pins | undefined => readStored(home)[new URL(url).origin]

/** Throws `TOKEN_MISMATCH` if a symbol stands for another token than before, and remembers a symbol that is new. */
export function pinToken(home: string, url: string, symbol: string, given: string): void {
  assertTicker(symbol)
  const { origin } = new URL(url)
  const stored = readStored(home)
  const known = stored[origin]
  const pinned = tokenOfSymbol(known, symbol)
  const token = getAddress(given)
  if (pinned === undefined) {
    store(home, { ...stored, [origin]: { ...known, tokens: { ...known?.tokens, [symbol]: token } } })
    return
  }
  if (getAddress(pinned) === token) return
  throw new Failure('mismatch', `The token of ${symbol} is ${token}; expected ${pinned}. Nothing was signed.`, {
    code: 'TOKEN_MISMATCH',
    remedy: 'If the operator has replaced the token, delete it under `tokens` of the service in deployments.json.',
  })
}

/** Throws unless a symbol is a ticker: a service could say with words what nobody signs. */
function assertTicker(symbol: string): void {
  if (isTicker(symbol)) return
  throw new Failure('mismatch', `The symbol ${quoteText(symbol)} is no ticker. Nothing was signed.`, {
    code: 'SYMBOL_INVALID',
    remedy: 'Do not trade this token here before the operator has explained its name.',
  })
}

/** Returns the pinned tokens by symbol. Symbols come from the service, so they are no names of properties. */
export const symbolsOf = (pins: Pins | undefined): ReadonlyMap<string, Address> =>
  new Map(Object.entries(pins?.tokens ?? {}))

/** Returns the pinned token of a symbol in any case: with others for other spellings, a service could change it. */
export const tokenOfSymbol = (pins: Pins | undefined, symbol: string): Address | undefined =>
  findSymbol(
    [...symbolsOf(pins)].map(([name, address]) => ({ symbol: name, address })),
    symbol,
  )?.address

/** Returns the symbol of a pinned token. */
export function symbolOfToken(home: string, url: string, token: string): string | undefined {
  const pinned = symbolsOf(storedPinsOf(home, url))
  return [...pinned].find(([, address]) => address.toLowerCase() === token.toLowerCase())?.[0]
}

/** Returns where the fee of a service may be paid: on its own chain, unless the user has named another in the file. */
export function feePinsOf(home: string, url: string): FeePins {
  const { chainId, fee } = readStored(home)[new URL(url).origin] ?? {}
  return fee ?? { network: `eip155:${chainId}` }
}

/** Holds a service to where its fee is about to be paid. */
export function pinFee(home: string, url: string, { network, asset, payTo }: FeePins): void {
  const { origin } = new URL(url)
  const stored = readStored(home)
  store(home, { ...stored, [origin]: { ...stored[origin], fee: { network, asset, payTo } } })
}

/**
 * The contracts that a deployment may have gained after the first contact, by their names in its discovery document.
 */
const extensions = { ownerControls: 'OwnerControls', orderBook: 'OrderBook' } as const
export type Extension = keyof typeof extensions

/** Adds the contract of an extension, if it was not known at the first contact, and stores it like the others. */
export async function withExtension(home: string, url: string, reads: Reader, extension: Extension): Promise<Pins> {
  const { origin } = new URL(url)
  const stored = readStored(home)
  const address = (await reads.getDiscovery()).contracts[extensions[extension]]
  const known = { ...stored[origin], ...(address && { [extension]: getAddress(address) }) }
  store(home, { ...stored, [origin]: known })
  return known
}

/** Tells whether two URLs belong to one deployment, as far as this machine knows. */
export function isSameDeployment(home: string, one: string, other: string): boolean {
  const [first, second] = [one, other].map(url => new URL(url).origin) as [string, string]
  if (first === second) return true
  const { [first]: known, [second]: given } = readStored(home)
  return known !== undefined && known.chainId === given?.chainId && known.tradeRouter === given?.tradeRouter
}

function readStored(home: string): StoredPins {
  const path = pinsPath(home)
  if (!existsSync(path)) return {}
  const text = readTextFile(path)
  try {
    return JSON.parse(text) as StoredPins
  } catch {
    throw new Failure('mismatch', `${path} is not JSON, so the contracts cannot be compared. Nothing was signed.`, {
      code: 'PINS_INVALID',
      remedy: 'Correct the file, or delete it to learn the contracts again.',
    })
  }
}

function store(home: string, pins: StoredPins): void {
  makePrivateFolder(home)
  const temporary = `${pinsPath(home)}.${process.pid}`
  writeFileSync(temporary, `${JSON.stringify(pins, null, 2)}\n`, { mode: 0o600 })
  renameSync(temporary, pinsPath(home))
}
