import type { Check, TokenTerms, TradingTerms } from '@agent-trading-service/protocol/check'
import { computeMaxUsdcAmount } from '@agent-trading-service/protocol/compute-max-usdc-amount'
import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { expectedTokens, fillFloor, paperPrice } from '@agent-trading-service/protocol/fill-amounts'
import { usdcValue } from '@agent-trading-service/protocol/oracle-price'
import { toShareAmount } from '@agent-trading-service/protocol/price-basis'
import type { LossAtStop } from '@agent-trading-service/protocol/stop-loss'
import { preventsPurchase, preventsSale, restrictionText } from '@agent-trading-service/protocol/token-restriction'
import type { Domain, Message } from '@agent-trading-service/protocol/typed-data'
import { type Address, formatUnits } from 'viem'
import type { AgentRecord } from '../chain/agent-record.ts'
import type { Block } from '../chain/configured-chain.ts'
import { haltRefusal } from '../chain/halted-chain.ts'
import { nowAt } from '../clock.ts'
import type { GasBudgetName } from '../config/config.ts'
import type { Context } from '../context.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import type { GasTerms } from '../executor/object.ts'
import { requestingAgent } from '../executor/requester.ts'
import { presentAllocation } from '../resources/allocation.ts'
import { presentCheck } from '../resources/intent-quote.ts'
import { marketTexts, ORACLE_DECIMALS, presentMarketSession, presentPrice } from '../resources/price.ts'
import { humanUsdc, presentAsOf } from '../resources/primitives.ts'
import { presentMultiplier } from '../resources/token.ts'
import { presentEip712, presentTypedData } from '../resources/typed-data.ts'
import { presentTradePolicy } from '../resources/vault.ts'
import { readGasTerms } from './intake.ts'
import { type MessageKindName, messageKinds, type SignerPrimaryType } from './message-kinds.ts'
import { presentLossAtStop } from './stop-loss.ts'

type QuoteFacts<P extends SignerPrimaryType, B> = {
  agentId: bigint
  /** Whether it sells a whole position. */
  closesPosition?: boolean
  terms: { agent: AgentRecord; nonce: bigint; domain: Domain } & Pick<TradingTerms, 'token' | 'extension' | 'position'>
  primaryType: P
  /** What the message is, if its primary type does not tell. */
  messageKind?: MessageKindName
  checks: readonly Check[]
  /** The requested deadline, or the suggested one. */
  deadline: bigint
  /** Builds message and body for the suggested deadline; absent unless the request names every value. */
  intent?: ((signed: { nonce: bigint; deadline: bigint }) => { message: Message; body: B }) | undefined
  /** What to know even though every check passes. */
  warnings?: readonly string[]
  /** The fields that a request without an intent lacks. */
  missing: readonly string[]
}

/** Returns the warning of a quote without typed data. */
export const nothingToSign = (missing: readonly string[]): string =>
  `There is nothing to sign yet: request the quote with ${missing.join(', ')} as well, and it has typedData and body.`

/**
 * Returns the fields of every intent quote, with typed data and body if the intent is complete. Throws NOT_READY on a
 * halted chain.
 */
export async function presentQuote<P extends SignerPrimaryType, B extends object>(
  context: Context,
  block: Block,
  {
    agentId,
    closesPosition,
    terms,
    primaryType,
    messageKind = primaryType,
    checks: routerChecks,
    deadline,
    intent,
    warnings: given = [],
    missing,
  }: QuoteFacts<P, B>,
) {
  const { config, trading } = context
  const halted = haltRefusal(trading, block)
  if (halted) throw halted
  const by = { as: 'signer', agent: requestingAgent(agentId, terms.agent, block), account: terms.agent.signer } as const
  const [intake, gas] = await Promise.all([
    intakeCheck(context, messageKind),
    readGasTerms(context, messageKind, by, { closesPosition }),
  ])
  const restriction = restrictionRefusal(terms, primaryType, trading.contracts.SwapAdapter)
  const checks = [
    ...routerChecks,
    ...(restriction ? [RESTRICTED] : []),
    intake,
    ...(gas ? [gasBudgetCheck(gas), ...priceChecks(gas)] : []),
  ]
  const signable = intent?.({ nonce: terms.nonce, deadline })
  const { token } = terms
  const { warning, remedy } = token ? marketTexts(config, token, nowAt(block)) : {}
  const warnings = [
    ...given,
    ...(warning === undefined ? [] : [warning]),
    ...(token?.restriction && !restriction && PURCHASES.includes(primaryType)
      ? [`The vault cannot sell ${token.symbol} now: ${restrictionText(token.restriction)}.`]
      : []),
    ...(terms.token ? actionWarnings(terms.token, deadline) : []),
    ...(signable ? [] : [nothingToSign(missing)]),
  ]
  return {
    agentId: `${agentId}`,
    signer: terms.agent.signer,
    nonce: `${terms.nonce}`,
    eip712: presentEip712(terms.domain, primaryType),
    tradeRouter: trading.trading.TradeRouter,
    tradePolicy: terms.extension ? presentTradePolicy(terms.extension.tradePolicy) : null,
    checks: checks.map(check => ({
      ...presentCheck(check),
      // The router knows no market hours: it rejects the price that has become stale since the market closed.
      ...(restriction && check === RESTRICTED && { remedy: `${restriction.body.error} ${restriction.body.remedy}` }),
      ...(remedy !== undefined && check.rule === 'freshPrice' && !check.pass && { remedy }),
    })),
    bindingRule: checks.find(({ pass }) => !pass)?.rule ?? tightestAmountRule(checks),
    ...(token && { market: presentMarketSession(token.session, nowAt(block)), price: presentPrice(token.quote) }),
    ...(warnings.length > 0 && { warnings }),
    ...(gas?.cost && {
      estimatedGas: { l2: gas.cost.l2Gas + (token?.quote.source === 'reports' ? REPORT_GAS : 0), l1: gas.cost.l1Gas },
    }),
    serverTime: `${nowAt(block)}`,
    suggestedDeadline: `${deadline}`,
    ...(signable && {
      ...presentTypedData(terms.domain, primaryType, signable.message),
      body: { ...signable.body, deadline: `${deadline}`, nonce: `${terms.nonce}` },
    }),
    asOf: presentAsOf(block),
  }
}

