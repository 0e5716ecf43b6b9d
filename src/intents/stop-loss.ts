import type { Check } from '@agent-trading-service/protocol/check'
import { defaultLadder } from '@agent-trading-service/protocol/exit-ladder-validation'
import type { ExitRule } from '@agent-trading-service/protocol/exit-rule'
import { isBuy, isFallOrder, partExitBps } from '@agent-trading-service/protocol/order-rules'
import type { Order } from '@agent-trading-service/protocol/order-typed-data'
import {
  type LadderedPurchase,
  type LossAtStop,
  mostRoundTripBps,
  orderDistanceChecks,
  roundTripCostBps,
  stopDistanceBps,
  stopDistanceChecks,
  usdcAmountForLoss,
} from '@agent-trading-service/protocol/stop-loss'
import type { Address } from 'viem'
import type { TradingChain } from '../chain/configured-chain.ts'
import { getTerms } from '../chain/read-intent-terms.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import { humanUsdc, parseUsdc } from '../resources/primitives.ts'

const UINT256_END = 1n << 256n

/** A purchase that is sized by what its stop-losses may lose, in human USDC. */
type SizedByLoss = {
  maxLossUsdc: string
  maxSlippageBps: number
  token: Address | undefined
  exits: readonly ExitRule[] | undefined
}

/** Returns the amount whose stop-losses lose at most `maxLossUsdc`, in base units. Throws INVALID_REQUEST, INVALID_AMOUNT. */
export async function amountForLoss(
  trading: TradingChain,
  agentId: bigint,
  { token, maxSlippageBps, maxLossUsdc: given, ...purchase }: SizedByLoss,
): Promise<bigint> {
  if (token === undefined) throw refuse('INVALID_REQUEST', { problem: 'maxLossUsdc needs the symbol to buy' })
  const maxLoss = parseUsdc(given, 'maxLossUsdc')
  const exits = purchase.exits ?? defaultLadder((await getTerms(trading, agentId)).terms.trackConfig)
  const atNoCost = usdcAmountForLoss(maxLoss, exits, 0n)
  if (atNoCost === undefined)
    throw refuse('INVALID_REQUEST', {
      problem: 'maxLossUsdc needs a stop-loss, because without one the loss has no bound',
    })
  const invalid = (problem: string) => refuse('INVALID_AMOUNT', { field: 'maxLossUsdc', given, problem })
  if (atNoCost >= UINT256_END) throw invalid('the amount that loses it is above 2^256')
  // A smaller amount costs no more in proportion.
  const { terms } = await getTerms(trading, agentId, { token, usdcAmount: atNoCost })
  const roundTrip = roundTripCostBps(terms, atNoCost) ?? mostRoundTripBps(maxSlippageBps)
  const amount = usdcAmountForLoss(maxLoss, exits, roundTrip) ?? 0n
  if (amount === 0n) throw invalid('no trade is that small')
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

/** Returns the refusal of an order whose stop is within the cost of buying and selling; undefined if it is further away. */
export async function orderStopRefusal(trading: TradingChain, order: Order): Promise<Refusal | undefined> {
  const { agentId, positionId } = order
  if (order.exits.length > 0) return stopRefusal(trading, order)
  if (isBuy(order) || !isFallOrder(order)) return undefined
  const { terms } = await getTerms(trading, agentId, { positionId, exitBps: partExitBps(order, 1) })
  return refusalOf(orderDistanceChecks(terms, order))
}

function refusalOf([check]: readonly Check[]): Refusal | undefined {
  if (check?.limit === undefined || check.used === undefined || check.pass) return undefined
  return refuse('STOP_WITHIN_COSTS', { stopLossBps: check.used, atLeastBps: check.limit })
}

/** Presents what the stop-losses of a purchase would lose, for its quote. */
export const presentLossAtStop = ({ usdc, shareOfEquityBps, shareOfDailyLimitBps }: LossAtStop) => ({
  lossAtStopUsdc: `${usdc}`,
  ...(shareOfEquityBps !== undefined && { lossAtStopOfEquityBps: Number(shareOfEquityBps) }),
  lossAtStopOfDailyLimitBps: shareOfDailyLimitBps === undefined ? null : Number(shareOfDailyLimitBps),
})

const LIMIT_NAMES = { dailyLoss: 'daily losses', maxDrawdown: 'drawdown' }

/** Returns a warning for each limit that the loss alone reaches. */
export const lossWarnings = ({ usdc, breaks }: LossAtStop): string[] =>
  breaks.map(
    ({ limit, leftUsdc }) =>
      `If the stop fires, the agent loses about ${humanUsdc(usdc)} USDC; the limit of ${LIMIT_NAMES[limit]} leaves ${humanUsdc(leftUsdc)} USDC, after which it buys nothing more.`,
  )
