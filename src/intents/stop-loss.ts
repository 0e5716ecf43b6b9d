import type { Check, TradingTerms } from '@agent-trading-service/protocol/check'
import { maxExitSlippageBps } from '@agent-trading-service/protocol/fill-amounts'
import { isBuy, isFallOrder, partExitBps, partUsdcAmount } from '@agent-trading-service/protocol/order-rules'
import type { Order } from '@agent-trading-service/protocol/order-typed-data'
import { orderSizeChecks } from '@agent-trading-service/protocol/router-checks'
import {
  costBasisForLoss,
  type LadderedPurchase,
  type LossAtStop,
  mostRoundTripBps,
  orderDistanceChecks,
  type StoppedPosition,
  stopDistanceBps,
  stopDistanceChecks,
} from '@agent-trading-service/protocol/stop-loss'
import type { Address } from 'viem'
import type { TradingChain } from '../chain/configured-chain.ts'
import { getTerms } from '../chain/read-intent-terms.ts'
import type { Refusal } from '../errors/refusal.ts'
import { malformed, refuse } from '../errors/refuse.ts'
import { humanUsdc, parseUsdc } from '../resources/primitives.ts'

const UINT256_END = 1n << 256n

/** The position that a purchase increases, before it; one that the purchase opens has cost nothing. */
type SizedPosition = StoppedPosition & {
  terms: Pick<TradingTerms, 'extension'>
  /** The signed slippage, which counts only in a deployment without a trade policy. */
  maxSlippageBps: number
}

/**
 * Returns the amount of a purchase in base units: the given one, or the largest with which the stop-losses of the
 * position lose at most `maxLossUsdc`. Undefined if the request names neither. Throws INVALID_REQUEST, INVALID_AMOUNT.
 */
export async function purchaseAmount(
  { usdcAmount, maxLossUsdc }: { usdcAmount?: string | undefined; maxLossUsdc?: string | undefined },
  readPosition: () => Promise<SizedPosition>,
): Promise<bigint | undefined> {
  if (maxLossUsdc === undefined) return usdcAmount === undefined ? undefined : parseUsdc(usdcAmount)
  if (usdcAmount !== undefined) throw malformed('usdcAmount and maxLossUsdc both size the trade: send one of them')
  const maxLoss = parseUsdc(maxLossUsdc, 'maxLossUsdc')
  const { terms, maxSlippageBps, usdcCostBasis, exits } = await readPosition()
  const mostCost = costBasisForLoss(maxLoss, exits, maxExitSlippageBps(BigInt(maxSlippageBps), terms.extension))
  if (mostCost === undefined)
    throw malformed('maxLossUsdc needs a stop-loss, because without one the loss has no bound')
  const amount = mostCost - usdcCostBasis
  const invalid = (problem: string) => refuse('INVALID_AMOUNT', { field: 'maxLossUsdc', given: maxLossUsdc, problem })
  if (amount >= UINT256_END) throw invalid('the amount that loses it is above 2^256')
  if (amount <= 0n)
    throw invalid(
      usdcCostBasis === 0n ? 'no trade is that small' : 'the stop-losses of the position lose as much already',
    )
  return amount
}

/** Returns the refusal of a stop-loss within the cost of buying and selling; undefined if it is further away. */
export async function stopRefusal(
  trading: TradingChain,
  { agentId, token, ...purchase }: LadderedPurchase & { agentId: bigint; token: Address },
): Promise<Refusal | undefined> {
  const distance = stopDistanceBps(purchase.exits)
  // No fill within the slippage costs more, so the terms need not be read.
  if (distance === undefined || distance > mostRoundTripBps(purchase.maxSlippageBps)) return undefined
  const { terms } = await getTerms(trading, agentId, { token, usdcAmount: purchase.usdcAmount })
  return refusalOf(stopDistanceChecks(terms, purchase))
}

/**
 * Returns the refusal of an order to buy in parts below the smallest trade, which would be refused at every try, or of
 * one whose stop is within the cost of buying and selling; undefined for others.
 */
export async function orderRefusal(trading: TradingChain, order: Order): Promise<Refusal | undefined> {
  const { agentId, positionId, token } = order
  if (isBuy(order)) {
    const usdcAmount = partUsdcAmount(order, 1)
    const { terms } = await getTerms(trading, agentId, { token, usdcAmount })
    return refusalOf([...orderSizeChecks(terms, order), ...stopDistanceChecks(terms, { ...order, usdcAmount })])
  }
  if (!isFallOrder(order)) return undefined
  const { terms } = await getTerms(trading, agentId, { positionId, exitBps: partExitBps(order, 1) })
  return refusalOf(orderDistanceChecks(terms, order))
}

function refusalOf(checks: readonly Check[]): Refusal | undefined {
  for (const { pass, code, limit, used, after } of checks) {
    if (pass || limit === undefined) continue
    if (code === 'TRADE_TOO_SMALL' && after !== undefined)
      return refuse(code, { usdcAmount: after, minUsdcAmount: limit })
    if (code === 'STOP_WITHIN_COSTS' && used !== undefined)
      return refuse(code, { stopLossBps: used, atLeastBps: limit })
    if (code === 'STOP_ABOVE_PRICE' && used !== undefined) return refuse(code, { price: used, oraclePrice: limit })
  }
  return undefined
}

/** Presents what the stop-losses of a position would lose, for a quote. */
export const presentLossAtStop = ({ usdc, shareOfEquityBps, shareOfDailyLimitBps }: LossAtStop) => ({
  lossAtStopUsdc: `${usdc}`,
  ...(shareOfEquityBps !== undefined && { lossAtStopOfEquityBps: toInteger(shareOfEquityBps) }),
  lossAtStopOfDailyLimitBps: shareOfDailyLimitBps === undefined ? null : toInteger(shareOfDailyLimitBps),
})

/** JSON has no larger integers; only an amount that no check passes has such a share. */
const toInteger = (value: bigint) => Math.min(Number(value), Number.MAX_SAFE_INTEGER)

const LIMIT_NAMES = { dailyLoss: 'daily losses', maxDrawdown: 'drawdown' }

/** Returns a warning for each limit that the loss alone reaches. */
export const lossWarnings = ({ usdc, breaks }: LossAtStop): string[] =>
  breaks.map(
    ({ limit, leftUsdc }) =>
      `If the stop fires, the agent can lose ${humanUsdc(usdc)} USDC; the limit of ${LIMIT_NAMES[limit]} leaves ${humanUsdc(leftUsdc)} USDC, after which it buys nothing more.`,
  )
