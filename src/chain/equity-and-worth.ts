import type { Address } from 'viem'

/** The value of an agent's allocation, in USDC base units; PnL is signed. */
export type Equity = {
  cap: bigint
  /** The part of the cap that is in open positions. */
  used: bigint
  /** The highest realized equity after a trade; never below `current`. */
  peak: bigint
  /** Cap plus realized and unrealized PnL. */
  current: bigint
  drawdownBps: bigint
  realized: bigint
  unrealized: bigint
  openCount: number
  /** Tokens without a fresh price; they count at their last known price. */
  staleTokens: readonly Address[]
}

/** The value of a vault, in base units of its asset; `totalShares` is in base units of the shares. */
export type VaultWorth = {
  totalAssets: bigint
  idleAssets: bigint
  totalShares: bigint
  /** The value of one whole share. */
  sharePrice: bigint
}

/** A value of the service reader. `isKnown` is false if a contract call failed. */
type ReaderValue<Value> = Omit<Value, 'openCount'> & { isKnown: boolean; openCount?: bigint }

/** Returns the reader's equity, or undefined if the contracts do not know it. */
export const toEquity = ({ isKnown, openCount, ...equity }: ReaderValue<Equity>): Equity | undefined =>
  isKnown ? { ...equity, openCount: Number(openCount) } : undefined

/** Returns the reader's worth, or undefined if the address is not a vault. */
export const toVaultWorth = ({ isKnown, ...worth }: ReaderValue<VaultWorth>): VaultWorth | undefined =>
  isKnown ? worth : undefined
