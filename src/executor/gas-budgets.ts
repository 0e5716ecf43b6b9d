import type { Hex } from 'viem'
import type { GasBudgetName, GasBudgets as Limits } from '../config/config.ts'
import { logEvent } from '../log.ts'
import { count } from '../metrics/recorder.ts'
import { EXIT_KINDS, type GasShortage, type IntentKind, type RelayRequest } from './relay-types.ts'
import type { GasLevel, GasLevelTable } from './store.ts'

export type GasBudgets = ReturnType<typeof createGasBudgets>

/** The remaining gas of an account's budgets. */
export type GasQuota = Record<'minute' | 'day', { limitGas: number; leftGas: number }> & { budget: GasBudgetName }

/** The budgets that a request would use, and the one without room for a typical request of its kind. */
export type GasBudgetStatus = { quotas: GasQuota[]; shortage?: GasShortage }

/** The part of a request that decides which budgets it uses. */
export type GasUse = Pick<RelayRequest, 'kind' | 'group' | 'spenders' | 'closesPosition'>

/** The gas that a transaction used, and the accounts that pay for it. */
export type GasCharge = { spenders: readonly string[]; gas: number; isReverted: boolean }

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const WINDOW_MS = { minute: MINUTE_MS, day: DAY_MS }
/** The typical gas of each kind, to check before the simulation whether a budget has room. No part of it is for L1. */
export const TYPICAL_GAS: Partial<Record<IntentKind, number>> = {
  open: 550_000,
  add: 400_000,
  reduce: 350_000,
  ladder: 200_000,
}
const LOG_INTERVAL_MS = 60_000
/** Above this number of accounts in memory, those unused for a day are evicted. */
const MAX_LEVELS = 10_000
/** A request needs at least this much gas in its budgets before it is simulated: no call of an agent uses less. */
const MIN_GAS = 50_000
/** Kinds that only the service itself sends. Strangers' spending must not block them. */
const UNLIMITED_KINDS: readonly IntentKind[] = ['prices', 'exit']

/**
 * Keeps the gas budgets of the lane's account. A budget is a leaky bucket: it holds the gas of a minute (a day) and
 * refills evenly. A request needs room for its gas limit in the budgets of all its spenders and in the lane's own; its
 * receipt then charges the gas used. A reduction or an owner's message without room uses the exit reserve of its group,
 * which nothing else uses. Levels are stored in SQLite and cached in memory.
 */
