import type { Hex } from 'viem'
import type { GasBudgetName, GasBudgets as Limits, SharedGasBudgetName } from '../config/config.ts'
import { type BucketSize, secondsToDrain, usedAt } from '../limits/bucket.ts'
import { logEvent } from '../log.ts'
import { count } from '../metrics/recorder.ts'
import { createFairShare, type FairShare, type Kept } from './fair-share.ts'
import type { GasShortage, GasWindow, IntentKind, RelayRequest } from './relay-types.ts'
import { groupOf, partyOf, principalOf, spendersOf } from './requester.ts'

export type GasBudgets = ReturnType<typeof createGasBudgets>

type QuotaOfWindow = { limitGas: number; leftGas: number }

/** The remaining gas of an account's budgets: of the minute and the hour, or the day if the budget is shared. */
export type GasQuota = { budget: GasBudgetName; minute: QuotaOfWindow } & Partial<Record<'hour' | 'day', QuotaOfWindow>>

/** The budgets that a request would use, and the one without room for a typical request of its kind. */
export type GasBudgetStatus = { quotas: GasQuota[]; shortage?: GasShortage }

/** The part of a request that decides which budgets it uses. */
export type GasUse = Pick<RelayRequest, 'kind' | 'by' | 'protects' | 'closesPosition'>

/** Gas that another account will spend for a request. */
export type GasSpend = { use: GasUse; gas: number }

/** The gas that a transaction used, as how much of it one counts (1 by default), and the accounts that pay for it. */
export type GasCharge = { spenders: readonly string[]; gas: number; weight?: number; isReverted: boolean }

type Window = 'minute' | 'sustained'
const WINDOWS = ['minute', 'sustained'] as const

const DAY_MS = 86_400_000
const WINDOW_SECONDS = { minute: 60, hour: 3_600, day: 86_400 }
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
/**
 * A request needs at least this much gas in its budgets before it is simulated: no call of an agent uses less. A
 * simulation that fails is charged with it.
 */
const MIN_GAS = 50_000
/**
 * Kinds that only the service itself sends. Strangers' spending must not block them; who causes them is charged all the
 * same.
 */
const UNLIMITED_KINDS: readonly IntentKind[] = ['prices', 'exit', 'checkpoint']
/** An exit waits for no lower price, so gas counts in the budgets of exits as at the expected one. */
const AT_EXPECTED_PRICE: readonly GasBudgetName[] = ['exitReserve', 'reserves']
/** Budgets that accounts share, for a day. */
const SHARED = ['lane', 'newAgents', 'registrations', 'reserves'] as const satisfies SharedGasBudgetName[]
const KEPT: Kept = { part: 0.5, shares: 1_250 }

/**
 * Keeps the gas budgets of the lane's account. A budget is a leaky bucket: it holds the gas of a minute and that of an
 * hour (a shared one that of a day), and refills evenly. A request needs room for its gas limit in the budgets of all
 * its spenders and in the lane's own; its receipt then charges the gas used. A shared budget is divided fairly
 * (fair-share.ts). A request that protects and finds no room uses the exit reserve of its party, which nothing else
 * uses; all reserves together have one budget. Levels are stored in SQLite and cached in memory. `hasReverted` tells
 * whether a party had a revert recently, `weight` as how much a gas counts at its present price; above `maxWeight`,
 * only exits are sent, and count as at that price.
 */
