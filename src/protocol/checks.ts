import type { Terms } from '../chain/trading-terms.ts'
import { boundsProblem, isTriggered, type LadderProblem, pnlBps, shapeProblem } from './exit-ladder.ts'
import type { ExitRule } from './typed-data.ts'

/**
 * One rule that the router will apply, in its order. `limit`, `used` and `after` are the rule's own figures (amounts in
 * USDC base units); `error` is the contract error that a submission would meet.
 */
export type Check = {
  rule: string
  error: string
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

/** The checks of an open, in the router's order. Without an amount the amount rules are held against one base unit. */
export function openChecks(terms: Terms, intent: Intent): Check[] {
  const { token, trackConfig } = terms
  return [
    ...gateChecks(terms),
    ...tradingChecks(terms),
    ...(token ? [{ rule: 'tokenAllowed', error: 'TokenNotAllowed', pass: token.allowed }] : []),
    ...(intent.exits ? ladderChecks(intent.exits, trackConfig, 0) : []),
    ...(token
      ? [
          {
            rule: 'oneOpenPositionPerToken',
            error: 'PositionAlreadyOpen',
            pass: token.openPositionId === 0n,
            ...(token.openPositionId !== 0n && { used: token.openPositionId }),
          },
        ]
      : []),
    ...riskChecks(terms, intent),
  ]
}

/** The checks of an add, in the router's order. */
export function addChecks(terms: Terms, intent: Intent): Check[] {
  return [
    ...gateChecks(terms),
    openPositionCheck(terms),
    ...tradingChecks(terms),
    ...(terms.token ? [{ rule: 'tokenAllowed', error: 'TokenNotAllowed', pass: terms.token.allowed }] : []),
    ...riskChecks(terms, intent),
  ]
}

/** The checks of a reduce, in the router's order. */
export function reduceChecks(terms: Terms, { exitBps }: { exitBps: number }): Check[] {
  const { position, token, vault } = terms
  const sale = saleOf(terms, exitBps)
  return [
    openPositionCheck(terms),
    { rule: 'tradingNotPaused', error: 'TradingPaused', pass: !vault.tradingPaused },
    priceCheck(terms),
    { rule: 'somethingToSell', error: 'InvalidReduceAmount', pass: position !== undefined && sale.tokenIn > 0n },
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
      error: 'PendingRuleAlreadyTriggered',
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
  { rule: 'registryNotPaused', error: 'RegistryPaused', pass: !registryPaused },
  {
    rule: 'agentActive',
    error: 'AgentNotTradable',
    pass: agent.status === ACTIVE,
    used: `${agent.status}`,
    limit: `${ACTIVE}`,
  },
]

const tradingChecks = ({ vault, trackActive }: Terms): Check[] => [
  { rule: 'tradingNotPaused', error: 'TradingPaused', pass: !vault.tradingPaused },
  { rule: 'trackActive', error: 'VaultTrackNotActive', pass: trackActive },
]

const openPositionCheck = ({ position }: Terms): Check => ({
  rule: 'positionOpen',
  error: 'PositionNotOpen',
  pass: position?.status === 0,
})

function ladderChecks(exits: readonly ExitRule[], bounds: Terms['trackConfig'], firedRules: number): Check[] {
  const shape = shapeProblem(exits, firedRules)
  const tooMany = shape !== undefined && shape.ruleIndex === undefined && exits.length > 0
  const bound = shape === undefined ? boundsProblem(exits, bounds) : undefined
  return [
    {
      rule: 'ladderShape',
      error: tooMany ? 'TooManyExitRules' : 'InvalidExitRules',
      pass: shape === undefined,
      ...(shape && { problem: shape }),
    },
    {
      rule: 'exitBounds',
      error: 'ExitRulesOutOfBounds',
      pass: shape === undefined && bound === undefined,
      ...(bound && { problem: bound }),
    },
  ]
}

function riskChecks(terms: Terms, intent: Intent): Check[] {
  const { allocation, vault } = terms
  const amount = intent.usdcAmount ?? 1n
  const { maxTradeSize, maxDailyTurnover, maxDailyLoss, dailyTurnover, dailyLoss } = riskLimits(terms)
  const atMost = (rule: string, error: string, used: bigint, limit: bigint): Check => ({
    rule,
    error,
    pass: used + amount <= limit,
    limit,
    used,
    after: used + (intent.usdcAmount ?? 0n),
  })
  return [
    {
      rule: 'allocationActive',
      error: 'AllocationNotActive',
      pass: allocation.status === ALLOCATION_ACTIVE,
    },
    atMost('allocationCap', 'ExceedsAllocationCap', allocation.used, allocation.cap),
    atMost('maxTradeSize', 'ExceedsMaxTradeSize', 0n, maxTradeSize),
    ...(maxDailyTurnover === undefined
      ? []
      : [atMost('dailyTurnover', 'ExceedsDailyTurnover', dailyTurnover, maxDailyTurnover)]),
    ...(maxDailyLoss === undefined
      ? []
      : [
          {
            rule: 'dailyLoss',
            error: 'ExceedsDailyLoss',
            pass: dailyLoss < maxDailyLoss,
            limit: maxDailyLoss,
            used: dailyLoss,
          },
        ]),
    atMost('idleAssets', 'InsufficientIdleAssets', 0n, vault.idleAssets),
    ...(terms.token ? [priceCheck(terms)] : []),
    ...fillCheck(terms, intent),
  ]
}

function fillCheck({ token }: Terms, intent: Intent): Check[] {
  if (token === undefined || intent.usdcAmount === undefined || !token.fills.has(intent.usdcAmount)) return []
  const market = { price: token.quote.price, decimals: token.decimals }
  return [slippageCheck(minimumTokenOut(intent.usdcAmount, market, intent), token.fills.get(intent.usdcAmount) ?? 0n)]
}

const slippageCheck = (minimum: bigint, received: bigint): Check => ({
  rule: 'slippage',
  error: 'SlippageExceeded',
  pass: received >= minimum && received > 0n,
  limit: minimum,
  after: received,
})

const priceCheck = ({ token }: Terms): Check => ({
  rule: 'freshPrice',
  error: token?.quote.quoted === false ? 'TokenNotQuoted' : 'StalePrice',
  pass: token !== undefined && !token.quote.stale,
  ...(token && { used: token.quote.updatedAt }),
})
