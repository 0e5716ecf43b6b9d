import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { HOUR_SECONDS } from '@agent-trading-service/protocol/leaderboard-formulas'
import { hourOf } from '@agent-trading-service/protocol/track-record'
import {
  EMPTY_VAULT,
  VAULT_WORTH_EVENTS,
  type VaultBook,
  vaultChangesOf,
  worthOf,
} from '@agent-trading-service/protocol/vault-book'
import { type PricedShare, performanceOf, performanceTimes } from '@agent-trading-service/protocol/vault-performance'
import type { Address } from 'viem'
import type { Block, TradingChain } from '../chain/configured-chain.ts'
import type { VaultWorth } from '../chain/equity-and-worth.ts'
import { selectPassRows, toPassRows } from './continue-records.ts'
import { onOneBranch } from './read-snapshot.ts'
import { readHeldPrices } from './tables/candles.ts'
import { quoted } from './tables/events.ts'
import { readBatch } from './tables/table.ts'
import { readContributions } from './tables/track-records.ts'
import { selectVaultBooks, toVaultBook } from './tables/vault-books.ts'

/** The worth of a vault at a time, in USDC base units; `totalShares` is in base units of the shares. */
export type SharePricePoint = {
  timestamp: bigint
  /** The last block that changed it. */
  blockNumber: bigint
  sharePrice: bigint
  totalAssets: bigint
  idleAssets: bigint
  totalShares: bigint
}

/** Returns the point of the chain's own figures at a block. */
export const sharePricePointAt = (
  { sharePrice, totalAssets, idleAssets, totalShares }: VaultWorth,
  { number, timestamp }: Block,
): SharePricePoint => ({ timestamp, blockNumber: number, sharePrice, totalAssets, idleAssets, totalShares })

/** Later than any row. */
const MAX_TIME = Number.MAX_SAFE_INTEGER

type BookState = { time: number; book: VaultBook; block: number }

/** Reads the worth at ends of hours, oldest first. Times before the vault's first event are left out. */
export async function readSharePricePoints(
  { db, chain }: { db: D1Database; chain: TradingChain },
  vault: Address,
  times: readonly number[],
): Promise<SharePricePoint[]> {
  const newest = times.at(-1)
  if (newest === undefined) return []
  const [stored, version, ...rows] = await readBatch(db, [
    selectVaultBooks(db, vault, times.map(hourOf)),
    db.prepare('SELECT coalesce(max(hour), 0) AS hour FROM track_records'),
    ...selectPassRows(db, { recordsAt: MAX_TIME, block: Number.MAX_SAFE_INTEGER, time: newest }),
  ])
  const books = new Map((stored ?? []).map(row => [Number(row.place), toVaultBook(row)] as const))
  const foldedTo = Number(version?.[0]?.hour ?? 0) * HOUR_SECONDS
  const { trades, events } = toPassRows(rows)
  const pending = vaultChangesOf(trades, events).filter(change => change.vault === vault)
  const states: BookState[] = []
  /** The book after the stored hours, with the changes up to the time before. */
  let tail: { book: VaultBook; block: number } | undefined
  for (const [place, time] of times.entries()) {
    const found = books.get(place)
    let current = found && { book: found.book, block: found.changedBlock }
    if (time >= foldedTo) {
      tail ??= current
      const later = pending.findIndex(({ timestamp }) => timestamp > time)
      for (const { apply, blockNumber } of pending.splice(0, later < 0 ? pending.length : later))
        tail = { book: apply(tail?.book ?? EMPTY_VAULT), block: Number(blockNumber) }
      current = tail
    }
    if (current !== undefined) states.push({ time, ...current })
  }
  const { priceAt, decimalsOf } = await readHeldPrices(db, chain, states)
  return states.map(({ time, book, block }) => {
    const blocks = (Object.keys(book.holdings) as Address[]).map(token => priceAt(token, time)?.block ?? 0)
    const worth = worthOf(book, { priceOf: token => priceAt(token, time)?.price, decimalsOf })
    return { timestamp: BigInt(time), blockNumber: BigInt(Math.max(block, ...blocks)), ...worth }
  })
}

/** The hour of a vault's first event: of the stored hours, or of the events as long as none of them is final. */
const FIRST_HOUR = `SELECT coalesce((SELECT min(hour) FROM vault_books WHERE vault = ?1),
  (SELECT min(timestamp) / ${HOUR_SECONDS} FROM events INDEXED BY events_contract
    WHERE contract = ?1 AND name IN (${quoted(VAULT_WORTH_EVENTS)}))) AS hour`

/**
 * Reads how a vault's share price has changed up to `newest`, from the hours that the index has, up to a time.
 * `rowsRead` counts what grows with the number of agents.
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
