import type { Address } from 'viem'
import { isExecution, isPurchase } from './agent-book.ts'
import { costBpsOf, executionCost } from './execution-cost.ts'
import { type Score, statisticsOf, toSafeNumber } from './leaderboard-formulas.ts'
import type { Trade } from './trade-events.ts'

// The formulas of docs/statistics.md. The service adds the totals up in its database and a verifier from the logs; what
// follows from them is computed here, for both.

const DAY_SECONDS = 86_400
const BPS = 10_000n
/** How many days with sales are listed, the newest. */
export const MAX_PNL_DAYS = 366

/** A position that stands out: its PnL in USDC base units, or how many seconds it was held. */
export type Extreme = { positionId: bigint; value: bigint }

/** What the executions of an agent in a period and capital mode add up to. Amounts are USDC base units. */
export type TradeTotals = {
  /** Positions whose last tokens were sold in the period. */
  closed: {
    count: number
    wins: number
    losses: number
    profit: bigint
    /** Not negative. */
    loss: bigint
    /** Seconds from the opening to the close. */
    held: bigint
    longest: Extreme | undefined
    best: Extreme | undefined
    worst: Extreme | undefined
  }
  /** By token, in the order of their addresses. */
  tokens: TokenTotals[]
  /** The realized PnL of UTC days with sales, by their first second, oldest first. */
  days: { day: number; realized: bigint }[]
}

export type TokenTotals = {
  token: Address
  trades: number
  realized: bigint
  /** What the executions whose oracle price is known cost against it, and the oracle's value of their tokens. */
  cost: bigint
  value: bigint
}

/** Adds up an agent's trades, oldest first, from a time in Unix seconds on. `openedAt` has the time of each opening. */
export function totalsOf(
  trades: readonly Trade[],
  from: number,
  openedAt: (positionId: bigint) => bigint | undefined,
): TradeTotals {
  const executions = trades.filter(trade => isExecution(trade) && Number(trade.timestamp) >= from)
  const tokens = new Map<Address, TokenTotals>()
  const days = new Map<number, bigint>()
  const closings: { positionId: bigint; pnl: bigint; held: bigint }[] = []
  for (const trade of executions) {
    const { token, timestamp, positionId, realizedPnlUsdc = 0n, positionPnlUsdc: pnl, oracleValueUsdc } = trade
    const sum = tokens.get(token) ?? { token, trades: 0, realized: 0n, cost: 0n, value: 0n }
    tokens.set(token, {
      token,
      trades: sum.trades + 1,
      realized: sum.realized + realizedPnlUsdc,
      cost: sum.cost + (oracleValueUsdc === undefined ? 0n : executionCost(trade, oracleValueUsdc)),
      value: sum.value + (oracleValueUsdc ?? 0n),
    })
    const day = Number(timestamp) - (Number(timestamp) % DAY_SECONDS)
    if (!isPurchase(trade)) days.set(day, (days.get(day) ?? 0n) + realizedPnlUsdc)
    if (pnl !== undefined) closings.push({ positionId, pnl, held: timestamp - (openedAt(positionId) ?? timestamp) })
  }
  const byId = closings.toSorted((one, other) => (one.positionId < other.positionId ? -1 : 1))
  /** Of positions that are equal, the oldest. */
  const extreme = (measure: (closing: (typeof closings)[number]) => bigint): Extreme | undefined => {
    const found = byId.reduce<(typeof closings)[number] | undefined>(
      (best, next) => (best === undefined || measure(next) > measure(best) ? next : best),
      undefined,
    )
    return found && { positionId: found.positionId, value: measure(found) }
  }
  const worst = extreme(({ pnl }) => -pnl)
  return {
    closed: {
      count: closings.length,
      wins: closings.filter(({ pnl }) => pnl > 0n).length,
      losses: closings.filter(({ pnl }) => pnl < 0n).length,
      profit: closings.reduce((sum, { pnl }) => (pnl > 0n ? sum + pnl : sum), 0n),
      loss: closings.reduce((sum, { pnl }) => (pnl < 0n ? sum - pnl : sum), 0n),
      held: closings.reduce((sum, { held }) => sum + held, 0n),
      longest: extreme(({ held }) => held),
      best: extreme(({ pnl }) => pnl),
      worst: worst && { ...worst, value: -worst.value },
    },
    tokens: [...tokens.values()].sort((one, other) => (one.token < other.token ? -1 : 1)),
    days: [...days].map(([day, realized]) => ({ day, realized })).slice(-MAX_PNL_DAYS),
  }
}

/**
 * Returns the published statistics of totals and of the score of the same period and capital mode, without symbols;
 * undefined if the agent has none in it. Amounts are digits of USDC base units.
 */
export function agentStatistics({ closed, tokens, days }: TradeTotals, score: Score | undefined) {
  const { count, wins, losses, profit, loss, held, longest, best, worst } = closed
  const sumOf = (amount: 'realized' | 'cost' | 'value') => tokens.reduce((sum, token) => sum + token[amount], 0n)
  const [cost, value] = [sumOf('cost'), sumOf('value')]
  const position = (extreme: Extreme | undefined) =>
    extreme === undefined ? null : { positionId: `${extreme.positionId}`, pnlUsdc: `${extreme.value}` }
  return {
    pnlUsdc: `${score?.pnl ?? 0n}`,
    realizedPnlUsdc: `${sumOf('realized')}`,
    trades: tokens.reduce((sum, { trades }) => sum + trades, 0),
    closedPositions: count,
    wins,
    losses,
    winRateBps: count === 0 ? null : Math.trunc((wins * Number(BPS)) / count),
    grossProfitUsdc: `${profit}`,
    grossLossUsdc: `${loss}`,
    profitFactorMilli: loss === 0n ? null : toSafeNumber((profit * 1_000n) / loss),
    averageHoldingSeconds: count === 0 ? null : Number(held / BigInt(count)),
    longestHolding:
      longest === undefined ? null : { positionId: `${longest.positionId}`, seconds: Number(longest.value) },
    best: position(best),
    worst: position(worst),
    ...statisticsOf(score),
    executionCost: { costUsdc: `${cost}`, oracleValueUsdc: `${value}`, costBps: costBpsOf(cost, value) },
    pnlByDay: days.map(({ day, realized }) => ({ day: `${day}`, realizedPnlUsdc: `${realized}` })),
    pnlByToken: tokens.map(({ token, trades, realized, cost, value }) => ({
      token,
      trades,
      realizedPnlUsdc: `${realized}`,
      costUsdc: `${cost}`,
      costBps: costBpsOf(cost, value),
    })),
  }
}
