import type { Terms, TokenTerms } from '../chain/trading-terms.ts'
import type { Code } from '../errors/catalogue.ts'
import { boundsProblem, isTriggered, type LadderProblem, pnlBps, shapeProblem } from './exit-ladder.ts'
import type { ExitRule } from './typed-data.ts'

/**
 * One rule that the router will apply, in its order. `limit`, `used` and `after` are the rule's own figures (amounts in
 * USDC base units); `code` is the error that a submission would be refused with.
 */
export type Check = {
  rule: string
  code: Code
  pass: boolean
  limit?: bigint | string
  used?: bigint | string
  after?: bigint | string
  problem?: LadderProblem
}

const BPS = 10_000n
const ACTIVE = 1
const ALLOCATION_ACTIVE = 0

type Intent = {
  usdcAmount?: bigint | undefined
  minTokenOut?: bigint | undefined
  maxSlippageBps: number
  exits?: readonly ExitRule[] | undefined
}

/** What a fill must bring at least: the signed floor or the oracle's value less the slippage, the larger of the two. */
export function minimumTokenOut(
  usdcAmount: bigint,
  { price, decimals }: { price: bigint; decimals: number },
  { minTokenOut = 0n, maxSlippageBps }: Pick<Intent, 'minTokenOut' | 'maxSlippageBps'>,
): bigint {
  if (price === 0n) return minTokenOut
  const fair = (usdcAmount * 100n * 10n ** BigInt(decimals)) / price
  const floor = (fair * (BPS - BigInt(maxSlippageBps))) / BPS
  return floor > minTokenOut ? floor : minTokenOut
}

/** USDC base units that tokens are worth at an oracle price. */
export const worth = (tokens: bigint, { price, decimals }: { price: bigint; decimals: number }): bigint =>
  (tokens * price) / (10n ** BigInt(decimals) * 100n)

/** Limits of new risk that depend on the amount, each as the most that may be added now. */
export function riskLimits({ allocation, trackConfig, vault, dailyTurnoverUsdc, dailyRealizedPnlUsdc }: Terms) {
  const { maxTradeSizeBps, maxDailyTurnoverBps, maxDailyLossBps } = trackConfig
  return {
    maxTradeSize: (vault.totalAssets * maxTradeSizeBps) / BPS,
    maxDailyTurnover: maxDailyTurnoverBps === 0n ? undefined : (vault.totalAssets * maxDailyTurnoverBps) / BPS,
    maxDailyLoss: maxDailyLossBps === 0n ? undefined : (allocation.cap * maxDailyLossBps) / BPS,
    dailyTurnover: dailyTurnoverUsdc,
    dailyLoss: dailyRealizedPnlUsdc < 0n ? -dailyRealizedPnlUsdc : 0n,
  }
}

/** Returns the checks of an open, in the router's order. Without an amount, one base unit is checked. */
export function openChecks(terms: Terms, intent: Intent): Check[] {
  const { token, trackConfig } = terms
  const checks = [...gateChecks(terms), ...tradingChecks(terms)]
  if (token) checks.push(tokenAllowedCheck(token))
  if (intent.exits) checks.push(...ladderChecks(intent.exits, trackConfig, 0))
  if (token) checks.push(onePositionPerTokenCheck(token))
  checks.push(...riskChecks(terms, intent))
  return checks
}

/** Returns the checks of an add, in the router's order. */
export function addChecks(terms: Terms, intent: Intent): Check[] {
  const checks = [...gateChecks(terms), openPositionCheck(terms), ...tradingChecks(terms)]
  if (terms.token) checks.push(tokenAllowedCheck(terms.token))
  checks.push(...riskChecks(terms, intent))
  return checks
}

/** The checks of a reduce, in the router's order. */
export function reduceChecks(terms: Terms, { exitBps }: { exitBps: number }): Check[] {
  const { position, token, vault } = terms
  const sale = saleOf(terms, exitBps)
  return [
    openPositionCheck(terms),
    { rule: 'tradingNotPaused', code: 'TRADING_PAUSED', pass: !vault.tradingPaused },
    priceCheck(terms),
    { rule: 'somethingToSell', code: 'INVALID_REDUCE_AMOUNT', pass: position !== undefined && sale.tokenIn > 0n },
    ...(token?.sale === undefined
      ? []
      : [slippageCheck(sale.minUsdcOut, token.sale.usdcOut === undefined ? 0n : token.sale.usdcOut)]),
  ]
}

/** What a reduce would sell and the least that it must bring. */
export function saleOf({ position, token }: Terms, exitBps: number): { tokenIn: bigint; minUsdcOut: bigint } {
  if (position === undefined || token === undefined) return { tokenIn: 0n, minUsdcOut: 0n }
  const market = { price: token.quote.price, decimals: token.decimals }
  const share = (position.tokenAmount * BigInt(exitBps)) / BPS
  const leavesDust = share > 0n && worth(position.tokenAmount - share, market) === 0n
  const tokenIn = leavesDust ? position.tokenAmount : share
  return { tokenIn, minUsdcOut: (worth(tokenIn, market) * (BPS - BigInt(position.maxSlippageBps))) / BPS }
}

