import type { Code } from '../errors/catalogue.ts'
import { AgentStatus, AllocationStatus, PositionStatus } from './enums.ts'
import { findBoundsProblem, findShapeProblem, isTriggered, type LadderProblem, pnlBps } from './exit-ladder-rules.ts'
import type { TokenTerms, TradingTerms } from './intent-terms.ts'
import { usdcValue } from './price-quote.ts'
import type { ExitBounds } from './track-config.ts'
import type { ExitRule } from './typed-data.ts'

/**
 * One rule that the router applies to an intent. `limit`, `used` and `after` are figures in the rule's own unit (amounts
 * in USDC base units); `code` is the error that the intent would be refused with.
 */
export type Check = {
  rule: string
  code: Code
  pass: boolean
  limit?: bigint
  used?: bigint
  after?: bigint
  problem?: LadderProblem
}

const BPS = 10_000n

/** The part of an open or add that the checks look at. Without an amount, they check one base unit. */
type Entry = {
  usdcAmount?: bigint | undefined
  minTokenOut?: bigint | undefined
  maxSlippageBps: number
  exits?: readonly ExitRule[] | undefined
}

/** Returns the floor of a fill: `minTokenOut` or the oracle value less the slippage, whichever is larger. */
export function fillFloor(
  usdcAmount: bigint,
  { price, decimals }: { price: bigint; decimals: number },
  { minTokenOut = 0n, maxSlippageBps }: Pick<Entry, 'minTokenOut' | 'maxSlippageBps'>,
): bigint {
  if (price === 0n) return minTokenOut
  const fairAmount = (usdcAmount * 100n * 10n ** BigInt(decimals)) / price
  const floor = (fairAmount * (BPS - BigInt(maxSlippageBps))) / BPS
  return floor > minTokenOut ? floor : minTokenOut
}

/** Returns the limits of new risk in USDC base units, and what already counts against them; undefined is no limit. */
export function riskLimits(terms: TradingTerms) {
  const { maxTradeSizeBps, maxDailyTurnoverBps, maxDailyLossBps } = terms.trackConfig
  const { totalAssets } = terms.vault
  return {
    maxTradeSize: (totalAssets * maxTradeSizeBps) / BPS,
    maxDailyTurnover: maxDailyTurnoverBps === 0n ? undefined : (totalAssets * maxDailyTurnoverBps) / BPS,
    maxDailyLoss: maxDailyLossBps === 0n ? undefined : (terms.allocation.cap * maxDailyLossBps) / BPS,
    dailyTurnover: terms.dailyTurnoverUsdc,
    dailyLoss: terms.dailyRealizedPnlUsdc < 0n ? -terms.dailyRealizedPnlUsdc : 0n,
  }
}

/** Returns the checks of an open, in the router's order. */
export function openChecks(terms: TradingTerms, entry: Entry): Check[] {
  const { token, trackConfig } = terms
  const checks = [...agentChecks(terms), ...tradingChecks(terms)]
  if (token) checks.push(tokenAllowedCheck(token))
  if (entry.exits) checks.push(...ladderChecks(entry.exits, trackConfig, 0))
  if (token) checks.push(onePositionPerTokenCheck(token))
  checks.push(...riskChecks(terms, entry))
  return checks
}

/** Returns the checks of an add, in the router's order. */
export function addChecks(terms: TradingTerms, entry: Entry): Check[] {
  const checks = [...agentChecks(terms), openPositionCheck(terms), ...tradingChecks(terms)]
  if (terms.token) checks.push(tokenAllowedCheck(terms.token))
  checks.push(...riskChecks(terms, entry))
  return checks
}

/** Returns the checks of a reduce, in the router's order. */
export function reduceChecks(terms: TradingTerms, { exitBps }: { exitBps: number }): Check[] {
  const { position, token, vault } = terms
  const { tokenIn, minUsdcOut } = reduceAmounts(terms, exitBps)
  const checks: Check[] = [
    openPositionCheck(terms),
    { rule: 'tradingNotPaused', code: 'TRADING_PAUSED', pass: !vault.tradingPaused },
    priceCheck(token),
    { rule: 'somethingToSell', code: 'INVALID_REDUCE_AMOUNT', pass: position !== undefined && tokenIn > 0n },
  ]
  if (token?.sale !== undefined) checks.push(slippageCheck(minUsdcOut, token.sale.usdcOut ?? 0n))
  return checks
}

