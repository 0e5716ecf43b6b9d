import { type Address, type Hex, parseAbi } from 'viem'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import { type PriceQuote, type RoundData, strictestMaxAge, toPriceQuote } from '../protocol/price-quote.ts'
import type { TrackConfig } from '../protocol/track-config.ts'
import { type Block, type Chain, maybe, read } from './chain.ts'

export const erc20Abi = parseAbi([
  'function symbol() view returns (string)',
  'function name() view returns (string)',
  'function decimals() view returns (uint8)',
  'function asset() view returns (address)',
  'function totalAssets() view returns (uint256)',
])

const vaultAbi = [...mandateVaultAbi, ...erc20Abi] as const

/** A token of the registry; symbol and name are the token contract's own. */
export type Token = {
  address: Address
  symbol: string
  name: string
  decimals: number
  listed: boolean
  active: boolean
}

/** A registered vault; `vaultName` is the bytes32 that holds its slug, amounts are base units of the asset. */
export type Vault = {
  address: Address
  vaultName: Hex
  asset: Address
  totalAssets: bigint
  idleAssets: bigint
  maxPriceAge: bigint
  tradingPaused: boolean
  tracks: TrackConfig[]
}

/** Every vault and every token of the deployment, with the allowlists and the oracle's quotes, at one block. */
export type Market = {
  vaults: Vault[]
  tokens: Token[]
  /**
   * Quote of a token, judged by the window of the oracle and of the vault; without a vault by the strictest window of
   * the vaults that allow it.
   */
  quoteIn: (token: Address, vault?: Vault) => PriceQuote
  allows: (vault: Address, token: Address) => boolean
}

export const TRACK_IDS = [0n, 1n, 2n] as const
// How many entries beyond the expected ones are asked for on the chance that the registries have grown.
const SPARE = 8

/** What the registries held when last asked: append-only lists, so only their length and entries need checking. */
const lastSeen = new WeakMap<object, { vaults: Address[]; tokens: Address[] }>()

/**
 * Reads the market in one round trip when the registries hold what is configured or was seen last, in two when they
 * have grown. Throws CHAIN_UNREACHABLE.
 */
export async function readMarket(chain: Chain): Promise<{ block: Block; market: Market }> {
  const expected = lastSeen.get(chain.contracts) ?? {
    vaults: Object.values(chain.vaults),
    tokens: Object.values(chain.tokens),
  }
  const first = await readLists(chain, expected)
  if (sameSet(first.lists, expected)) return first
  let { lists } = first
  for (;;) {
    const next = await readLists(chain, lists)
    if (sameSet(next.lists, lists)) {
      lastSeen.set(chain.contracts, lists)
      return next
    }
    ;({ lists } = next)
  }
}

type Lists = { vaults: Address[]; tokens: Address[] }

const sameSet = (a: Lists, b: Lists) =>
  a.vaults.length === b.vaults.length &&
  a.tokens.length === b.tokens.length &&
  a.vaults.every(vault => b.vaults.includes(vault)) &&
  a.tokens.every(token => b.tokens.includes(token))