export function createGasBudgets(
  table: GasLevelTable,
  limits: Limits,
  {
    hasReverted = () => false,
    weight = () => 1,
    maxWeight = Number.POSITIVE_INFINITY,
    now = Date.now,
  }: { hasReverted?: (party: string) => boolean; weight?: () => number; maxWeight?: number; now?: () => number } = {},
) {
  const levels = new Map<string, GasLevel>()
  /** The divided budgets. */
  const shares = new Map<GasBudgetName, FairShare>()
  const reservations = new Map<Hex, { spenders: readonly string[]; gas: number; weight: number }>()
  const reservedGas = new Map<string, number>()
  const loggedAt = new Map<GasBudgetName, number>()

  const stored = new Map(table.recent())
  for (const [account, level] of stored) {
    const { budget, member } = parse(account)
    if (member !== undefined) shareOf(budget).restore(member, level.sustained)
    else if (!isShared(budget)) levels.set(account, level)
  }
  stored.clear()

  /** Returns the division of a budget, which begins with what was stored of it. */
  function shareOf(budget: GasBudgetName): FairShare {
    const level = stored.get(budget)
    const known = shares.get(budget)
    if (known) return known
    const sizes = { minute: bucketOf(budget, 'minute'), sustained: bucketOf(budget, 'sustained') }
    const before = level && { minute: level.minute, clock: level.sustained, at: level.at }
    const share = createFairShare(sizes, KEPT, before)
    shares.set(budget, share)
    return share
  }

  const weightIn = (budget: GasBudgetName, weightOfGas = weight()) =>
    AT_EXPECTED_PRICE.includes(budget) ? 1 : Math.min(weightOfGas, maxWeight)
  const costIn = (budget: GasBudgetName, gas: number, weightOfGas?: number) =>
    Math.ceil(gas * weightIn(budget, weightOfGas))

  /** Returns what a bucket holds and has left, in gas at its present price. */
  const atPresentPrice = (budget: GasBudgetName, { holds }: BucketSize, left: number) => ({
    limitGas: Math.floor(holds / weightIn(budget)),
    leftGas: Math.max(0, Math.floor(left / weightIn(budget))),
  })

  const reservedOf = (account: string) => reservedGas.get(account) ?? 0

  /** Returns an account's current level, without the gas in flight. */
  function levelOf(account: string): GasLevel {
    const at = now()
    const level = levels.get(account)
    if (level === undefined) return { minute: 0, sustained: 0, at }
    const { budget } = parse(account)
    const used = (window: Window) => usedAt({ used: level[window], at: level.at }, bucketOf(budget, window), at)
    return { minute: used('minute'), sustained: used('sustained'), at }
  }

  function bucketOf(budget: GasBudgetName, window: Window): BucketSize {
    const limit = limits[budget]
    const sustained = 'perHour' in limit ? limit.perHour : limit.perDay
    const holds = window === 'minute' ? limit.perMinute : sustained
    return { holds, seconds: WINDOW_SECONDS[nameOf(budget, window)] }
  }

  /** Returns what an account may use in each window now, and the most that it could if nothing else used the budget. */
  function roomOf(account: string): Record<Window, { most: number; left: number }> {
    const { budget, member } = parse(account)
    const held = reservedOf(account)
    if (member !== undefined) return shareOf(budget).roomOf(member, now(), { own: held, all: reservedOf(budget) })
    const level = levelOf(account)
    const windowOf = (window: Window) => {
      const most = bucketOf(budget, window).holds
      return { most, left: most - level[window] - held }
    }
    return { minute: windowOf('minute'), sustained: windowOf('sustained') }
  }

  /**
   * Returns the shortage with the longest wait, in gas at its present price; undefined if every account has room for
   * the gas.
   */
  function shortageOf(
    accounts: readonly string[],
    gas: number,
    isLimited: (account: string, window: Window) => boolean = () => true,
    weightOfGas = weight(),
  ): GasShortage | undefined {
    let worst: GasShortage | undefined
    for (const account of accounts) {
      const { budget } = parse(account)
      const room = roomOf(account)
      for (const window of WINDOWS) {
        const { most, left } = room[window]
        const missing = Math.min(costIn(budget, gas, weightOfGas), most) - left
        if (missing <= 0 || !isLimited(account, window)) continue
        const bucket = bucketOf(budget, window)
        const retryAfterSeconds = secondsToDrain(missing, bucket)
        if (worst && worst.retryAfterSeconds >= retryAfterSeconds) continue
        worst = { budget, window: nameOf(budget, window), ...atPresentPrice(budget, bucket, left), retryAfterSeconds }
      }
    }
    return worst
  }

  /** Returns the accounts that a request with this gas limit is charged to, or the budget that has no room for it. */
  function chooseSpenders(use: GasUse, gas: number, weightOfGas = weight()): string[] | GasShortage {
    if (UNLIMITED_KINDS.includes(use.kind)) return spendersOf(use.by)
    // A contract that never reverted needs no room among those that did.
    const needsRoom = use.kind === 'settle' || hasReverted(partyOf(use.by))
    const isLimited = (account: string) => needsRoom || account !== CONTRACT_REVERTS
    const accounts = accountsOf(use)
    const shortage = shortageOf(accounts, gas, isLimited, weightOfGas)
    if (shortage === undefined || !use.protects) return shortage ?? accounts
    // Only an open position can be closed, so closing waits for no hour. Its gas counts as the agent's all the same,
    // and delays its next purchases.
    const charged = use.closesPosition ? accounts.filter(account => account.startsWith('agent:')) : []
    const reserves = [...reservesOf(use), ...charged, ...accounts.filter(account => account === CONTRACT_REVERTS)]
    const isLimitedReserve = (account: string, window: Window) =>
      isLimited(account) &&
      !charged.includes(account) &&
      !(use.closesPosition && window === 'sustained' && account === exitReserveOf(use))
    return shortageOf(reserves, gas, isLimitedReserve, weightOfGas) ?? reserves
  }

  function addReserved(spenders: readonly string[], gas: number, weightOfGas: number) {
    for (const spender of spenders) {
      const { budget, member } = parse(spender)
      for (const account of member === undefined ? [spender] : [spender, budget]) {
        const sum = reservedOf(account) + Math.sign(gas) * costIn(budget, Math.abs(gas), weightOfGas)
        if (sum > 0) reservedGas.set(account, sum)
        else reservedGas.delete(account)
      }
    }
  }

  function recordShortage({ budget, window, limitGas, retryAfterSeconds }: GasShortage, use: GasUse) {
    count('ats_gas_budget_refusals', { budget, window })
    if (now() - (loggedAt.get(budget) ?? 0) < LOG_INTERVAL_MS) return
    loggedAt.set(budget, now())
    logEvent('gas budget exhausted', { budget, window, limitGas, retryAfterSeconds, group: groupOf(use) })
  }

  /**
   * Reserves the least gas that a request can use, before its gas is known, until `reserve` or `release`. Returns the
   * shortage that it would certainly meet.
   */
  function admit(digest: Hex, request: GasUse): GasShortage | undefined {
    const failures = request.protects ? [failuresOf(request)] : []
    const shortage = shortageOf(failures, MIN_GAS, (_, window) => window === 'minute')
    if (shortage) recordShortage(shortage, request)
    const chosen = shortage ?? reserve(digest, request, MIN_GAS)
    return Array.isArray(chosen) ? undefined : chosen
  }

  /**
   * Reserves a request's gas limit until `release`, at what one gas counts with the call's data on L1. Returns the
   * accounts that pay, or the shortage.
   */
  function reserve(digest: Hex, request: GasUse, gas: number, weightOfGas = weight()): string[] | GasShortage {
    release(digest)
    const chosen = chooseSpenders(request, gas, weightOfGas)
    if (Array.isArray(chosen)) hold(digest, chosen, gas, weightOfGas)
    else recordShortage(chosen, request)
    return chosen
  }

  /** What lacks above the ceiling of the price: a budget for such gas. */
  const shortageAtPrice = (): GasShortage => {
    const { limitGas } = atPresentPrice('agent', bucketOf('agent', 'minute'), 0)
    return { budget: 'agent', window: 'minute', limitGas, leftGas: 0, retryAfterSeconds: WINDOW_SECONDS.minute }
  }

  /** Charges what another account will spend for a request, unless there is no room for it. Returns the shortage. */
  function spend({ use, gas }: GasSpend, weightOfGas = weight()): GasShortage | undefined {
    const isTooDear = weightOfGas > maxWeight && !use.protects && !UNLIMITED_KINDS.includes(use.kind)
    const chosen = isTooDear ? shortageAtPrice() : chooseSpenders(use, gas, weightOfGas)
    if (Array.isArray(chosen)) table.write(charge([{ spenders: chosen, gas, weight: weightOfGas, isReverted: false }]))
    else recordShortage(chosen, use)
    return Array.isArray(chosen) ? undefined : chosen
  }

  /** Reserves the gas of a request that is already in flight. */
  function hold(digest: Hex, spenders: readonly string[], gas: number, weightOfGas = weight()) {
    release(digest)
    const reservation = { spenders, gas, weight: weightOfGas }
    reservations.set(digest, reservation)
    addReserved(spenders, gas, reservation.weight)
  }

  /** Releases a request's reservation. */
  function release(digest: Hex) {
    const reservation = reservations.get(digest)
    if (reservation === undefined) return
    reservations.delete(digest)
    addReserved(reservation.spenders, -reservation.gas, reservation.weight)
  }

  /** Charges gas that transactions used. Returns the new levels, which the caller stores with what it charges for. */
  function charge(charges: readonly GasCharge[]): GasLevels {
    const rows = new Map<string, GasLevel>()
    for (const { spenders, gas: used, weight = 1, isReverted } of charges)
      for (const account of spenders) {
        const { budget, member } = parse(account)
        const gas = costIn(budget, used, weight)
        // Successful transactions are covered by what they moved, and by the other budgets.
        if (account === CONTRACT_REVERTS && !isReverted) continue
        if (member !== undefined) {
          const share = shareOf(budget)
          const end = share.charge(member, gas, now())
          const { minute, clock, at } = share.level()
          rows.set(account, { minute: 0, sustained: end, at })
          rows.set(budget, { minute, sustained: clock, at })
          continue
        }
        const { minute, sustained, at } = levelOf(account)
        const level = { minute: minute + gas, sustained: sustained + gas, at }
        levels.set(account, level)
        rows.set(account, level)
      }
    if (levels.size > MAX_LEVELS)
      for (const [account, { at }] of levels) if (at <= now() - DAY_MS) levels.delete(account)
    return Object.fromEntries(rows)
  }

  /**
   * Charges a simulation that failed. A request that protects has an account for its failures, which only slows them
   * down: a loop of them uses neither the agent's budget nor its reserve.
   */
  function chargeFailure(request: GasUse) {
    const spenders = request.protects
      ? [failuresOf(request)]
      : accountsOf(request).filter(account => account.includes(':') && !isShared(parse(account).budget))
    if (spenders.length > 0) table.write(charge([{ spenders, gas: MIN_GAS, isReverted: false }]))
  }

  /**
   * Returns the remaining budgets that a request would use, with its party's exit reserve, and a shortage if there is
   * one.
   */
  function statusOf(use: GasUse): GasBudgetStatus {
    const reserves = 'agent' in use.by ? reservesOf(use) : []
    const gas = TYPICAL_GAS[use.kind] ?? MIN_GAS
    const quotas = [...accountsOf(use), ...reserves].map((account): GasQuota => {
      const { budget } = parse(account)
      const room = roomOf(account)
      const windowOf = (window: Window) => atPresentPrice(budget, bucketOf(budget, window), room[window].left)
      return { budget, minute: windowOf('minute'), [nameOf(budget, 'sustained')]: windowOf('sustained') }
    })
    const chosen = chooseSpenders(use, gas)
    return Array.isArray(chosen) ? { quotas } : { quotas, shortage: chosen }
  }

  /**
   * Returns how much gas the sender of a request has used lately, failures included, as far as it has not refilled.
   * Nobody else's requests count against an owner that protects its agent.
   */
  function usedBy(use: GasUse): number {
    const [own = ''] = accountsOf(use)
    const accounts = [
      ...(use.by.as === 'service' || (use.protects && use.by.as !== 'signer') ? [] : [own]),
      ...(use.protects ? [exitReserveOf(use), failuresOf(use)] : []),
    ]
    return accounts.reduce((sum, account) => sum + usedOf(account) + reservedOf(account), 0)
  }

  function usedOf(account: string): number {
    const { budget, member } = parse(account)
    return member === undefined ? levelOf(account).sustained : shareOf(budget).usedBy(member, now())
  }

  /** Returns the accounts that a reservation charges. */
  const payersOf = (digest: Hex): readonly string[] | undefined => reservations.get(digest)?.spenders

  return { admit, reserve, spend, hold, release, charge, chargeFailure, statusOf, usedBy, payersOf }
}