/** Returns what a reduce sells, in the token's base units, and the floor of its proceeds, in USDC base units. */
export function reduceAmounts(
  { position, token }: TradingTerms,
  exitBps: number,
): { tokenIn: bigint; minUsdcOut: bigint } {
  if (position === undefined || token === undefined) return { tokenIn: 0n, minUsdcOut: 0n }
  const market = { price: token.quote.price, decimals: token.decimals }
  const share = (position.tokenAmount * BigInt(exitBps)) / BPS
  const leavesDust = share > 0n && usdcValue(position.tokenAmount - share, market) === 0n
  const tokenIn = leavesDust ? position.tokenAmount : share
  return { tokenIn, minUsdcOut: (usdcValue(tokenIn, market) * (BPS - BigInt(position.maxSlippageBps))) / BPS }
}

/** Returns the checks of a ladder update, in the router's order. */
export function ladderUpdateChecks(terms: TradingTerms, exits: readonly ExitRule[] | undefined): Check[] {
  const { position, token, trackConfig } = terms
  const checks = [openPositionCheck(terms)]
  if (exits === undefined || position === undefined || token === undefined) return checks
  const pnl = pnlBps(token.quote.price, position.entryPriceUsdc)
  const ruleIndex = token.quote.quoted ? exits.findIndex(rule => isTriggered(rule, pnl)) : -1
  const firesImmediately = ruleIndex !== -1
  return [
    ...checks,
    ...ladderChecks(exits, trackConfig, position.nextRuleIndex),
    {
      rule: 'notTriggeredAlready',
      code: 'PENDING_RULE_ALREADY_TRIGGERED',
      pass: !firesImmediately,
      used: pnl,
      ...(firesImmediately && { problem: { problem: 'the rule would fire immediately', ruleIndex } }),
    },
  ]
}

/** Rules whose outcome depends on the amount. */
const AMOUNT_RULES = new Set(['allocationCap', 'maxTradeSize', 'dailyTurnover', 'idleAssets', 'slippage'])

/**
 * Returns the largest amount, in USDC base units, that an open or add can have now. If the depth of the pool is the limit,
 * it is the largest of the probed amounts that fills within the slippage: a lower bound, at most 1/16 of the room too low.
 */
export function maxUsdcAmount(terms: TradingTerms, checks: readonly Check[], entry: Entry): bigint {
  if (checks.some(({ rule, pass }) => !pass && !AMOUNT_RULES.has(rule))) return 0n
  const limits = riskLimits(terms)
  const rooms = [terms.allocation.cap - terms.allocation.used, limits.maxTradeSize, terms.vault.idleAssets]
  if (limits.maxDailyTurnover !== undefined) rooms.push(limits.maxDailyTurnover - limits.dailyTurnover)
  const room = rooms.reduce((least, value) => (value < least ? value : least))
  if (room <= 0n) return 0n
  const { token } = terms
  if (token === undefined || token.fills.size === 0) return room
  const market = { price: token.quote.price, decimals: token.decimals }
  const { maxSlippageBps } = entry
  const deepest = [...token.fills]
    .filter(([usdcIn, out]) => out !== undefined && out > 0n && out >= fillFloor(usdcIn, market, { maxSlippageBps }))
    .reduce((most, [usdcIn]) => (usdcIn > most ? usdcIn : most), 0n)
  return deepest < room ? deepest : room
}

const agentChecks = ({ registryPaused, agent }: TradingTerms): Check[] => [
  { rule: 'registryNotPaused', code: 'REGISTRY_PAUSED', pass: !registryPaused },
  {
    rule: 'agentActive',
    code: 'AGENT_NOT_TRADABLE',
    pass: agent.status === AgentStatus.Active,
    used: BigInt(agent.status),
    limit: BigInt(AgentStatus.Active),
  },
]

const tradingChecks = ({ vault, trackActive }: TradingTerms): Check[] => [
  { rule: 'tradingNotPaused', code: 'TRADING_PAUSED', pass: !vault.tradingPaused },
  { rule: 'trackActive', code: 'VAULT_TRACK_NOT_ACTIVE', pass: trackActive },
]