async function readLists(chain: Chain, expected: Lists) {
  const vaultRegistry = { address: chain.contracts.VaultTrackRegistry, abi: vaultTrackRegistryAbi } as const
  const tokenRegistry = { address: chain.contracts.TokenRegistry, abi: tokenRegistryAbi } as const
  const oracle = { address: chain.contracts.PriceOracle, abi: priceOracleAbi } as const
  const indexes = (length: number) => Array.from({ length: length + SPARE }, (_, index) => BigInt(index))

  const vaultSlots = indexes(expected.vaults.length)
  const tokenSlots = indexes(expected.tokens.length)
  const calls: unknown[] = []
  // Each adder says where its results will stand.
  const add = (...added: unknown[]) => calls.push(...added) - added.length
  const counts = add({ ...vaultRegistry, functionName: 'vaultCount' }, { ...tokenRegistry, functionName: 'tokenCount' })
  const vaultsAt = add(...vaultSlots.map(index => ({ ...vaultRegistry, functionName: 'vaultAt', args: [index] })))
  const tokensAt = add(...tokenSlots.map(index => ({ ...tokenRegistry, functionName: 'tokenAt', args: [index] })))
  const vaultRows = expected.vaults.map(address => {
    const vault = { address, abi: vaultAbi } as const
    return add(
      { ...vault, functionName: 'vaultName' },
      { ...vault, functionName: 'asset' },
      { ...vault, functionName: 'totalAssets' },
      { ...vault, functionName: 'idleAssets' },
      { ...vault, functionName: 'maxPriceAge' },
      { ...vault, functionName: 'tradingPaused' },
      ...TRACK_IDS.map(track => ({ ...vaultRegistry, functionName: 'getVaultTrackConfig', args: [address, track] })),
      ...expected.tokens.map(token => ({ ...vault, functionName: 'isAllowedToken', args: [token] })),
    )
  })
  const tokenRows = expected.tokens.map(address => {
    const token = { address, abi: erc20Abi } as const
    return add(
      { ...token, functionName: 'symbol' },
      { ...token, functionName: 'name' },
      { ...token, functionName: 'decimals' },
      { ...tokenRegistry, functionName: 'isTokenListed', args: [address] },
      { ...tokenRegistry, functionName: 'isTokenActive', args: [address] },
      { ...oracle, functionName: 'latestRoundData', args: [address] },
      { ...oracle, functionName: 'maxAgeOf', args: [address] },
    )
  })

  const { block, results } = await read(chain, calls)
  const value = <T>(index: number) => maybe(results[index] as never) as T | undefined
  const listed = (from: number, slots: bigint[], count: bigint) =>
    slots.flatMap((_, index) => (BigInt(index) < count ? [value<Address>(from + index) ?? []].flat() : []))
  const lists = {
    vaults: listed(vaultsAt, vaultSlots, value<bigint>(counts) ?? 0n),
    tokens: listed(tokensAt, tokenSlots, value<bigint>(counts + 1) ?? 0n),
  }

  const allowed = new Set<string>()
  const vaults = expected.vaults.flatMap((address, index): Vault[] => {
    const row = vaultRows[index] ?? 0
    const vaultName = value<Hex>(row)
    const asset = value<Address>(row + 1)
    if (vaultName === undefined || asset === undefined) return []
    const tracks = TRACK_IDS.flatMap((_, track) => value<TrackConfig>(row + 6 + track) ?? [])
    for (const [position, token] of expected.tokens.entries())
      if (value<boolean>(row + 6 + TRACK_IDS.length + position)) allowed.add(`${address}${token}`)
    return [
      {
        address,
        vaultName,
        asset,
        totalAssets: value<bigint>(row + 2) ?? 0n,
        idleAssets: value<bigint>(row + 3) ?? 0n,
        maxPriceAge: value<bigint>(row + 4) ?? 0n,
        tradingPaused: value<boolean>(row + 5) ?? false,
        tracks: tracks.filter(({ vault }) => vault === address),
      },
    ]
  })
  const allows = (vault: Address, token: Address) => allowed.has(`${vault}${token}`)
  const rounds = new Map<Address, { round: RoundData | undefined; maxAge: bigint }>()
  const quoteIn = (token: Address, vault?: Vault): PriceQuote => {
    const { round, maxAge = 0n } = rounds.get(token) ?? {}
    const judging = vault ? [vault] : vaults.filter(({ address }) => allows(address, token))
    return toPriceQuote(round, strictestMaxAge([maxAge, ...judging.map(({ maxPriceAge }) => maxPriceAge)]), block)
  }
  const tokens = expected.tokens.map((address, index): Token => {
    const row = tokenRows[index] ?? 0
    rounds.set(address, { round: value<RoundData>(row + 5), maxAge: value<bigint>(row + 6) ?? 0n })
    return {
      address,
      symbol: value<string>(row) ?? address,
      name: value<string>(row + 1) ?? '',
      decimals: value<number>(row + 2) ?? 18,
      listed: value<boolean>(row + 3) ?? false,
      active: value<boolean>(row + 4) ?? false,
    }
  })
  return { block, lists, market: { vaults, tokens, quoteIn, allows } }
}
