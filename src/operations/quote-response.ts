import type { Check } from '@agent-trading-service/protocol/check'
import type { TradingTerms } from '@agent-trading-service/protocol/router-check-inputs'
import type { Domain, Message, PrimaryType } from '@agent-trading-service/protocol/typed-data'
import type { AgentRecord } from '../chain/agents.ts'
import type { Block } from '../chain/block-type.ts'
import type { Context } from '../context.ts'
import { presentMarketSession } from '../resources/market-session.ts'
import { presentAsOf } from '../resources/primitives.ts'
import { presentCheck } from '../resources/router-check.ts'
import { presentTradePolicy } from '../resources/trade-policy.ts'
import { presentEip712, presentTypedData } from '../resources/typed-data.ts'
import { gasBudgetChecks } from './gas-budget-check.ts'
import { intakeCheck } from './intake-check.ts'
import { marketClosedTexts } from './market-closed-texts.ts'

type QuoteFacts<P extends PrimaryType, B> = {
  agentId: bigint
  kind: 'open' | 'add' | 'reduce' | 'ladder'
  /** Whether it sells a whole position. */
  closesPosition?: boolean
  terms: { agent: AgentRecord; nonce: bigint; domain: Domain } & Pick<TradingTerms, 'token' | 'extension'>
  primaryType: P
  checks: readonly Check[]
  /** The requested deadline, or the suggested one. */
  deadline: bigint
  /** Builds message and body for the suggested deadline; absent unless the request names every value. */
  intent?: ((signed: { nonce: bigint; deadline: bigint }) => { message: Message; body: B }) | undefined
  /** The fields that a request without an intent lacks. */
  missing: readonly string[]
}

/** Returns the warning of a quote without typed data. */
export const nothingToSign = (missing: readonly string[]): string =>
  `There is nothing to sign yet: request the quote with ${missing.join(', ')} as well, and it has typedData and body.`

/** Returns the fields of every intent quote, with typed data and body if the intent is complete. */
export async function presentQuote<P extends PrimaryType, B extends object>(
  context: Context,
  block: Block,
  {
    agentId,
    kind,
    closesPosition,
    terms,
    primaryType,
    checks: routerChecks,
    deadline,
    intent,
    missing,
  }: QuoteFacts<P, B>,
) {
  const { config, trading } = context
  const use = { agentId, kind, agent: terms.agent, block, ...(closesPosition !== undefined && { closesPosition }) }
  const checks = [...routerChecks, await intakeCheck(context, kind), ...(await gasBudgetChecks(context, use))]
  const signable = intent?.({ nonce: terms.nonce, deadline })
  const symbol = terms.token?.symbol
  const closedTexts = symbol === undefined ? undefined : marketClosedTexts(config, symbol, block.timestamp)
  const warnings = [...(closedTexts ? [closedTexts.warning] : []), ...(signable ? [] : [nothingToSign(missing)])]
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
      ...(closedTexts && check.rule === 'freshPrice' && !check.pass && { remedy: closedTexts.remedy }),
    })),
    bindingRule: checks.find(({ pass }) => !pass)?.rule ?? tightestAmountRule(checks),
    ...(symbol !== undefined && { market: presentMarketSession(symbol, block.timestamp) }),
    ...(warnings.length > 0 && { warnings }),
    serverTime: `${block.timestamp}`,
    suggestedDeadline: `${deadline}`,
    ...(signable && {
      ...presentTypedData(terms.domain, primaryType, signable.message),
      body: { ...signable.body, deadline: `${deadline}`, nonce: `${terms.nonce}` },
    }),
    asOf: presentAsOf(block),
  }
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