const tokenAllowedCheck = ({ allowed }: TokenTerms): Check => ({
  rule: 'tokenAllowed',
  code: 'TOKEN_NOT_ALLOWED',
  pass: allowed,
})

const onePositionPerTokenCheck = ({ openPositionId }: TokenTerms): Check => ({
  rule: 'oneOpenPositionPerToken',
  code: 'POSITION_ALREADY_OPEN',
  pass: openPositionId === 0n,
  ...(openPositionId !== 0n && { used: openPositionId }),
})

const openPositionCheck = ({ position }: TradingTerms): Check => ({
  rule: 'positionOpen',
  code: 'POSITION_NOT_OPEN',
  pass: position?.status === PositionStatus.Open,
})

function ladderChecks(exits: readonly ExitRule[], bounds: ExitBounds, firedRules: number): Check[] {
  const shapeProblem = findShapeProblem(exits, firedRules)
  const isTooLong = shapeProblem !== undefined && shapeProblem.ruleIndex === undefined && exits.length > 0
  const boundsProblem = shapeProblem === undefined ? findBoundsProblem(exits, bounds) : undefined
  return [
    {
      rule: 'ladderShape',
      code: isTooLong ? 'TOO_MANY_EXIT_RULES' : 'INVALID_EXIT_RULES',
      pass: shapeProblem === undefined,
      ...(shapeProblem && { problem: shapeProblem }),
    },
    {
      rule: 'exitBounds',
      code: 'EXIT_RULES_OUT_OF_BOUNDS',
      pass: shapeProblem === undefined && boundsProblem === undefined,
      ...(boundsProblem && { problem: boundsProblem }),
    },
  ]
}

function riskChecks(terms: TradingTerms, entry: Entry): Check[] {
  const { allocation, vault, token } = terms
  const amount = entry.usdcAmount ?? 1n
  const { maxTradeSize, maxDailyTurnover, maxDailyLoss, dailyTurnover, dailyLoss } = riskLimits(terms)
  const atMost = (rule: string, code: Code, used: bigint, limit: bigint): Check => ({
    rule,
    code,
    pass: used + amount <= limit,
    limit,
    used,
    after: used + (entry.usdcAmount ?? 0n),
  })
  const checks: Check[] = [
    { rule: 'allocationActive', code: 'ALLOCATION_NOT_ACTIVE', pass: allocation.status === AllocationStatus.Active },
    atMost('allocationCap', 'EXCEEDS_ALLOCATION_CAP', allocation.used, allocation.cap),
    atMost('maxTradeSize', 'EXCEEDS_MAX_TRADE_SIZE', 0n, maxTradeSize),
  ]
  if (maxDailyTurnover !== undefined)
    checks.push(atMost('dailyTurnover', 'EXCEEDS_DAILY_TURNOVER', dailyTurnover, maxDailyTurnover))
  if (maxDailyLoss !== undefined)
    checks.push({
      rule: 'dailyLoss',
      code: 'EXCEEDS_DAILY_LOSS',
      pass: dailyLoss < maxDailyLoss,
      limit: maxDailyLoss,
      used: dailyLoss,
    })
  checks.push(atMost('idleAssets', 'INSUFFICIENT_IDLE_ASSETS', 0n, vault.idleAssets))
  if (token) checks.push(priceCheck(token))
  if (token && entry.usdcAmount !== undefined && token.fills.has(entry.usdcAmount)) {
    const floor = fillFloor(entry.usdcAmount, { price: token.quote.price, decimals: token.decimals }, entry)
    checks.push(slippageCheck(floor, token.fills.get(entry.usdcAmount) ?? 0n))
  }
  return checks
}

const slippageCheck = (floor: bigint, received: bigint): Check => ({
  rule: 'slippage',
  code: 'SLIPPAGE_EXCEEDED',
  pass: received >= floor && received > 0n,
  limit: floor,
  after: received,
})

const priceCheck = (token: TokenTerms | undefined): Check => ({
  rule: 'freshPrice',
  code: token?.quote.quoted === false ? 'TOKEN_NOT_QUOTED' : 'STALE_PRICE',
  pass: token !== undefined && !token.quote.stale,
  ...(token && { used: token.quote.updatedAt }),
})
