import type { MultiplierChange } from '@agent-trading-service/protocol/price-basis'
import type { Address, Hex } from 'viem'
import type { Block } from '../chain/configured-chain.ts'
import type { SnapshotFacts, SnapshotReader } from './read-snapshot.ts'
import { type ContractEvent, type EventRow, quoted, toContractEvent } from './tables/events.ts'

/** The event of a token whose multiplier changes, at once or later. */
export const MULTIPLIER_UPDATED = 'UIMultiplierUpdated'

/**
 * A change of a token's multiplier and where it was announced. `replaced` says that a later announcement came before it
 * took effect, so it never did. Times are Unix seconds.
 */
export type CorporateAction = MultiplierChange & {
  token: Address
  announcedAt: number
  block: number
  logIndex: number
  transactionHash: Hex
  replaced: boolean
}

/** More than a token has in decades. */
const MAX_ACTIONS = 500

const SELECT = `SELECT * FROM events INDEXED BY events_contract WHERE contract = ?1 AND name IN (${quoted([MULTIPLIER_UPDATED])})
  ORDER BY block DESC, log_index DESC LIMIT ${MAX_ACTIONS}`

/** Reads the corporate actions of a token, oldest first. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
export async function readCorporateActions(
  snapshots: SnapshotReader,
  token: Address,
  head: Block | Promise<Block>,
): Promise<{ actions: CorporateAction[] } & SnapshotFacts> {
  const { results, facts } = await snapshots.readSnapshot(head, db => [db.prepare(SELECT).bind(token)])
  return { actions: corporateActionsOf(eventsIn(results[0])), ...facts }
}

/** Reads the last change that was announced of each token; tokens without one are left out. Throws HISTORY_UNAVAILABLE. */
export async function readLastMultiplierChanges(
  snapshots: SnapshotReader,
  tokens: readonly Address[],
  head: Block | Promise<Block>,
): Promise<Map<Address, MultiplierChange>> {
  const { results } = await snapshots.readSnapshot(head, db => tokens.map(token => db.prepare(SELECT).bind(token)))
  return new Map(
    tokens.flatMap((token, index) => {
      const last = corporateActionsOf(eventsIn(results[index])).findLast(({ replaced }) => !replaced)
      return last ? [[token, last] as const] : []
    }),
  )
}

const eventsIn = (result: D1Result<Record<string, unknown>> | undefined): ContractEvent[] =>
  ((result?.results ?? []) as EventRow[]).map(toContractEvent).toReversed()

/**
 * Returns the corporate actions that the events of one token announce, oldest first. A repeated schedule is one action,
 * and one that changes nothing is none, though it replaces what was announced before it.
 */
export function corporateActionsOf(events: readonly ContractEvent[]): CorporateAction[] {
  const actions: CorporateAction[] = []
  for (const event of events) {
    const next = toAction(event)
    const last = actions.at(-1)
    if (last && last.newMultiplier === next.newMultiplier && last.effectiveAt === next.effectiveAt) continue
    if (last && last.effectiveAt > BigInt(next.announcedAt)) actions[actions.length - 1] = { ...last, replaced: true }
    actions.push(next)
  }
  return actions.filter(({ oldMultiplier, newMultiplier }) => oldMultiplier !== newMultiplier)
}

/** Returns the action that an event announces. */
export function toAction({
  contract,
  args,
  timestamp,
  block,
  logIndex,
  transactionHash,
}: ContractEvent): CorporateAction {
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
