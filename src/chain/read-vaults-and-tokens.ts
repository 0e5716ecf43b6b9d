import { Track } from '@agent-trading-service/protocol/enums'
import { type PriceQuote, strictestMaxAge, toPriceQuote } from '@agent-trading-service/protocol/oracle-price'
import type { TrackConfig } from '@agent-trading-service/protocol/vault-track-config'
import { type Address, type Hex, parseAbi } from 'viem'
import { nowAt } from '../clock.ts'
import { type PriceSource, sourceOf } from './carried-prices.ts'
import type { Block, Chain } from './configured-chain.ts'
import { mandateVault, priceOracle, tokenRegistry, vaultTrackRegistry } from './contracts.ts'
import { call, optional, readTree, untrusted, type ValuesOf } from './read-tree.ts'
import { multiplierCalls, multiplierIn, type TokenFacts, tokenFactCalls, toTokenFacts } from './token-facts.ts'

export const tokenMetadataAbi = parseAbi([
  'function symbol() view returns (string)',
  'function name() view returns (string)',
  'function decimals() view returns (uint8)',
])

/** A token of the registry with its facts; symbol and name are the token contract's own. */
export type Token = TokenFacts & {
  address: Address
  symbol: string
  name: string
  decimals: number
  listed: boolean
  active: boolean
  /** Where its price comes from. */
  source: PriceSource
}

/** A registered vault. `vaultName` is the bytes32 with its slug; amounts are base units of the asset. */
export type Vault = {
  address: Address
  vaultName: Hex
  asset: Address
  totalAssets: bigint
  idleAssets: bigint
  /** Seconds; 0 is no limit. */
  maxPriceAge: bigint
  tradingPaused: boolean
  tracks: TrackConfig[]
  /** Undefined for a vault without the extension. */
  liquidityTerms: LiquidityTerms | undefined
}

/** What deposits and withdrawals cost, and how long new shares are locked. */
export type LiquidityTerms = {
  depositFeeBps: bigint
  withdrawFeeBps: bigint
  holdingSeconds: number
  paused: boolean
}

/** Every registered vault and token, with allowlists and oracle quotes, at one block. */
export type VaultsAndTokens = {
  vaults: Vault[]
  tokens: Token[]
  /**
   * Returns the quote of a token. The maximum age is the stricter one of oracle and vault; without a vault, the
   * strictest one of the vaults that allow the token.
   */
  quoteIn: (token: Address, vault?: Vault) => PriceQuote
  /** Returns the maximum age of a token's price in seconds, as `quoteIn` chooses it; 0 is no limit. */
  maxAgeIn: (token: Address, vault?: Vault) => bigint
  allows: (vault: Address, token: Address) => boolean
}

const TRACK_IDS = Object.values(Track).map(BigInt)
/** Number of entries beyond the expected ones to read, in case the registries have grown. */
const SPARE_ENTRIES = 8

type RegistryEntries = { vaults: Address[]; tokens: Address[] }

/**
 * Reads every registered vault and token, in one round trip if the registries have the configured or last seen entries,
 * else in two or more. Throws CHAIN_UNREACHABLE.
 */
export async function readVaultsAndTokens(chain: Chain): Promise<{ block: Block; registered: VaultsAndTokens }> {
  let expected: RegistryEntries = chain.memory.registryEntries ?? {
    vaults: Object.values(chain.vaults),
    tokens: Object.values(chain.tokens),
  }
  for (;;) {
    const { entries, ...read } = await readRegistries(chain, expected)
    if (haveSameEntries(entries, expected)) return read
    expected = entries
    chain.memory.registryEntries = entries
    chain.memory.priceSources.readAt = 0 // of the entries that were not known
  }
}

/**
 * How long what the owners of the contracts decide (lists, names, allowlists, maximum ages) is taken for the present
 * when only prices are asked for.
 */
const SETTINGS_MS = 15_000

/**
 * Reads the prices and multipliers of every registered token with a tenth of what `readVaultsAndTokens` sends: all
 * else is as of a read of at most `SETTINGS_MS` ago, unless a token has been listed since. Throws CHAIN_UNREACHABLE.
 */
export async function readPrices(chain: Chain): ReturnType<typeof readVaultsAndTokens> {
  const { settings } = chain.memory
  if (settings === undefined || Date.now() - settings.readAt >= SETTINGS_MS) return readVaultsAndTokens(chain)
  const known = settings.values as RegistryValues
  const { block, values } = await readTree(chain, settings.priceCalls as ReturnType<typeof priceCalls>)
  if (values.tokenCount !== BigInt(known.tokens.length)) return readVaultsAndTokens(chain)
  const tokens = known.tokens.map((token, index) => {
    const { round, ...multiplier } = values.tokens[index] ?? { round: undefined }
    return { ...token, round, facts: { ...token.facts, ...multiplier }, source: sourceOf(chain, token.address) }
  })
  return { block, registered: toVaultsAndTokens(block, { ...known, tokens }) }
}

