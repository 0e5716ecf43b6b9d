import {
  type CorporateAction,
  corporateActionsOf,
  MULTIPLIER_UPDATE_CANCELLED,
  MULTIPLIER_UPDATED,
} from '@agent-trading-service/protocol/corporate-actions'
import type { MultiplierChange } from '@agent-trading-service/protocol/price-basis'
import type { Address } from 'viem'
import type { Block } from '../chain/configured-chain.ts'
import type { SnapshotFacts, SnapshotReader } from './read-snapshot.ts'
import { quoted, toContractEvents } from './tables/events.ts'

/** More than a token has in decades. */
const MAX_ACTIONS = 500

const SELECT = `SELECT * FROM events INDEXED BY events_contract WHERE contract = ?1 AND name IN (${quoted([MULTIPLIER_UPDATED, MULTIPLIER_UPDATE_CANCELLED])})
  ORDER BY block DESC, log_index DESC LIMIT ${MAX_ACTIONS}`

/** Reads the corporate actions of a token, oldest first. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
export async function readCorporateActions(
  snapshots: SnapshotReader,
  token: Address,
  head: Block | Promise<Block>,
): Promise<{ actions: CorporateAction[] } & SnapshotFacts> {
  const { results, facts } = await snapshots.readSnapshot(head, db => [db.prepare(SELECT).bind(token)])
  return { actions: corporateActionsOf(toContractEvents(results[0]).toReversed()), ...facts }
}

/** Reads the last announced change of each token that has one. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
export async function readLastMultiplierChanges(
  snapshots: SnapshotReader,
  tokens: readonly Address[],
  head: Block | Promise<Block>,
): Promise<Map<Address, MultiplierChange>> {
  const { results } = await snapshots.readSnapshot(head, db => tokens.map(token => db.prepare(SELECT).bind(token)))
  return new Map(
    tokens.flatMap((token, index) => {
      const actions = corporateActionsOf(toContractEvents(results[index]).toReversed())
      const last = actions.findLast(({ replaced }) => !replaced)
      return last ? [[token, last] as const] : []
    }),
  )
}
