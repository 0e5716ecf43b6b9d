import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { HOUR_SECONDS } from '@agent-trading-service/protocol/leaderboard-formulas'
import { VAULT_WORTH_EVENTS } from '@agent-trading-service/protocol/vault-book'
import { type PricedShare, performanceOf, performanceTimes } from '@agent-trading-service/protocol/vault-performance'
import type { Address } from 'viem'
import type { TradingChain } from '../chain/configured-chain.ts'
import { onOneBranch } from './read-snapshot.ts'
import { readSharePricePoints } from './read-vault-worth.ts'
import { quoted } from './tables/events.ts'
import { readContributions } from './tables/track-records.ts'

/** The hour of a vault's first event: of the stored hours, or of the events as long as none of them is final. */
const FIRST_HOUR = `SELECT coalesce((SELECT min(hour) FROM vault_books WHERE vault = ?1),
  (SELECT min(timestamp) / ${HOUR_SECONDS} FROM events INDEXED BY events_contract
    WHERE contract = ?1 AND name IN (${quoted(VAULT_WORTH_EVENTS)}))) AS hour`

/**
 * Reads how a vault's share price has changed up to `newest`, from the hours that the index has, up to a time. `rowsRead` counts
 * what grows with the number of agents.
 */
export async function readVaultPerformance(
  { db, chain }: { db: D1Database; chain: TradingChain },
  vault: Address,
  newest: PricedShare,
  reached: number,
) {
  const points = await onOneBranch(db, async () => {
    const first = await db.prepare(FIRST_HOUR).bind(vault).first<number | null>('hour')
    const times = performanceTimes(Number(newest.timestamp), first ?? undefined).filter(time => time < reached)
    return readSharePricePoints({ db, chain }, vault, times)
  })
  const { hour, contributions, rowsRead } = await readContributions(db, vault, CapitalMode.Real)
  const performance = {
    ...performanceOf(points, newest),
    contributions: contributions.map(({ agentId, pnl }) => ({ agentId: `${agentId}`, pnlUsdc: `${pnl}` })),
    contributionsAt: hour === undefined ? null : `${hour * HOUR_SECONDS}`,
  }
  return { performance, rowsRead }
}