/** The calls that read how many tokens there are, and the price and the multiplier of the known ones. */
const priceCalls = (chain: Chain, tokens: readonly TokenValues[]) => ({
  tokenCount: optional(call(tokenRegistry(chain), 'tokenCount', [])),
  tokens: tokens.map(({ address }) => ({
    round: optional(call(priceOracle(chain), 'latestRoundData', [address])),
    ...multiplierCalls(chain, address),
  })),
})

const haveSameEntries = (a: RegistryEntries, b: RegistryEntries) =>
  a.vaults.length === b.vaults.length &&
  a.tokens.length === b.tokens.length &&
  a.vaults.every(vault => b.vaults.includes(vault)) &&
  a.tokens.every(token => b.tokens.includes(token))

export const vaultListCalls = (
  chain: Chain,
  expected: readonly Address[] = chain.memory.registryEntries?.vaults ?? Object.values(chain.vaults),
) => ({
  vaultCount: optional(call(vaultTrackRegistry(chain), 'vaultCount', [])),
  vaultEntries: indexesOf(expected).map(index => optional(call(vaultTrackRegistry(chain), 'vaultAt', [index]))),
})

/**
 * Returns the registered vaults from the values of `vaultListCalls`. Reads them if there are more. Throws
 * CHAIN_UNREACHABLE.
 */
export async function listedVaults(
  chain: Chain,
  { vaultCount = 0n, vaultEntries }: { vaultCount: bigint | undefined; vaultEntries: readonly (Address | undefined)[] },
): Promise<Address[]> {
  if (vaultCount <= vaultEntries.length) return firstEntries(vaultEntries, vaultCount)
  const { registered } = await readVaultsAndTokens(chain)
  return registered.vaults.map(({ address }) => address)
}

const registryCalls = (chain: Chain, expected: RegistryEntries) => ({
  ...vaultListCalls(chain, expected.vaults),
  tokenCount: optional(call(tokenRegistry(chain), 'tokenCount', [])),
  tokenEntries: indexesOf(expected.tokens).map(index => optional(call(tokenRegistry(chain), 'tokenAt', [index]))),
  vaults: expected.vaults.map(vault => vaultCalls(chain, vault, expected.tokens)),
  tokens: expected.tokens.map(token => tokenCalls(chain, token)),
})

async function readRegistries(chain: Chain, expected: RegistryEntries) {
  const { memory } = chain
  if (!memory.registryCalls || !haveSameEntries(memory.registryCalls.of, expected))
    memory.registryCalls = { of: expected, calls: registryCalls(chain, expected) }
  const { block, values } = await readTree(chain, memory.registryCalls.calls as ReturnType<typeof registryCalls>)
  const entries: RegistryEntries = {
    vaults: firstEntries(values.vaultEntries, values.vaultCount),
    tokens: firstEntries(values.tokenEntries, values.tokenCount),
  }
  const { symbols, decimals } = chain.memory
  // A hostile token keeps the name and the unit that it was known by.
  const tokens = values.tokens.map(token => ({
    ...token,
    symbol: token.symbol ?? symbols.get(token.address),
    decimals: token.decimals ?? decimals.get(token.address),
    source: sourceOf(chain, token.address),
  }))
  memory.registryHasMultipliers = tokens.some(({ facts }) => facts.registered !== undefined)
  const known: RegistryValues = { ...values, tokens }
  memory.settings = { readAt: Date.now(), values: known, priceCalls: priceCalls(chain, tokens) }
  return { block, entries, registered: toVaultsAndTokens(block, known) }
}

const indexesOf = (expected: readonly Address[]) =>
  Array.from({ length: expected.length + SPARE_ENTRIES }, (_, index) => BigInt(index))

const firstEntries = (entries: readonly (Address | undefined)[], count = 0n): Address[] =>
  entries.slice(0, Number(count)).filter(entry => entry !== undefined)