/** Returns the time that a window of a budget has. */
const nameOf = (budget: GasBudgetName, window: Window): GasWindow =>
  window === 'minute' ? 'minute' : isShared(budget) ? 'day' : 'hour'

const CONTRACT_REVERTS = 'contractReverts'
/** The account of transactions without an intent. */
export const FILLER_ACCOUNT = 'lane/fillers'

/**
 * Returns the accounts that a request uses: its own, such as `agent:7`, and its principal's in shared budgets:
 * `lane/agent:7`.
 */
function accountsOf(use: GasUse): string[] {
  const principal = principalOf(use.by)
  return [...spendersOf(use.by), 'lane' as const].map(name => (isShared(name) ? `${name}/${principal}` : name))
}

const exitReserveOf = (use: GasUse) => `exitReserve:${partyOf(use.by)}`
const reservesOf = (use: GasUse) => [exitReserveOf(use), `reserves/${principalOf(use.by)}`]
const failuresOf = (use: GasUse) => `agent:failures of ${partyOf(use.by)}`

/** Returns the budget of an account, and whose part of a divided one it is. */
function parse(account: string): { budget: GasBudgetName; member?: string } {
  const [whole = '', member] = account.split('/')
  const [budget] = whole.split(':')
  return { budget: budget as GasBudgetName, ...(member !== undefined && { member }) }
}