/** Verifying a report with six signatures; a call whose report another one has brought before pays nearly nothing. */
const REPORT_GAS = 150_000

const PURCHASES: readonly SignerPrimaryType[] = ['OpenPosition', 'AddToPosition']
const RESTRICTED: Check = { rule: 'tokenTransferable', code: 'TOKEN_RESTRICTED', pass: false }

/**
 * Returns why the vault cannot receive or pay the token of a trade, because of what its issuer did; undefined if it
 * can, on paper, and for a message that trades nothing. A purchase does not pass the swap adapter.
 */
export function restrictionRefusal(
  { token, extension, position }: Pick<TradingTerms, 'token' | 'extension' | 'position'>,
  primaryType: SignerPrimaryType,
  swapAdapter: Address | undefined,
): Refusal | undefined {
  const capitalMode = position?.capitalMode ?? extension?.capitalMode
  if (token?.restriction === undefined || capitalMode === CapitalMode.Simulated) return undefined
  const { restriction, sale } = token
  const isPrevented = PURCHASES.includes(primaryType)
    ? preventsPurchase(restriction, swapAdapter)
    : primaryType === 'ReducePosition' && preventsSale(restriction, sale?.tokenIn ?? 1n)
  if (!isPrevented) return undefined
  const { value, account } = restriction
  return refuse('TOKEN_RESTRICTED', { token: token.address, restriction: value, account })
}

/** Returns the warning of a corporate action that is due by a deadline, or that the token's price does not have yet. */
function actionWarnings({ symbol, quote, multiplier, pending }: TokenTerms, deadline: bigint): string[] {
  if (quote.unsettled)
    return [
      `A corporate action has changed what one ${symbol} stands for since its price was observed: exits and purchases wait for a newer price; reductions keep their floor.`,
    ]
  if (pending === undefined || pending.effectiveAt > deadline) return []
  const [now, next] = [multiplier, pending.multiplier].map(presentMultiplier)
  return [
    `A corporate action is due at ${pending.effectiveAt} (Unix seconds), within the deadline: one ${symbol} then stands for ${next} shares instead of ${now}. Prices and amounts in tokens go on without a step.`,
  ]
}

async function intakeCheck(
  { intakeSwitches }: Pick<Context, 'intakeSwitches'>,
  messageKind: MessageKindName,
): Promise<Check> {
  const closure = await intakeSwitches.closureOf(messageKinds[messageKind].intake)
  return { rule: 'intake', code: 'INTAKE_CLOSED', pass: closure === undefined }
}

const RESERVES: readonly GasBudgetName[] = ['exitReserve', 'reserves']

/**
 * Returns the check that tells whether the gas budgets have room for the intent; `limit` and `used` come from the
 * tightest budget, in gas.
 */
function gasBudgetCheck({ budgets: { quotas, shortage } }: GasTerms): Check {
  const windows = quotas.flatMap(({ budget, minute, hour, day }) =>
    RESERVES.includes(budget) ? [] : [minute, hour ?? [], day ?? []].flat(),
  )
  const tightest = windows.reduce((least, window) => (window.leftGas < least.leftGas ? window : least))
  const { limitGas, leftGas } = shortage ?? tightest
  return {
    rule: 'gasBudget',
    code: 'GAS_BUDGET_EXHAUSTED',
    pass: shortage === undefined,
    limit: BigInt(limitGas),
    used: BigInt(limitGas - leftGas),
  }
}

