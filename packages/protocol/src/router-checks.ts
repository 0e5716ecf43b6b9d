import type { Check, TokenTerms, TradingTerms } from './check.ts'
import { AgentStatus, PositionStatus } from './enums.ts'
import type { ExitRule } from './exit-rule.ts'
import { expectedTokens, fillFloor, paperPrice, reduceAmounts } from './fill-amounts.ts'
import { exitInProgressCheck, ladderChecks, notTriggeredCheck, pendingRuleChecks } from './ladder-checks.ts'
import { mandateLadderChecks, mandateLimitChecks, mandateModeChecks } from './mandate-checks.ts'
import { isBuy, partUsdcAmount } from './order-rules.ts'
import type { Order } from './order-typed-data.ts'
import { deadlineChecks, minTradeChecks, policyChecks } from './policy-checks.ts'
import { pendingRules } from './position.ts'
import { riskChecks } from './risk-limit-checks.ts'

/** The part of an open or add that the checks look at. Without an amount, they check one base unit. */
type Entry = {
  usdcAmount?: bigint | undefined
  minTokenOut?: bigint | undefined
  maxSlippageBps: number
  /** How far below the oracle's price a stranger that executes an order may fill it now. */
  strangerSlippageBps?: number | undefined
  /** Unix seconds. */
  deadline: bigint
  exits?: readonly ExitRule[] | undefined
}

/** Returns the checks of an open, in the router's order. */
export function openChecks(terms: TradingTerms, entry: Entry): Check[] {
  const { extension, token } = terms
  const trackActive = trackActiveCheck(terms)
  const ladder = entry.exits ? ladderChecks(entry.exits, terms, 0) : []
  const allowed = token ? [tokenAllowedCheck(token)] : []
  const onePosition = token ? [onePositionPerTokenCheck(token)] : []
  return [
    ...agentChecks(terms),
    ...mandateModeChecks(terms),
    tradingNotPausedCheck(terms),
    ...(extension === undefined
      ? [trackActive, ...allowed, ...ladder, ...onePosition]
      : [...allowed, ...onePosition, trackActive, ...ladder]),
    ...riskChecks(terms, entry),
    ...mandateLimitChecks(terms, entry),
    ...fillChecks(terms, entry),
  ]
}

/** Returns the checks of an add, in the router's order. */
export function addChecks(terms: TradingTerms, entry: Entry): Check[] {
  const trackActive = trackActiveCheck(terms)
  const allowed = terms.token ? [tokenAllowedCheck(terms.token)] : []
  return [
    ...agentChecks(terms),
    ...mandateModeChecks(terms),
    openPositionCheck(terms),
    tradingNotPausedCheck(terms),
    ...(terms.extension === undefined ? [trackActive, ...allowed] : [...allowed, trackActive]),
    ...riskChecks(terms, entry),
    ...mandateLimitChecks(terms, entry),
    ...capitalModeChecks(terms),
    ...fillChecks(terms, entry, pendingRuleChecks(terms)),
  ]
}

/** Returns the checks of a purchase against price, policy and pool. `afterPrice` follows the check of the price. */
function fillChecks(terms: TradingTerms, entry: Entry, afterPrice: Check[] = []): Check[] {
  const { token, extension } = terms
  const { usdcAmount, maxSlippageBps, deadline } = entry
  return [
    ...(token ? [priceCheck(token), settledPriceCheck(token)] : []),
    ...afterPrice,
    ...policyChecks(extension, token, { usdcAmount, maxSlippageBps, deadline }),
    ...purchaseSlippageChecks(terms, entry),
  ]
}

