import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { HOUR_SECONDS } from '@agent-trading-service/protocol/leaderboard-formulas'
import {
  apyPpmOf,
  maxDrawdownOf,
  type PricedShare,
  returnPpmOf,
} from '@agent-trading-service/protocol/vault-performance'
import type { Address } from 'viem'
import type { TradingChain } from '../chain/configured-chain.ts'
import { onOneBranch } from './read-index-to-head.ts'
import { readSharePricePoints } from './read-vault-worth.ts'
import { readContributions } from './tables/track-records.ts'

const DAY_SECONDS = 86_400
const DRAWDOWN_DAYS = 90

/** Reads how a vault's share price has changed up to `newest`, from the hours that the index has, up to a time. */
export async function readVaultPerformance(
  { db, chain }: { db: D1Database; chain: TradingChain },
  vault: Address,
  newest: PricedShare,
  reached: number,
) {
  const now = Number(newest.timestamp)
  const lastSecondBefore = (time: number, seconds: number) => Math.floor(time / seconds) * seconds - 1
  const daysAgo = (days: number) => lastSecondBefore(now - days * DAY_SECONDS, HOUR_SECONDS)
  const days = Array.from(
    { length: DRAWDOWN_DAYS },
    (_, index) => lastSecondBefore(now, DAY_SECONDS) - index * DAY_SECONDS,
  )
  const points = await onOneBranch(db, async () => {
    const first = await db
      .prepare('SELECT min(hour) AS hour FROM vault_books WHERE vault = ?1')
      .bind(vault)
      .first<number | null>('hour')
    const begin = first === null ? [] : [(first + 1) * HOUR_SECONDS - 1]
    const times = [...new Set([...begin, daysAgo(7), daysAgo(30), daysAgo(90), ...days])]
    const known = times.filter(time => time >= 0 && time < reached && time < now).sort((one, other) => one - other)
    return readSharePricePoints({ db, chain }, vault, known)
  })
  const { hour, contributions } = await readContributions(db, vault, CapitalMode.Real)
  const withShares = points.filter(({ totalShares }) => totalShares > 0n)
  const at = (time: number) => withShares.find(({ timestamp }) => timestamp === BigInt(time))
  const isDay = new Set(days)
  return {
    return7dPpm: returnPpmOf(at(daysAgo(7)), newest),
    return30dPpm: returnPpmOf(at(daysAgo(30)), newest),
    return90dPpm: returnPpmOf(at(daysAgo(90)), newest),
    returnPpm: returnPpmOf(withShares[0], newest),
    apyPpm: apyPpmOf(at(daysAgo(30)), newest),
    contributions: contributions.map(({ agentId, pnl }) => ({ agentId: `${agentId}`, pnlUsdc: `${pnl}` })),
    contributionsAt: hour === undefined ? null : `${hour * HOUR_SECONDS}`,
    maxDrawdown90d: maxDrawdownOf([...withShares.filter(({ timestamp }) => isDay.has(Number(timestamp))), newest]),
  }
}
