import type { Code } from '../errors/catalogue.ts'
import type { Check } from './check.ts'
import { AgentStatus, AllocationStatus, CapitalMode, PositionStatus, TriggerType } from './enums.ts'
import { costPnlBps, findBoundsProblem, findShapeProblem, isTriggered, pnlBps } from './exit-ladder-rules.ts'
import { type ExtensionTerms, ladderBounds, type TokenTerms, type TradingTerms } from './intent-terms.ts'
import { deadlineChecks, policyChecks } from './policy-checks.ts'
import type { Position } from './position.ts'
import { usdcValue } from './price-quote.ts'
import type { ExitRule } from './typed-data.ts'

const BPS = 10_000n

/** The part of an open or add that the checks look at. Without an amount, they check one base unit. */
type Entry = {
  usdcAmount?: bigint | undefined
  minTokenOut?: bigint | undefined
  maxSlippageBps: number
  /** Unix seconds. */
  deadline: bigint
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

/** Returns what a trade brings: on paper, no more than its oracle value. */
export const paperPrice = (quoted: bigint, atOracle: bigint, capitalMode: number | undefined): bigint =>
  capitalMode === CapitalMode.Simulated && quoted > atOracle ? atOracle : quoted

/** Returns the tokens that a purchase brings by the venue's quote; undefined if the venue cannot fill it. */
export function expectedTokens(
  { fills, quote, decimals }: TokenTerms,
  usdcAmount: bigint,
  capitalMode: number | undefined,
): bigint | undefined {
  const quoted = fills.get(usdcAmount)
  const atOracle = fillFloor(usdcAmount, { price: quote.price, decimals }, { maxSlippageBps: 0 })
  return quoted === undefined ? undefined : paperPrice(quoted, atOracle, capitalMode)
}

/** Returns the limits of new risk in USDC base units, and what already counts against them; undefined is no limit. */
export function riskLimits(terms: TradingTerms) {
  const { maxTradeSizeBps, maxDailyTurnoverBps, maxDailyLossBps } = terms.trackConfig
  const { totalAssets, idleAssets } = terms.vault
  const { extension } = terms
  const previous = extension?.previousDay
  return {
    cap: extension?.effectiveCap ?? terms.allocation.cap,
    idleAssets: isSimulated(extension) ? undefined : idleAssets,
    maxTradeSize: (totalAssets * maxTradeSizeBps) / BPS,
    maxDailyTurnover: maxDailyTurnoverBps === 0n ? undefined : (totalAssets * maxDailyTurnoverBps) / BPS,
    maxDailyLoss: maxDailyLossBps === 0n ? undefined : (terms.allocation.cap * maxDailyLossBps) / BPS,
    dailyTurnover: terms.dailyTurnoverUsdc + remainderOf(previous?.turnoverUsdc, extension),
    dailyLoss:
      lossOf(terms.dailyRealizedPnlUsdc) + remainderOf(previous && lossOf(previous.realizedPnlUsdc), extension),
  }
}

const DAY_SECONDS = 86_400n

/** Returns the part of a figure of the day before that lies within the last 24 hours; it counts as spread evenly. */
const remainderOf = (figure: bigint | undefined, extension: ExtensionTerms | undefined): bigint =>
  figure === undefined || extension === undefined
    ? 0n
    : (figure * (DAY_SECONDS - (extension.blockTime % DAY_SECONDS))) / DAY_SECONDS

const lossOf = (pnl: bigint): bigint => (pnl < 0n ? -pnl : 0n)

const isSimulated = (extension: ExtensionTerms | undefined): boolean => extension?.capitalMode === CapitalMode.Simulated

/** Returns the checks of an open, in the router's order. */
export function openChecks(terms: TradingTerms, entry: Entry): Check[] {
  const { extension, token } = terms
  const trackActive = trackActiveCheck(terms)
  const ladder = entry.exits ? ladderChecks(entry.exits, terms, 0) : []
  const allowed = token ? [tokenAllowedCheck(token)] : []
  const onePosition = token ? [onePositionPerTokenCheck(token)] : []
  return [
    ...agentChecks(terms),
    tradingNotPausedCheck(terms),
    ...(extension === undefined
      ? [trackActive, ...allowed, ...ladder, ...onePosition]
      : [...allowed, ...onePosition, trackActive, ...ladder]),
    ...riskChecks(terms, entry),
    ...marketChecks(terms, entry),
  ]
}

/** Returns the checks of an add, in the router's order. */
export function addChecks(terms: TradingTerms, entry: Entry): Check[] {
  const trackActive = trackActiveCheck(terms)
  const allowed = terms.token ? [tokenAllowedCheck(terms.token)] : []
  return [
    ...agentChecks(terms),
    openPositionCheck(terms),
    tradingNotPausedCheck(terms),
    ...(terms.extension === undefined ? [trackActive, ...allowed] : [...allowed, trackActive]),
    ...riskChecks(terms, entry),
    ...capitalModeChecks(terms),
    ...marketChecks(terms, entry, pendingRuleChecks(terms)),
  ]
}

/** Returns the checks of a reduce, in the router's order. */
export function reduceChecks(
  terms: TradingTerms,
  { exitBps, deadline }: { exitBps: number; deadline: bigint },
): Check[] {
  const { position, token, extension } = terms
  const { tokenIn, minUsdcOut, usdcValue } = reduceAmounts(terms, exitBps)
  const isPartial = position !== undefined && tokenIn < position.tokenAmount
  const checks: Check[] = [
    openPositionCheck(terms),
    tradingNotPausedCheck(terms),
    priceCheck(token),
    { rule: 'somethingToSell', code: 'INVALID_REDUCE_AMOUNT', pass: position !== undefined && tokenIn > 0n },
    ...policyChecks(extension, token, { usdcAmount: isPartial ? usdcValue : undefined, deadline }),
  ]
  if (token?.sale !== undefined) {
    checks.push(slippageCheck(minUsdcOut, paperPrice(token.sale.usdcOut ?? 0n, usdcValue, position?.capitalMode)))
  }
  return checks
}

/** Returns what a reduce sells, in the token's base units, with its oracle value and the floor, in USDC base units. */
export function reduceAmounts(
  { position, token, extension }: TradingTerms,
  exitBps: number,
): { tokenIn: bigint; usdcValue: bigint; minUsdcOut: bigint } {
  if (position === undefined || token === undefined) return { tokenIn: 0n, usdcValue: 0n, minUsdcOut: 0n }
  const market = { price: token.quote.price, decimals: token.decimals }
  const share = (position.tokenAmount * BigInt(exitBps)) / BPS
  const leavesDust = (share > 0n || extension !== undefined) && usdcValue(position.tokenAmount - share, market) === 0n
  const tokenIn = leavesDust ? position.tokenAmount : share
  const value = usdcValue(tokenIn, market)
  const slippageBps = reduceSlippageBps(BigInt(position.maxSlippageBps), extension)
  return { tokenIn, usdcValue: value, minUsdcOut: (value * (BPS - slippageBps)) / BPS }
}

/** The router never sells further below the oracle, whatever the policy says. */
const MAX_EXIT_SLIPPAGE_BPS = 2_000n

/** Returns the slippage of a reduce: the signed one within the bounds of the policy. */
function reduceSlippageBps(signed: bigint, extension: ExtensionTerms | undefined): bigint {
  if (extension === undefined) return signed
  const { exitSlippageStartBps, maxExitSlippageBps } = extension.limits
  const atLeast = signed > exitSlippageStartBps ? signed : exitSlippageStartBps
  const atMost = maxExitSlippageBps < MAX_EXIT_SLIPPAGE_BPS ? maxExitSlippageBps : MAX_EXIT_SLIPPAGE_BPS
  return atLeast < atMost ? atLeast : atMost
}

/** Returns the checks of a ladder update, in the router's order. */
export function ladderUpdateChecks(
  terms: TradingTerms,
  { exits, deadline }: { exits: readonly ExitRule[] | undefined; deadline: bigint },
): Check[] {
  const { position, token, extension, agent } = terms
  const checks = [openPositionCheck(terms)]
  if (extension !== undefined) {
    checks.push({
      rule: 'agentNotOver',
      code: 'AGENT_NOT_TRADABLE',
      pass: agent.status !== AgentStatus.Failed && agent.status !== AgentStatus.Exited,
      used: BigInt(agent.status),
    })
    checks.push(exitInProgressCheck(terms), ...deadlineChecks(extension, deadline))
  }
  if (exits === undefined || position === undefined || token === undefined) return checks
  const market = { price: token.quote.price, decimals: token.decimals }
  const pnl = extension ? costPnlBps(position, market) : pnlBps(market.price, position.entryPriceUsdc)
  const ruleIndex = token.quote.quoted ? exits.findIndex(rule => isTriggered(rule, pnl)) : -1
  const firesImmediately = ruleIndex !== -1
  const stopIsMet =
    extension !== undefined && token.quote.quoted && pendingRules(position).some(rule => isMetStop(rule, pnl))
  return [
    ...checks,
    ...ladderChecks(exits, terms, position.nextRuleIndex),
    {
      rule: 'notTriggeredAlready',
      code: 'PENDING_RULE_ALREADY_TRIGGERED',
      pass: !firesImmediately && !stopIsMet,
      used: pnl,
      ...(firesImmediately && { problem: { problem: 'the rule would fire immediately', ruleIndex } }),
      ...(!firesImmediately && stopIsMet && { problem: { problem: 'a pending StopLoss is met' } }),
    },
  ]
}

const pendingRules = (position: Position) => position.exitRules.slice(position.nextRuleIndex)

const isMetStop = (rule: ExitRule, pnl: bigint) => rule.triggerType === TriggerType.StopLoss && isTriggered(rule, pnl)

/** Rules whose outcome depends on the amount. */
const AMOUNT_RULES = new Set([
  'allocationCap',
  'maxTradeSize',
  'dailyTurnover',
  'idleAssets',
  'minTradeSize',
  'slippage',
])

/**
 * Returns the largest amount, in USDC base units, that an open or add can have now. If the depth of the pool is the limit,
 * it is the largest of the probed amounts that fills within the slippage: a lower bound, at most 1/16 of the room too low.
 */
export function maxUsdcAmount(terms: TradingTerms, checks: readonly Check[], entry: Entry): bigint {
  if (checks.some(({ rule, pass }) => !pass && !AMOUNT_RULES.has(rule))) return 0n
  const room = roomOf(terms)
  const largest = depthLimit(terms, room, entry)
  const smallest = terms.extension?.limits.minTradeUsdc ?? 0n
  return largest < smallest ? 0n : largest
}

/** Returns the room that the limits of new risk leave, in USDC base units. */
function roomOf(terms: TradingTerms): bigint {
  const limits = riskLimits(terms)
  const rooms = [limits.cap - terms.allocation.used, limits.maxTradeSize]
  if (limits.idleAssets !== undefined) rooms.push(limits.idleAssets)
  if (limits.maxDailyTurnover !== undefined) rooms.push(limits.maxDailyTurnover - limits.dailyTurnover)
  const room = rooms.reduce((least, value) => (value < least ? value : least))
  return room > 0n ? room : 0n
}

/** Returns `room`, or the largest probed amount that fills within the slippage if that is less. */
function depthLimit({ token }: TradingTerms, room: bigint, { maxSlippageBps }: Entry): bigint {
  if (token === undefined || token.fills.size === 0) return room
  const market = { price: token.quote.price, decimals: token.decimals }
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

const tradingNotPausedCheck = ({ vault }: TradingTerms): Check => ({
  rule: 'tradingNotPaused',
  code: 'TRADING_PAUSED',
  pass: !vault.tradingPaused,
})

const trackActiveCheck = ({ trackActive }: TradingTerms): Check => ({
  rule: 'trackActive',
  code: 'VAULT_TRACK_NOT_ACTIVE',
  pass: trackActive,
})

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

function ladderChecks(exits: readonly ExitRule[], terms: TradingTerms, firedRules: number): Check[] {
  const shapeProblem = findShapeProblem(exits, firedRules)
  const isTooLong = shapeProblem !== undefined && shapeProblem.ruleIndex === undefined && exits.length > 0
  const boundsProblem = shapeProblem === undefined ? findBoundsProblem(exits, ladderBounds(terms)) : undefined
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

/** Returns the checks of the limits of new risk. */
function riskChecks(terms: TradingTerms, entry: Entry): Check[] {
  const { allocation, extension } = terms
  const amount = entry.usdcAmount ?? 1n
  const limits = riskLimits(terms)
  const { cap, maxTradeSize, maxDailyTurnover, maxDailyLoss, dailyTurnover, dailyLoss, idleAssets } = limits
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
    atMost('allocationCap', 'EXCEEDS_ALLOCATION_CAP', allocation.used, cap),
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
  if (extension !== undefined) checks.push(...drawdownChecks(terms, extension))
  if (idleAssets !== undefined) checks.push(atMost('idleAssets', 'INSUFFICIENT_IDLE_ASSETS', 0n, idleAssets))
  return checks
}

/** The drawdown of the realized PnL below its peak, relative to the allocation cap plus that peak. */
function drawdownChecks({ allocation, trackConfig }: TradingTerms, extension: ExtensionTerms): Check[] {
  const { maxDrawdownBps } = trackConfig
  if (maxDrawdownBps === 0n) return []
  const { peakRealizedPnlUsdc, realizedPnlUsdc } = extension
  const fall = lossOf(realizedPnlUsdc - peakRealizedPnlUsdc)
  const peak = allocation.cap + peakRealizedPnlUsdc
  return [
    {
      rule: 'maxDrawdown',
      code: 'EXCEEDS_MAX_DRAWDOWN',
      pass: fall * BPS <= peak * maxDrawdownBps,
      limit: maxDrawdownBps,
      used: peak === 0n ? 0n : (fall * BPS + peak - 1n) / peak,
    },
  ]
}

/** Returns the checks of a purchase against price and pool. `betweenPriceAndPolicy` stands between the two. */
function marketChecks(terms: TradingTerms, entry: Entry, betweenPriceAndPolicy: Check[] = []): Check[] {
  const { token, extension } = terms
  const { usdcAmount, maxSlippageBps, deadline } = entry
  const checks = [
    ...(token ? [priceCheck(token)] : []),
    ...betweenPriceAndPolicy,
    ...policyChecks(extension, token, { usdcAmount, maxSlippageBps, deadline }),
  ]
  if (token && usdcAmount !== undefined && token.fills.has(usdcAmount)) {
    const market = { price: token.quote.price, decimals: token.decimals }
    const received = expectedTokens(token, usdcAmount, extension?.capitalMode) ?? 0n
    checks.push(slippageCheck(fillFloor(usdcAmount, market, entry), received))
  }
  return checks
}

const exitInProgressCheck = ({ exitInProgress }: TradingTerms): Check => ({
  rule: 'noExitInProgress',
  code: 'EXIT_IN_PROGRESS',
  pass: !exitInProgress,
})

/** An add waits while an exit is not completely filled or a pending rule is met at the current price. */
function pendingRuleChecks(terms: TradingTerms): Check[] {
  const { extension, position, token } = terms
  if (extension === undefined || position === undefined || token === undefined) return []
  const pnl = costPnlBps(position, { price: token.quote.price, decimals: token.decimals })
  const isMet = token.quote.quoted && pendingRules(position).some(rule => isTriggered(rule, pnl))
  return [
    exitInProgressCheck(terms),
    { rule: 'noPendingRuleMet', code: 'PENDING_RULE_ALREADY_TRIGGERED', pass: !isMet, used: pnl },
  ]
}

const capitalModeChecks = ({ extension, position }: TradingTerms): Check[] =>
  extension === undefined || position === undefined
    ? []
    : [
        {
          rule: 'capitalMode',
          code: 'CAPITAL_MODE_MISMATCH',
          pass: position.capitalMode === extension.capitalMode,
        },
      ]

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