export function createGasBudgets(table: GasLevelTable, limits: Limits) {
  const levels = new Map(table.recent())
  const reservations = new Map<Hex, { spenders: readonly string[]; gas: number }>()
  const reservedGas = new Map<string, number>()
  const loggedAt = new Map<GasBudgetName, number>()

  /** Returns an account's current level, without the gas in flight. */
  function levelOf(account: string): GasLevel {
    const now = Date.now()
    const level = levels.get(account)
    if (level === undefined) return { minute: 0, day: 0, at: now }
    const { perMinute, perDay } = limits[budgetOf(account)]
    const elapsed = Math.max(0, now - level.at)
    return {
      minute: Math.max(0, level.minute - (perMinute * elapsed) / MINUTE_MS),
      day: Math.max(0, level.day - (perDay * elapsed) / DAY_MS),
      at: now,
    }
  }

  const limitOf = (account: string, window: 'minute' | 'day') =>
    window === 'minute' ? limits[budgetOf(account)].perMinute : limits[budgetOf(account)].perDay

  const leftOf = (account: string, window: 'minute' | 'day') =>
    Math.floor(limitOf(account, window) - levelOf(account)[window] - (reservedGas.get(account) ?? 0))

  /** Returns the shortage with the longest wait; undefined if every account has room for the gas. */
  function shortageOf(
    accounts: readonly string[],
    gas: number,
    windows: readonly ('minute' | 'day')[] = ['minute', 'day'],
  ): GasShortage | undefined {
    let worst: GasShortage | undefined
    for (const account of accounts)
      for (const window of windows) {
        const limitGas = limitOf(account, window)
        const left = leftOf(account, window)
        const missing = Math.min(gas, limitGas) - left
        if (missing <= 0) continue
        const waitMs = limitGas === 0 ? WINDOW_MS[window] : (missing / limitGas) * WINDOW_MS[window]
        const retryAfterSeconds = Math.ceil(waitMs / 1000)
        if (worst && worst.retryAfterSeconds >= retryAfterSeconds) continue
        worst = { budget: budgetOf(account), window, limitGas, leftGas: Math.max(0, left), retryAfterSeconds }
      }
    return worst
  }

  /** Returns the accounts that a request with this gas limit is charged to, or the budget that has no room for it. */
  function chooseSpenders({ kind, group, spenders = [], closesPosition }: GasUse, gas: number): string[] | GasShortage {
    if (UNLIMITED_KINDS.includes(kind)) return []
    const accounts = [...spenders, 'lane']
    const shortage = shortageOf(accounts, gas)
    if (shortage === undefined) return accounts
    if (!EXIT_KINDS.includes(kind)) return shortage
    // Only an open position can be closed, so closing has no daily limit.
    const reserve = exitReserveOf(group)
    return shortageOf([reserve], gas, closesPosition ? ['minute'] : ['minute', 'day']) ?? [reserve]
  }

  function addReserved(spenders: readonly string[], gas: number) {
    for (const account of spenders) {
      const sum = (reservedGas.get(account) ?? 0) + gas
      if (sum > 0) reservedGas.set(account, sum)
      else reservedGas.delete(account)
    }
  }

  function recordShortage({ budget, window, limitGas, retryAfterSeconds }: GasShortage, group: string) {
    count('ats_gas_budget_refusals', { budget, window })
    if (Date.now() - (loggedAt.get(budget) ?? 0) < LOG_INTERVAL_MS) return
    loggedAt.set(budget, Date.now())
    logEvent('gas budget exhausted', { budget, window, limitGas, retryAfterSeconds, group })
  }

  /** Returns the shortage that a request would certainly meet, before its gas is known. */
  function refuseEarly(request: GasUse): GasShortage | undefined {
    const chosen = chooseSpenders(request, MIN_GAS)
    if (Array.isArray(chosen)) return undefined
    recordShortage(chosen, request.group)
    return chosen
  }

  /** Reserves a request's gas limit until `release`. Returns the accounts that pay, or the shortage. */
  function reserve(digest: Hex, request: GasUse, gas: number): string[] | GasShortage {
    const chosen = chooseSpenders(request, gas)
    if (Array.isArray(chosen)) hold(digest, chosen, gas)
    else recordShortage(chosen, request.group)
    return chosen
  }

  /** Reserves the gas of a request that is already in flight. */
  function hold(digest: Hex, spenders: readonly string[], gas: number) {
    release(digest)
    reservations.set(digest, { spenders, gas })
    addReserved(spenders, gas)
  }

  /** Releases a request's reservation. */
  function release(digest: Hex) {
    const reservation = reservations.get(digest)
    if (reservation === undefined) return
    reservations.delete(digest)
    addReserved(reservation.spenders, -reservation.gas)
  }

  /** Charges gas that transactions used, and writes all levels in one statement. */
  function charge(charges: readonly GasCharge[]) {
    const charged = new Set<string>()
    for (const { spenders, gas, isReverted } of charges)
      for (const account of spenders) {
        if (!isReverted && isChargedForReverts(account)) continue
        const { minute, day, at } = levelOf(account)
        levels.set(account, { minute: minute + gas, day: day + gas, at })
        charged.add(account)
      }
    const rows = [...charged].flatMap(account => {
      const level = levels.get(account)
      return level === undefined ? [] : [[account, level] as const]
    })
    if (levels.size > MAX_LEVELS)
      for (const [account, { at }] of levels) if (at <= Date.now() - DAY_MS) levels.delete(account)
    table.write(rows)
  }

  /**
   * Returns the remaining budgets that a request would use, with the agent's exit reserve, and a shortage if there is
   * one.
   */
  function statusOf(use: GasUse): GasBudgetStatus {
    const { group, spenders = [] } = use
    const reserve = group.startsWith('agent:') || group.startsWith('owner:') ? [exitReserveOf(group)] : []
    const quotas = [...spenders, 'lane', ...reserve].map((account): GasQuota => {
      const windowOf = (window: 'minute' | 'day') => ({
        limitGas: limitOf(account, window),
        leftGas: Math.max(0, leftOf(account, window)),
      })
      return { budget: budgetOf(account), minute: windowOf('minute'), day: windowOf('day') }
    })
    const chosen = chooseSpenders(use, TYPICAL_GAS[use.kind] ?? MIN_GAS)
    return Array.isArray(chosen) ? { quotas } : { quotas, shortage: chosen }
  }

  const spendersOf = (digest: Hex): readonly string[] | undefined => reservations.get(digest)?.spenders

  return { refuseEarly, reserve, hold, release, charge, statusOf, spendersOf }
}

/** An account is the name of a budget, or a name and an id such as `agent:7`. */
const budgetOf = (account: string) => account.replace(/:.*$/, '') as GasBudgetName

const exitReserveOf = (group: string) => `exitReserve:${group}`

/**
 * Whether an account pays only for reverted transactions. The gas of successful ones is covered by the fee they moved.
 */
const isChargedForReverts = (account: string) => budgetOf(account) === 'newContractPayers'
