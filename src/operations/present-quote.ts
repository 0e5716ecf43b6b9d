import { formatUnits } from 'viem'
import type { Block } from '../chain/chain.ts'
import type { TokenTerms } from '../chain/trading-terms.ts'
import type { Context } from '../context.ts'
import { type Check, minimumTokenOut, worth } from '../protocol/checks.ts'
import type { Domain, Message, PrimaryType } from '../protocol/typed-data.ts'
import { presentCheck, presentEip712, presentTypedData } from '../resources/intent.ts'
import { presentMarket } from '../resources/token.ts'
import { closureOf } from './market-closed.ts'

const QUOTED_DEADLINE_SECONDS = 600n
const BPS = 10_000n

export const presentBlock = ({ number, timestamp }: Block) => ({
  blockNumber: `${number}`,
  blockTimestamp: `${timestamp}`,
})

type Quote<P extends PrimaryType> = {
  agentId: bigint
  terms: { agent: { signer: `0x${string}` }; nonce: bigint; domain: Domain; token: TokenTerms | undefined }
  primaryType: P
  checks: readonly Check[]
  deadline: bigint | undefined
  /** Message and body of the intent, when the caller has said all of it; built for the deadline that is suggested. */
  intent?:
    | ((signed: { nonce: bigint; deadline: bigint }) => { message: Message; body: Record<string, unknown> })
    | undefined
}

/** What every intent quote answers, with the typed data and the body to post when the intent is complete. */
export function presentQuote<P extends PrimaryType>(
  { trading: { trading }, config }: Pick<Context, 'trading' | 'config'>,
  block: Block,
  { agentId, terms, primaryType, checks, deadline, intent }: Quote<P>,
) {
  const suggested = deadline ?? block.timestamp + QUOTED_DEADLINE_SECONDS
  const complete = intent?.({ nonce: terms.nonce, deadline: suggested })
  const symbol = terms.token?.symbol
  const closure = symbol === undefined ? undefined : closureOf(config, symbol, block.timestamp)
  return {
    agentId: `${agentId}`,
    signer: terms.agent.signer,
    nonce: `${terms.nonce}`,
    eip712: presentEip712(terms.domain, primaryType),
    tradeRouter: trading.TradeRouter,
    checks: checks.map(check => ({
      ...presentCheck(check),
      // The router knows no hours: what it refuses is the price that the closed market has let grow old.
      ...(closure && check.rule === 'freshPrice' && !check.pass && { remedy: closure.remedy }),
    })),
    bindingRule: checks.find(({ pass }) => !pass)?.rule ?? tightestRule(checks),
    ...(symbol !== undefined && { market: presentMarket(symbol, block.timestamp) }),
    ...(closure && { warnings: [closure.warning] }),
    serverTime: `${block.timestamp}`,
    suggestedDeadline: `${suggested}`,
    ...(complete && {
      ...presentTypedData(terms.domain, primaryType, complete.message),
      body: { ...complete.body, deadline: `${suggested}`, nonce: `${terms.nonce}` },
    }),
    asOf: presentBlock(block),
  }
}

/** Of the amount rules the one with the least room: the rule that bounds the amount. */
function tightestRule(checks: readonly Check[]): string | null {
  const amountRules = ['allocationCap', 'maxTradeSize', 'dailyTurnover', 'idleAssets']
  let tightest: { rule: string; room: bigint } | undefined
  for (const { rule, limit, used = 0n } of checks) {
    if (!amountRules.includes(rule) || typeof limit !== 'bigint' || typeof used !== 'bigint') continue
    const room = limit - used
    if (tightest === undefined || room < tightest.room) tightest = { rule, room }
  }
  return tightest?.rule ?? null
}

const priceUsd = ({ quote }: TokenTerms) => formatUnits(quote.price, 8)
const impact = (fair: bigint, given: bigint) => (fair === 0n ? 0 : Number(((fair - given) * BPS) / fair))

/** What an open or add of an amount would bring: by the venue's quote, or by the oracle where there is no quoter. */
export function estimateBuy(token: TokenTerms, usdcAmount: bigint, maxSlippageBps: number) {
  const market = { price: token.quote.price, decimals: token.decimals }
  if (market.price === 0n) return undefined
  const fair = minimumTokenOut(usdcAmount, market, { maxSlippageBps: 0 })
  const fill = token.fills.get(usdcAmount)
  if (fill === undefined && token.fills.size > 0) return undefined
  const tokenOut = fill ?? fair
  return {
    source: fill === undefined ? ('oracle' as const) : ('venue' as const),
    tokenOut: `${tokenOut}`,
    priceUsd: priceUsd(token),
    priceImpactBps: impact(fair, tokenOut),
    suggestedMinTokenOut: `${(tokenOut * (BPS - BigInt(maxSlippageBps))) / BPS}`,
  }
}

/** What a reduce would bring: by the venue's quote, or by the oracle where there is no quoter. */
export function estimateSale(token: TokenTerms, { tokenIn, minUsdcOut }: { tokenIn: bigint; minUsdcOut: bigint }) {
  const market = { price: token.quote.price, decimals: token.decimals }
  if (market.price === 0n) return undefined
  const fair = worth(tokenIn, market)
  const usdcOut = token.sale?.tokenIn === tokenIn ? token.sale.usdcOut : undefined
  if (usdcOut === undefined && token.sale !== undefined) return undefined
  return {
    source: usdcOut === undefined ? ('oracle' as const) : ('venue' as const),
    usdcOut: `${usdcOut ?? fair}`,
    priceUsd: priceUsd(token),
    priceImpactBps: impact(fair, usdcOut ?? fair),
    minUsdcOut: `${minUsdcOut}`,
  }
}