/** The checks of a ladder update, in the router's order. */
export function ladderUpdateChecks(terms: Terms, exits: readonly ExitRule[] | undefined): Check[] {
  const { position, token, trackConfig } = terms
  const checks = [openPositionCheck(terms)]
  if (exits === undefined || position === undefined || token === undefined) return checks
  const pnl = pnlBps(token.quote.price, position.entryPriceUsdc)
  const ruleIndex = token.quote.quoted ? exits.findIndex(rule => isTriggered(rule, pnl)) : -1
  return [
    ...checks,
    ...ladderChecks(exits, trackConfig, position.nextRuleIndex),
    {
      rule: 'notTriggeredAlready',
      code: 'PENDING_RULE_ALREADY_TRIGGERED',
      pass: ruleIndex === -1,
      used: pnl,
      ...(ruleIndex !== -1 && { problem: { problem: 'the rule would fire at once', ruleIndex } }),
    },
  ]
}

/**
 * The most USDC base units that an open or add passes with now. When the pool's depth is what binds, it is the largest
 * of the probed amounts that fills within the slippage: a lower bound, at most a sixteenth of the room too low.
 */
export function maxUsdcAmount(terms: Terms, checks: readonly Check[], intent: Intent): bigint {
  const amountRules = new Set(['amount', 'allocationCap', 'maxTradeSize', 'dailyTurnover', 'idleAssets', 'slippage'])
  if (checks.some(({ rule, pass }) => !pass && !amountRules.has(rule))) return 0n
  const limits = riskLimits(terms)
  const rooms = [terms.allocation.cap - terms.allocation.used, limits.maxTradeSize, terms.vault.idleAssets]
  if (limits.maxDailyTurnover !== undefined) rooms.push(limits.maxDailyTurnover - limits.dailyTurnover)
  const room = rooms.reduce((least, value) => (value < least ? value : least))
  if (room <= 0n) return 0n
  const { token } = terms
  if (token === undefined || token.fills.size === 0) return room
  const market = { price: token.quote.price, decimals: token.decimals }
  const fitting = [...token.fills].filter(
    ([usdcIn, out]) =>
      out !== undefined && out > 0n && out >= minimumTokenOut(usdcIn, market, { ...intent, minTokenOut: 0n }),
  )
  const deepest = fitting.reduce((most, [usdcIn]) => (usdcIn > most ? usdcIn : most), 0n)
  return deepest < room ? deepest : room
}

const gateChecks = ({ registryPaused, agent }: Terms): Check[] => [
  { rule: 'registryNotPaused', code: 'REGISTRY_PAUSED', pass: !registryPaused },
  {
    rule: 'agentActive',
    code: 'AGENT_NOT_TRADABLE',
    pass: agent.status === ACTIVE,
    used: `${agent.status}`,
    limit: `${ACTIVE}`,
  },
]

const tradingChecks = ({ vault, trackActive }: Terms): Check[] => [
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

const openPositionCheck = ({ position }: Terms): Check => ({
  rule: 'positionOpen',
  code: 'POSITION_NOT_OPEN',
  pass: position?.status === 0,
})

function ladderChecks(exits: readonly ExitRule[], bounds: Terms['trackConfig'], firedRules: number): Check[] {
  const shape = shapeProblem(exits, firedRules)
  const tooMany = shape !== undefined && shape.ruleIndex === undefined && exits.length > 0
  const bound = shape === undefined ? boundsProblem(exits, bounds) : undefined
  return [
    {
      rule: 'ladderShape',
      code: tooMany ? 'TOO_MANY_EXIT_RULES' : 'INVALID_EXIT_RULES',
      pass: shape === undefined,
      ...(shape && { problem: shape }),
    },
    {
      rule: 'exitBounds',
      code: 'EXIT_RULES_OUT_OF_BOUNDS',
      pass: shape === undefined && bound === undefined,
      ...(bound && { problem: bound }),
    },
  ]
}

function riskChecks(terms: Terms, intent: Intent): Check[] {
  const { allocation, vault } = terms
  const amount = intent.usdcAmount ?? 1n
  const { maxTradeSize, maxDailyTurnover, maxDailyLoss, dailyTurnover, dailyLoss } = riskLimits(terms)
  const atMost = (rule: string, code: Code, used: bigint, limit: bigint): Check => ({
    rule,
    code,
    pass: used + amount <= limit,
    limit,
    used,
    after: used + (intent.usdcAmount ?? 0n),
  })
  const checks: Check[] = [
    { rule: 'allocationActive', code: 'ALLOCATION_NOT_ACTIVE', pass: allocation.status === ALLOCATION_ACTIVE },
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
  if (terms.token) checks.push(priceCheck(terms))
  checks.push(...fillCheck(terms, intent))
  return checks
}

function fillCheck({ token }: Terms, intent: Intent): Check[] {
  if (token === undefined || intent.usdcAmount === undefined || !token.fills.has(intent.usdcAmount)) return []
  const market = { price: token.quote.price, decimals: token.decimals }
  return [slippageCheck(minimumTokenOut(intent.usdcAmount, market, intent), token.fills.get(intent.usdcAmount) ?? 0n)]
}

const slippageCheck = (minimum: bigint, received: bigint): Check => ({
  rule: 'slippage',
  code: 'SLIPPAGE_EXCEEDED',
  pass: received >= minimum && received > 0n,
  limit: minimum,
  after: received,
})

const priceCheck = ({ token }: Terms): Check => ({
  rule: 'freshPrice',
  code: token?.quote.quoted === false ? 'TOKEN_NOT_QUOTED' : 'STALE_PRICE',
  pass: token !== undefined && !token.quote.stale,
  ...(token && { used: token.quote.updatedAt }),
})
