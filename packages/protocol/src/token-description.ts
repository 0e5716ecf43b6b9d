import { type Address, getAddress, type Hex, isAddressEqual, zeroAddress } from 'viem'

/** What a token is; by the contracts' enum in this order. */
export const TOKEN_KINDS = ['plain', 'scaledUI', 'wrapper'] as const
export type TokenKind = (typeof TOKEN_KINDS)[number]

/** The hours in which a token's share is priced; by the contracts' enum in this order. */
export const LISTING_SESSIONS = ['us-equity-24-5', 'us-equity-regular', 'continuous'] as const
export type ListingSession = (typeof LISTING_SESSIONS)[number]

/** What an issuer may do to a token and its holders, by bit; `timelocked` says that all of it waits for a timelock. */
export const ISSUER_POWERS = ['pause', 'block', 'burn', 'upgrade', 'timelocked'] as const
export type IssuerPower = (typeof ISSUER_POWERS)[number]

/** What the registry records of a token. `issuer` is the beacon of the token's proxy; undefined where it has none. */
export type TokenDescription = {
  kind: TokenKind
  session: ListingSession
  powers: IssuerPower[]
  issuer: Address | undefined
}

/** `ITokenRegistry.TokenDescription`. */
export type EncodedTokenDescription = { kind: number; session: number; powers: number; issuer: Address }

/** The description of a token that was never described. */
export const PLAIN_TOKEN: TokenDescription = { kind: 'plain', session: 'us-equity-24-5', powers: [], issuer: undefined }

/** Returns the description as the registry takes it. */
export const encodeTokenDescription = ({
  kind,
  session,
  powers,
  issuer,
}: TokenDescription): EncodedTokenDescription => ({
  kind: TOKEN_KINDS.indexOf(kind),
  session: LISTING_SESSIONS.indexOf(session),
  powers: powers.reduce((bits, power) => bits | (1 << ISSUER_POWERS.indexOf(power)), 0),
  issuer: issuer ?? zeroAddress,
})

/** Returns the description from the registry's struct; a kind or session of a later contract counts as the first. */
export const decodeTokenDescription = ({
  kind,
  session,
  powers,
  issuer,
}: EncodedTokenDescription): TokenDescription => ({
  kind: TOKEN_KINDS[kind] ?? 'plain',
  session: LISTING_SESSIONS[session] ?? 'us-equity-24-5',
  powers: ISSUER_POWERS.filter((_, bit) => powers & (1 << bit)),
  issuer: issuer === zeroAddress ? undefined : issuer,
})

/** The storage slot in which a proxy keeps its beacon: keccak256("eip1967.proxy.beacon") - 1 (ERC-1967). */
export const BEACON_SLOT = '0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50'

/**
 * Returns why a token is not the one that its description says: its beacon, read from `BEACON_SLOT`, is not the issuer.
 * Symbol, name and `uiMultiplier()` can be imitated; a beacon cannot.
 */
export function impostorProblem(
  { symbol, address }: { symbol: string; address: Address },
  issuer: Address | undefined,
  slot: Hex | undefined,
): string | undefined {
  const beacon = getAddress(`0x${(slot ?? '0x').slice(2).padStart(64, '0').slice(-40)}`)
  if (isAddressEqual(beacon, issuer ?? zeroAddress)) return undefined
  const found = beacon === zeroAddress ? 'has no beacon' : `has the beacon ${beacon}`
  return issuer === undefined
    ? `${symbol}: ${address} ${found}, and no issuer is described; name the beacon as its issuer if you trust it`
    : `${symbol}: ${address} ${found}, not the issuer ${issuer}; it is an impostor`
}
