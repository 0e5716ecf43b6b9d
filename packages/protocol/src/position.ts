import type { Address } from 'viem'
import type { ExitRule } from './exit-rule.ts'
import type { PriceQuote } from './oracle-price.ts'

/** A position with its exit ladder. `exitRules` before `nextRuleIndex` have fired, the others are pending. */
export type Position = {
  positionId: bigint
  agentId: bigint
  vault: Address
  token: Address
  /** The token's base units. */
  tokenAmount: bigint
  /** USDC base units per whole token. */
  entryPriceUsdc: bigint
  usdcCostBasis: bigint
  maxSlippageBps: number
  /** A `PositionStatus`. */
  status: number
  nextRuleIndex: number
  /** Unix seconds. */
  openedAt: bigint
  realizedPnlUsdc: bigint
  exitRules: readonly ExitRule[]
  /** How many shares one of its tokens stands for, with 18 decimals; undefined if that is not known. */
  multiplier?: bigint | undefined
  /** Mark to market at the oracle price; undefined if the position is closed or the price is stale. */
  unrealizedPnlUsdc: bigint | undefined
  /** A `CapitalMode`; undefined in a deployment without the extension. */
  capitalMode: number | undefined
}

/** Returns the rules of a position that have not fired. */
export const pendingRules = ({ exitRules, nextRuleIndex }: Pick<Position, 'exitRules' | 'nextRuleIndex'>): ExitRule[] =>
  exitRules.slice(nextRuleIndex)

/**
 * An exit that was recorded as due and not filled, or not completely. All 0 if there is none. Times are Unix seconds.
 */
export type DueExit = {
  since: number
  /** When it was last recorded. */
  seenAt: number
  ruleIndex: number
  /** What the rule has still to sell after a partial fill, in the token's base units; 0 before the first fill. */
  tokensLeft: bigint
}

/** Whether a rule has sold a part of its share. The router goes on with it, whatever the price is then. */
export const isExitInProgress = ({ dueExit }: { dueExit: DueExit | undefined }): boolean =>
  dueExit !== undefined && dueExit.tokensLeft > 0n

/** The part of a position that decides about its exits. */
export type WatchedPosition = Omit<Position, 'openedAt' | 'realizedPnlUsdc' | 'unrealizedPnlUsdc' | 'capitalMode'> & {
  /** Undefined in a deployment without the extension. */
  dueExit: DueExit | undefined
  /** Since when the agent's owner closes all its positions, in Unix seconds; 0 while it does not. */
  closingSince: bigint
}

/** Whether the agent's owner has the whole position sold, whatever its ladder says. */
export const isOwnerClosing = ({ closingSince }: { closingSince: bigint }): boolean => closingSince > 0n

/** The market of a position's token, as far as it decides about exits. */
export type ExitMarket = { quote: PriceQuote; decimals: number; tradingPaused: boolean }