function vaultCalls(chain: Chain, address: Address, tokens: readonly Address[]) {
  const vault = mandateVault(address)
  return {
    address,
    vaultName: optional(call(vault, 'vaultName', [])),
    asset: optional(call(vault, 'asset', [])),
    totalAssets: optional(call(vault, 'totalAssets', [])),
    idleAssets: optional(call(vault, 'idleAssets', [])),
    maxPriceAge: optional(call(vault, 'maxPriceAge', [])),
    tradingPaused: optional(call(vault, 'tradingPaused', [])),
    depositFeeBps: optional(call(vault, 'depositFeeBps', [])),
    withdrawFeeBps: optional(call(vault, 'withdrawFeeBps', [])),
    liquidityPolicy: optional(call(vault, 'liquidityPolicy', [])),
    liquidityPaused: optional(call(vault, 'liquidityPaused', [])),
    tracks: TRACK_IDS.map(track => optional(call(vaultTrackRegistry(chain), 'getVaultTrackConfig', [address, track]))),
    allowlist: tokens.map(token => ({ token, isAllowed: optional(call(vault, 'isAllowedToken', [token])) })),
  }
}

function tokenCalls(chain: Chain, address: Address) {
  const token = { address, abi: tokenMetadataAbi }
  return {
    address,
    symbol: untrusted(optional(call(token, 'symbol', []))),
    name: untrusted(optional(call(token, 'name', []))),
    decimals: untrusted(optional(call(token, 'decimals', []))),
    listed: optional(call(tokenRegistry(chain), 'isTokenListed', [address])),
    active: optional(call(tokenRegistry(chain), 'isTokenActive', [address])),
    round: optional(call(priceOracle(chain), 'latestRoundData', [address])),
    maxAge: optional(call(priceOracle(chain), 'maxAgeOf', [address])),
    facts: tokenFactCalls(chain, address),
  }
}

type VaultValues = ValuesOf<ReturnType<typeof vaultCalls>>
type TokenValues = ValuesOf<ReturnType<typeof tokenCalls>> & Pick<Token, 'source'>

type RegistryValues = { vaults: readonly VaultValues[]; tokens: readonly TokenValues[] }

function toVaultsAndTokens(block: Block, values: RegistryValues): VaultsAndTokens {
  const allowed = new Set(
    values.vaults.flatMap(({ address, allowlist }) =>
      allowlist.filter(({ isAllowed }) => isAllowed).map(({ token }) => `${address}${token}`),
    ),
  )
  const allows = (vault: Address, token: Address) => allowed.has(`${vault}${token}`)
  const vaults = values.vaults.flatMap(vault => toVault(vault) ?? [])
  const prices = new Map(
    values.tokens.map(({ address, round, maxAge = 0n, facts, source }) => [
      address,
      { round, maxAge, effectiveAt: multiplierIn(facts).effectiveAt, source: source.kind },
    ]),
  )
  const at = nowAt(block)
  const maxAgeIn: VaultsAndTokens['maxAgeIn'] = (token, vault) => {
    const holders = vault ? [vault] : vaults.filter(({ address }) => allows(address, token))
    return strictestMaxAge([prices.get(token)?.maxAge ?? 0n, ...holders.map(({ maxPriceAge }) => maxPriceAge)])
  }
  return {
    vaults,
    tokens: values.tokens.map(token => toToken(token, at)),
    maxAgeIn,
    quoteIn(token, vault) {
      const { round, effectiveAt, source } = prices.get(token) ?? {}
      return toPriceQuote(round, maxAgeIn(token, vault), { at, effectiveAt, source })
    },
    allows,
  }
}

/** Returns the vault, or undefined if the contract is not a vault. */
function toVault({
  address,
  vaultName,
  asset,
  totalAssets = 0n,
  idleAssets = 0n,
  maxPriceAge = 0n,
  tradingPaused = false,
  tracks,
  ...liquidity
}: VaultValues): Vault | undefined {
  if (vaultName === undefined || asset === undefined) return undefined
  return {
    address,
    vaultName,
    asset,
    totalAssets,
    idleAssets,
    maxPriceAge,
    tradingPaused,
    // An unset track has an empty config.
    tracks: tracks.filter(track => track !== undefined).filter(track => track.vault === address),
    liquidityTerms: toLiquidityTerms(liquidity),
  }
}

type LiquidityValues = Pick<VaultValues, 'depositFeeBps' | 'withdrawFeeBps' | 'liquidityPolicy' | 'liquidityPaused'>

function toLiquidityTerms({
  depositFeeBps,
  withdrawFeeBps,
  liquidityPolicy,
  liquidityPaused = false,
}: LiquidityValues): LiquidityTerms | undefined {
  if (depositFeeBps === undefined || withdrawFeeBps === undefined || liquidityPolicy === undefined) return undefined
  return { depositFeeBps, withdrawFeeBps, holdingSeconds: liquidityPolicy.holdingTime, paused: liquidityPaused }
}

const toToken = (
  { address, symbol = address, name = '', decimals = 18, listed = false, active = false, source, facts }: TokenValues,
  at: bigint,
): Token => ({ ...toTokenFacts(facts, at), address, symbol, name, decimals, listed, active, source })
