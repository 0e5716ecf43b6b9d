import { isExitInProgress, isOwnerClosing, type WatchedPosition } from '@agent-trading-service/protocol/position'
import type { Address, Hex } from 'viem'
import type { Evaluation } from './last-evaluation.ts'
import type { ExitOutcome } from './last-exit-result.ts'
import { type PriceTriggers, priceTriggersOf } from './trigger-prices-of-position.ts'

/** What the keeper stores about one position. `closedAt` and `nextTryAt` are milliseconds of the service's clock. */
export type KeeperEntry = {
  positionId: bigint
  agentId: bigint
  vault: Address
  token: Address
  /** The prices that may fire a rule. Only the position on chain decides whether they do. */
  triggers: PriceTriggers
  /** Whether the position is sold at any price, because its owner closes it or a rule has sold a part of its share. */
  sellsAtAnyPrice: boolean
  /**
   * The position's fingerprint when it was read; undefined if there was none, or if the row's checksum does not match.
   */
  fingerprint: Hex | undefined
  /** How many rules of the ladder the keeper knows to have fired. */
  firedRules: number
  closedAt: number | null
  /** The oracle round at which the router reported that nothing is due. */
  triedRoundId: string | null
  /** Attempts in a row that did not complete the exit. */
  failures: number
  nextTryAt: number
  /** What the keeper saw when the last exit was executed. */
  evaluation: Evaluation | undefined
  outcome: ExitOutcome | undefined
}

/** The retry state of an exit that was not tried yet, or whose last try completed it. */
export const NOT_TRIED = { failures: 0, nextTryAt: 0, triedRoundId: null }

/** Returns the entry of a position that the keeper sees for the first time. `decimals` are those of its token. */
export const newEntry = (position: WatchedPosition, decimals: number, fingerprint?: Hex): KeeperEntry => ({
  ...NOT_TRIED,
  positionId: position.positionId,
  agentId: position.agentId,
  vault: position.vault,
  token: position.token,
  triggers: priceTriggersOf(position, decimals),
  sellsAtAnyPrice: isSoldAtAnyPrice(position),
  fingerprint,
  firedRules: position.nextRuleIndex,
  closedAt: null,
  evaluation: undefined,
  outcome: undefined,
})

const isSoldAtAnyPrice = (position: WatchedPosition): boolean => isOwnerClosing(position) || isExitInProgress(position)

/** Returns the entry updated from a read position; the same object if nothing changed. */
export function refreshedEntry(
  entry: KeeperEntry,
  position: WatchedPosition,
  decimals: number,
  read?: Hex,
): KeeperEntry {
  // Until an exit is recorded, the row differs from the chain.
  const fingerprint = entry.firedRules === position.nextRuleIndex ? read : undefined
  const { agentId, vault, token, triggers, sellsAtAnyPrice } = newEntry(position, decimals)
  const isSame =
    entry.agentId === agentId &&
    entry.vault === vault &&
    entry.token === token &&
    entry.triggers.below === triggers.below &&
    entry.triggers.above === triggers.above &&
    entry.sellsAtAnyPrice === sellsAtAnyPrice &&
    (entry.fingerprint === fingerprint || fingerprint === undefined)
  return isSame ? entry : { ...entry, agentId, vault, token, triggers, sellsAtAnyPrice, fingerprint }
}
