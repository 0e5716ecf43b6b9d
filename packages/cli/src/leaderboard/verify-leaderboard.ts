import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { lastAtOrBefore } from '@agent-trading-service/protocol/last-at-or-before'
import type { Score } from '@agent-trading-service/protocol/leaderboard-formulas'
import type { Period } from '@agent-trading-service/protocol/leaderboard-period'
import {
  type Ordering,
  orderings,
  type StandingFigures,
  standingFiguresOf,
} from '@agent-trading-service/protocol/standing-figures'
import { continueRecord, type SampleMarket } from '@agent-trading-service/protocol/track-record'
import type { Trade } from '@agent-trading-service/protocol/trade-events'
import { type Fact, type LoggedHistory, readLoggedHistory, type VerifiedDeployment } from './logged-history.ts'

// Recomputes a leaderboard from nothing but the logs of a chain (and the decimals of its tokens), and compares it with
// a served one. It shares the formulas with the service, and none of its database, indexer or incremental records.

/** What `GET /leaderboard` returns, as far as it is compared. */
export type ServedLeaderboard = {
  period: Period
  periodStart: string
  sort: Ordering
  minTrades: number
  entries: ServedEntry[]
  nextCursor: string | null
  asOf: { blockNumber: string }
}
type ServedEntry = Record<string, unknown> & {
  rank: number
  agentId: string
  owner: string
  vault: string
  track: number
  capital: 'real' | 'simulated'
  sampleBlock: string
}
type Selection = { vault?: string; track?: number; capital?: string }

/**
 * Compares all pages of a served leaderboard with the logs of the chain. Returns how many entries were compared, and
 * one sentence per difference. `selection` are the filters that the leaderboard was requested with; an agent may be
 * missing that traded in the last `graceSeconds` only.
 */
export async function verifyLeaderboard(
  deployment: VerifiedDeployment,
  served: readonly ServedLeaderboard[],
  selection: Selection = {},
  graceSeconds = 0,
): Promise<{ entries: number; differences: string[] }> {
  const [first] = served
  if (first === undefined) throw new Error('There is no leaderboard to verify.')
  const last = served.reduce(
    (newest, { asOf }) => (BigInt(asOf.blockNumber) > newest ? BigInt(asOf.blockNumber) : newest),
    0n,
  )
  const history = await readLoggedHistory(deployment, last)
  const entries = served.flatMap(page => page.entries)
  const differences: string[] = []
  const period = { period: first.period, start: Number(first.periodStart) }
  let previous: [value: number, agentId: number, mode: number] | undefined
  for (const [index, entry] of entries.entries()) {
    const name = `agent ${entry.agentId} (${entry.capital})`
    const mode = entry.capital === 'real' ? CapitalMode.Real : CapitalMode.Simulated
    const figures = await recompute(history, entry.agentId, mode, { ...period, block: BigInt(entry.sampleBlock) })
    if (figures === undefined) {
      differences.push(`${name} is served, but has no trades in the logs`)
      continue
    }
    const expected = { ...wireFigures(figures), ...agentAt(history, entry.agentId, last), rank: index + 1 }
    for (const [field, value] of Object.entries(expected))
      if (`${entry[field]}` !== `${value}`)
        differences.push(`${name}: ${field} is ${entry[field]}, the logs say ${value}`)
    const place: typeof previous = [orderings[first.sort](figures), Number(entry.agentId), mode]
    if (previous !== undefined && compare(previous, place) >= 0) differences.push(`${name} is ranked too low`)
    previous = place
  }
  const listed = new Set(entries.map(({ agentId, capital }) => `${agentId} ${capital}`))
  for (const [agentId, mode] of recordsOf(history)) {
    const capital = mode === CapitalMode.Real ? 'real' : 'simulated'
    if (listed.has(`${agentId} ${capital}`) || !isSelected(selection, capital, agentAt(history, agentId, last)))
      continue
    if ((await history.timeOf(last)) - firstTradeOf(history, agentId, mode) < graceSeconds) continue
    const figures = await recompute(history, agentId, mode, { ...period, block: last })
    if (figures !== undefined && figures.trades >= first.minTrades)
      differences.push(`agent ${agentId} (${capital}) is not served, but has ${figures.trades} trades in the logs`)
  }
  return { entries: entries.length, differences }
}