const isShared = (name: string): name is SharedGasBudgetName => (SHARED as readonly string[]).includes(name)

/**
 * How full an account's budgets are, in gas, at a time in milliseconds: that of a minute, and the sustained one of an
 * hour. Of a shared budget, and of its members, `sustained` is a position on the budget's clock (fair-share.ts).
 */
export type GasLevel = { minute: number; sustained: number; at: number }

/** Gas levels by account. */
export type GasLevels = Record<string, GasLevel>

export type GasLevelTable = ReturnType<typeof gasLevelTable>

type LevelRow = { account: string; minute: number; sustained: number; updated_at: number }

/**
 * Returns the stored gas levels: those that inclusions charged are in the rows of their attempts, those that failed
 * simulations charged in a table. Budgets have refilled after a day, so older levels are ignored.
 */
export function gasLevelTable(sql: SqlStorage, attempts: { levelsSince: (since: number) => Iterable<GasLevels> }) {
  function* all(since: number): Iterable<[account: string, level: GasLevel]> {
    const rows = sql.exec<LevelRow>('SELECT * FROM gas_level').toArray()
    for (const { account, minute, sustained, updated_at } of rows)
      yield [account, { minute, sustained, at: updated_at }]
    for (const levels of attempts.levelsSince(since)) yield* Object.entries(levels)
  }

  return {
    /** Returns the newest level of each account that was charged within a day. */
    recent(): [account: string, level: GasLevel][] {
      const since = Date.now() - DAY_MS
      const newest = new Map<string, GasLevel>()
      for (const [account, level] of all(since))
        if (level.at > Math.max(since, newest.get(account)?.at ?? 0)) newest.set(account, level)
      return [...newest]
    },

    /** Writes the levels of several accounts in one statement. */
    write(levels: GasLevels) {
      sql.exec(
        `INSERT OR REPLACE INTO gas_level (account, minute, sustained, updated_at)
         SELECT key, value ->> 'minute', value ->> 'sustained', value ->> 'at' FROM json_each(?)`,
        JSON.stringify(levels),
      )
    },

    prune() {
      sql.exec('DELETE FROM gas_level WHERE updated_at <= ?', Date.now() - DAY_MS)
    },
  }
}