/** Returns the check that tells whether the service pays the price of gas, in wei; none where nothing limits it. */
function priceChecks({ cost }: GasTerms): Check[] {
  const { gasPriceWei: used = 0n, maxGasPriceWei: limit } = cost ?? {}
  return limit === undefined ? [] : [{ rule: 'gasPrice', code: 'GAS_PRICE_TOO_HIGH', pass: used <= limit, limit, used }]
}

const AMOUNT_RULES = [
  'allocationCap',
  'maxTradeSize',
  'dailyTurnover',
  'idleAssets',
  'mandateTrade',
  'mandateTurnover',
  'mandateExposure',
]

/** Returns the amount rule with the least room; null if no rule limits the amount. */
function tightestAmountRule(checks: readonly Check[]): string | null {
  let tightest: { rule: string; room: bigint } | undefined
  for (const { rule, limit, used = 0n } of checks) {
    if (!AMOUNT_RULES.includes(rule) || typeof limit !== 'bigint' || typeof used !== 'bigint') continue
    const room = limit - used
    if (tightest === undefined || room < tightest.room) tightest = { rule, room }
  }
  return tightest?.rule ?? null
}

const BPS = 10_000n

const priceUsd = ({ quote }: TokenTerms) => formatUnits(quote.price, ORACLE_DECIMALS)

/** Returns how far a fill is below the oracle value, in basis points. */
const priceImpactBps = (fair: bigint, filled: bigint) => (fair === 0n ? 0 : Number(((fair - filled) * BPS) / fair))

type Purchase = { usdcAmount: bigint | undefined; minTokenOut: bigint; maxSlippageBps: number }

/**
 * Returns the fields that only quotes of purchases have. `loss` is what the stop-losses of the resulting position would
 * lose.
 */
export function presentPurchase(
  terms: TradingTerms,
  purchase: Purchase,
  {
    checks,
    loss,
    capitalMode,
  }: { checks: readonly Check[]; loss: LossAtStop | undefined; capitalMode: number | undefined },
) {
  const { allocation, extension, token } = terms
  const { usdcAmount, minTokenOut, maxSlippageBps } = purchase
  const maxUsdcAmount = computeMaxUsdcAmount(terms, checks, purchase)
  const estimate =
    token && usdcAmount !== undefined ? estimatePurchase(token, { usdcAmount, maxSlippageBps }, capitalMode) : undefined
  return {
    allocation: presentAllocation({
      ...allocation,
      effectiveCap: extension?.effectiveCap,
      capitalMode: extension?.capitalMode,
    }),
    maxUsdcAmount: `${maxUsdcAmount}`,
    maxUsdcAmountHuman: humanUsdc(maxUsdcAmount),
    assumed: { minTokenOut: `${minTokenOut}`, maxSlippageBps },
    ...(estimate && { estimate }),
    ...(loss && presentLossAtStop(loss)),
  }
}

/**
 * Returns what an open or add of a USDC amount (base units) would buy: the venue's quote, or the oracle value on chains
 * without a quoter. Undefined if the token has no price or the venue cannot fill the amount.
 */
function estimatePurchase(
  token: TokenTerms,
  { usdcAmount, maxSlippageBps }: { usdcAmount: bigint; maxSlippageBps: number },
  capitalMode: number | undefined,
) {
  const market = { price: token.quote.price, decimals: token.decimals }
  if (market.price === 0n) return undefined
  const fair = fillFloor(usdcAmount, market, { maxSlippageBps: 0 })
  const fill = expectedTokens(token, usdcAmount, capitalMode)
  if (fill === undefined && token.fills.size > 0) return undefined
  const tokenOut = fill ?? fair
  return {
    source: fill === undefined ? ('oracle' as const) : ('venue' as const),
    tokenOut: `${tokenOut}`,
    shareOut: `${toShareAmount(tokenOut, token.multiplier)}`,
    priceUsd: priceUsd(token),
    priceImpactBps: priceImpactBps(fair, tokenOut),
    suggestedMinTokenOut: `${(tokenOut * (BPS - BigInt(maxSlippageBps))) / BPS}`,
  }
}

/** Returns what a reduce would bring, from the same sources as `estimatePurchase`. */
export function estimateSale(
  token: TokenTerms,
  { tokenIn, minUsdcOut }: { tokenIn: bigint; minUsdcOut: bigint },
  capitalMode: number | undefined,
) {
  const market = { price: token.quote.price, decimals: token.decimals }
  if (market.price === 0n) return undefined
  const fair = usdcValue(tokenIn, market)
  const fill = token.sale?.tokenIn === tokenIn ? token.sale.usdcOut : undefined
  if (fill === undefined && token.sale !== undefined) return undefined
  const usdcOut = paperPrice(fill ?? fair, fair, capitalMode)
  return {
    source: fill === undefined ? ('oracle' as const) : ('venue' as const),
    usdcOut: `${usdcOut}`,
    shareIn: `${toShareAmount(tokenIn, token.multiplier)}`,
    priceUsd: priceUsd(token),
    priceImpactBps: priceImpactBps(fair, usdcOut),
    minUsdcOut: `${minUsdcOut}`,
  }
}
