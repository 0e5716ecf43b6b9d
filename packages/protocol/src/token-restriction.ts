import { type Address, maxUint256 } from 'viem'

/** What keeps a vault from selling a token; by the contracts' `Restriction` in this order, from 1. */
export const RESTRICTION_KINDS = ['tokenPaused', 'issuerPaused', 'blocked', 'shortOfLedger'] as const
export type RestrictionKind = (typeof RESTRICTION_KINDS)[number]
const SHORT_OF_LEDGER = RESTRICTION_KINDS.indexOf('shortOfLedger') + 1

/**
 * What the issuer of a token did that keeps a vault from selling it. `value` is the contracts' `Restriction`,
 * `account` the token, the blocked account or the vault, `transferable` what the vault could sell, in base units.
 */
export type TokenRestriction = { kind: RestrictionKind; value: bigint; account: Address; transferable: bigint }

const SENTENCES: Record<RestrictionKind, (account: Address) => string> = {
  tokenPaused: () => 'its issuer paused it',
  issuerPaused: () => 'its issuer paused all of its tokens',
  blocked: account => `its issuer blocked ${account}`,
  shortOfLedger: account => `${account} holds less of it than its ledger says, because the issuer burned some`,
}

/** Returns what an issuer did, as a clause. A `Restriction` of later contracts has no kind. */
export function restrictionText({ value, account }: Pick<TokenRestriction, 'value' | 'account'>): string {
  const kind = RESTRICTION_KINDS[Number(value) - 1]
  return kind === undefined ? `its issuer restricts ${account}` : SENTENCES[kind](account)
}

/** Returns the restriction of a token whose issuer blocks an account that the token passes. */
export const blockOf = (account: Address): TokenRestriction => ({
  kind: 'blocked',
  value: BigInt(RESTRICTION_KINDS.indexOf('blocked') + 1),
  account,
  transferable: 0n,
})

/** The amount to pass to `restrictionOf` so that it returns the vault's whole balance where nothing else restricts. */
export const WHOLE_BALANCE = maxUint256

/**
 * Returns the restriction from what `restrictionOf` returned for `WHOLE_BALANCE` and the vault's ledger; undefined if
 * the vault can sell all of its tokens, or in a deployment without the function.
 */
export function toTokenRestriction(
  answer: readonly [restriction: number, account: Address, transferable: bigint] | undefined,
  ledger = 0n,
): TokenRestriction | undefined {
  if (answer === undefined) return undefined
  const [value, account, transferable] = answer
  const kind = RESTRICTION_KINDS[value - 1]
  if (kind === undefined || (value === SHORT_OF_LEDGER && transferable >= ledger)) return undefined
  return { kind, value: BigInt(value), account, transferable }
}

/** Whether a restriction keeps a vault from buying the token: a purchase does not pass the swap adapter. */
export const preventsPurchase = (
  restriction: TokenRestriction | undefined,
  swapAdapter: Address | undefined,
): boolean => restriction !== undefined && restriction.kind !== 'shortOfLedger' && restriction.account !== swapAdapter

/** Whether a restriction keeps a vault from selling an amount of the token. */
export const preventsSale = (restriction: TokenRestriction | undefined, amount: bigint): boolean =>
  restriction !== undefined && restriction.transferable < amount