/** Returns the checks of a reduce, in the router's order. */
export function reduceChecks(
  terms: TradingTerms,
  { exitBps, deadline, byStranger }: { exitBps: number; deadline: bigint; byStranger?: boolean },
): Check[] {
  const { position, token, extension } = terms
  const { tokenIn, minUsdcOut, usdcValue } = reduceAmounts(terms, exitBps, byStranger)
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

/** Returns the checks of a ladder update, in the router's order. */
export function ladderUpdateChecks(
  terms: TradingTerms,
  { exits, deadline }: { exits: readonly ExitRule[] | undefined; deadline: bigint },
): Check[] {
  const { position, token, extension } = terms
  const checks = [openPositionCheck(terms)]
  if (extension !== undefined)
    checks.push(agentNotOverCheck(terms), exitInProgressCheck(terms), ...deadlineChecks(extension, deadline))
  if (exits === undefined || position === undefined || token === undefined) return checks
  return [
    ...checks,
    ...ladderChecks(exits, terms, position.nextRuleIndex),
    ...mandateLadderChecks(terms, { exits, pending: pendingRules(position) }),
    notTriggeredCheck(exits, { position, token, extension }),
  ]
}

/**
 * Returns the checks of placing an order, in the order book's order. Everything else is checked when a part of it
 * executes, as for the same intent of that moment.
 */
export function placementChecks(terms: TradingTerms, { buys, deadline }: { buys: boolean; deadline: bigint }): Check[] {
  return [
    ...(buys ? [...agentChecks(terms), ...mandateModeChecks(terms)] : []),
    ...deadlineChecks(terms.extension, deadline),
    ...(terms.position === undefined ? [] : [openPositionCheck(terms)]),
  ]
}

/**
 * Returns the check that no part of a purchase is smaller than the smallest trade: its amount is signed, so it would be
 * refused at every try. Empty for a sale, whose parts become larger with the price and the position.
 */
export const orderSizeChecks = (terms: Pick<TradingTerms, 'extension'>, order: Order): Check[] =>
  isBuy(order) ? minTradeChecks(terms.extension, partUsdcAmount(order, 1)) : []

// Whether agent, vault, track, token and position are in a state in which the router accepts an intent.

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

/** A failed or exited agent changes no ladder; only in a deployment with the extension. */
const agentNotOverCheck = ({ agent }: TradingTerms): Check => ({
  rule: 'agentNotOver',
  code: 'AGENT_NOT_TRADABLE',
  pass: agent.status !== AgentStatus.Failed && agent.status !== AgentStatus.Exited,
  used: BigInt(agent.status),
})

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
  ...(openPositionId !== 0n && {
    used: openPositionId,
    problem: { problem: `position ${openPositionId} is open in this token` },
  }),
})

const openPositionCheck = ({ position }: TradingTerms): Check => ({
  rule: 'positionOpen',
  code: 'POSITION_NOT_OPEN',
  pass: position?.status === PositionStatus.Open,
})

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

const priceCheck = (token: TokenTerms | undefined): Check => ({
  rule: 'freshPrice',
  code: token?.quote.quoted === false ? 'TOKEN_NOT_QUOTED' : 'STALE_PRICE',
  pass: token !== undefined && !token.quote.stale,
  ...(token && { used: token.quote.updatedAt }),
})

/**
 * Returns the check that the price is from after the last change of the token's multiplier. The router does not know
 * multipliers: the service refuses purchases until then, while reductions go on with their floor.
 */
export const settledPriceCheck = ({ quote }: Pick<TokenTerms, 'quote'>): Check => ({
  rule: 'settledPrice',
  code: 'PRICE_UNSETTLED',
  pass: !quote.unsettled,
  used: quote.updatedAt,
})

/** Returns the slippage check of a purchase; none if its amount was not quoted by the venue. */
function purchaseSlippageChecks({ token, extension }: TradingTerms, entry: Entry): Check[] {
  const { usdcAmount, minTokenOut, strangerSlippageBps = entry.maxSlippageBps } = entry
  if (token === undefined || usdcAmount === undefined || !token.fills.has(usdcAmount)) return []
  const market = { price: token.quote.price, decimals: token.decimals }
  const received = expectedTokens(token, usdcAmount, extension?.capitalMode) ?? 0n
  const maxSlippageBps = Math.min(entry.maxSlippageBps, strangerSlippageBps)
  const check = slippageCheck(fillFloor(usdcAmount, market, { minTokenOut, maxSlippageBps }), received)
  return [{ ...check, pass: check.pass && received > 0n }]
}

const slippageCheck = (floor: bigint, received: bigint): Check => ({
  rule: 'slippage',
  code: 'SLIPPAGE_EXCEEDED',
  pass: received >= floor,
  limit: floor,
  after: received,
})
