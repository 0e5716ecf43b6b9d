import type { Address, Hex } from 'viem'
import type { MultiplierChange } from './price-basis.ts'

/** The event of a token whose multiplier changes, at once or later (ERC-8056). */
export const MULTIPLIER_UPDATED = 'UIMultiplierUpdated'
/** The event of a token that cancels a change; deployed tokens schedule the present multiplier instead. */
export const MULTIPLIER_UPDATE_CANCELLED = 'UIMultiplierUpdateCancelled'

/** An announcement of a token with its place; integers in `args` are digits, times are Unix seconds. */
type MultiplierEvent = {
  name: string
  contract: Address
  args: Record<string, unknown>
  timestamp: number
  block: number
  logIndex: number
  transactionHash: Hex
}

/**
 * A change of a token's multiplier and where it was announced. `replaced` says that a later announcement or a
 * cancellation came before it took effect, so it never did. Times are Unix seconds.
 */
export type CorporateAction = MultiplierChange & {
  token: Address
  announcedAt: number
  block: number
  logIndex: number
  transactionHash: Hex
  replaced: boolean
}

/**
 * Returns the corporate actions that the events of one token announce, oldest first. A repeated schedule is one action,
 * and one that changes nothing is none, though it replaces what was announced before it.
 */
export function corporateActionsOf(events: readonly MultiplierEvent[]): CorporateAction[] {
  const actions: CorporateAction[] = []
  for (const event of events) {
    const last = actions.at(-1)
    if (event.name === MULTIPLIER_UPDATE_CANCELLED) {
      if (last && last.effectiveAt > BigInt(event.timestamp)) actions[actions.length - 1] = { ...last, replaced: true }
      continue
    }
    const next = toAction(event)
    const isRepeated =
      last && !last.replaced && last.newMultiplier === next.newMultiplier && last.effectiveAt === next.effectiveAt
    if (isRepeated) continue
    if (last && last.effectiveAt > BigInt(next.announcedAt)) actions[actions.length - 1] = { ...last, replaced: true }
    actions.push(next)
  }
  return actions.filter(({ oldMultiplier, newMultiplier }) => oldMultiplier !== newMultiplier)
}

/** Both known variants of the event name these three values alike. */
function toAction({ contract, args, timestamp, block, logIndex, transactionHash }: MultiplierEvent): CorporateAction {
  const { oldMultiplier, newMultiplier, effectiveAtTimestamp } = args as Record<string, string>
  return {
    token: contract,
    oldMultiplier: BigInt(oldMultiplier ?? 0),
    newMultiplier: BigInt(newMultiplier ?? 0),
    effectiveAt: BigInt(effectiveAtTimestamp ?? 0),
    announcedAt: timestamp,
    block,
    logIndex,
    transactionHash,
    replaced: false,
  }
}