const isSelected = ({ vault, track, capital }: Selection, mode: string, agent: ReturnType<typeof agentAt>): boolean =>
  (vault === undefined || agent.vault?.toLowerCase() === vault.toLowerCase()) &&
  (track === undefined || agent.track === track) &&
  (capital === undefined || capital === mode)

function compare(a: readonly number[], b: readonly number[]): number {
  const index = a.findIndex((value, index) => value !== b[index])
  return index < 0 ? 0 : (a[index] ?? 0) - (b[index] ?? 0)
}

const wireFigures = ({ pnl, gaps, ...figures }: StandingFigures) => ({
  ...figures,
  pnlUsdc: pnl,
  gaps: gaps.map(([from, to]) => `${from}/${to}`),
})

type PeriodAt = { period: Period; start: number; block: bigint }

/** Returns the figures of an agent in a period as of a block; undefined if it has none. */
async function recompute(
  history: LoggedHistory,
  agentId: string,
  mode: number,
  period: PeriodAt,
): Promise<StandingFigures | undefined> {
  const score = await scoreOf(history, agentId, mode, period)
  return score && standingFiguresOf(score)
}

/** Returns the score of an agent in a period as of a block; undefined if it has none. */
export async function scoreOf(
  history: LoggedHistory,
  agentId: string,
  mode: number,
  { period, start, block }: PeriodAt,
): Promise<Score | undefined> {
  const executions = history.trades.filter(
    trade => `${trade.agentId}` === agentId && modeOf(trade) === mode && trade.blockNumber <= block,
  )
  const market = marketOf(history, agentId, block)
  const scores = continueRecord(undefined, executions, await history.timeOf(block), market)
  return scores.find(({ period: name, score }) => name === period && score.start === start)?.score
}

/** Returns the prices and the agent's allocation caps that the logs have, up to a block if one is given. */
export function marketOf({ prices, caps, decimals }: LoggedHistory, agentId: string, block?: bigint): SampleMarket {
  const isKnown = (fact: Fact) => block === undefined || fact.block <= Number(block)
  const known = prices.filter(isKnown)
  const pricesOf = new Map([...decimals.keys()].map(token => [token, known.filter(price => price.token === token)]))
  const ownCaps = caps.filter(fact => fact.agentId === agentId && isKnown(fact))
  return {
    priceAt: (token, time) => lastAtOrBefore(pricesOf.get(token) ?? [], time),
    decimalsOf: token => decimals.get(token) ?? 18,
    capAt: time => lastAtOrBefore(ownCaps, time)?.cap ?? 0n,
  }
}

export const modeOf = ({ capitalMode = CapitalMode.Real }: Trade): number => capitalMode

const recordsOf = ({ trades }: LoggedHistory): [agentId: string, mode: number][] => [
  ...new Map(
    trades.map(trade => [`${trade.agentId} ${modeOf(trade)}`, [`${trade.agentId}`, modeOf(trade)] as [string, number]]),
  ).values(),
]

const firstTradeOf = ({ trades }: LoggedHistory, agentId: string, mode: number): number =>
  Number(trades.find(trade => `${trade.agentId}` === agentId && modeOf(trade) === mode)?.timestamp ?? 0n)

/** Returns owner, vault and track of an agent at a block. */
function agentAt({ agents }: LoggedHistory, agentId: string, block: bigint) {
  const facts = agents.filter(fact => fact.agentId === agentId && fact.block <= Number(block))
  return {
    owner: facts.findLast(({ owner }) => owner !== undefined)?.owner,
    vault: facts.findLast(({ vault }) => vault !== undefined)?.vault,
    track: facts.findLast(({ track }) => track !== undefined)?.track,
  }
}
