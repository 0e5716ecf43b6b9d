import { ORDER_FIELDS } from '@agent-trading-service/protocol/order-rules'
import { type Address, formatUnits, type Hex } from 'viem'
import { row } from './refusal.ts'

const ORACLE_DECIMALS = 8

/** Orders that cannot be placed, or that wait. Prices have 8 decimals, times are Unix seconds. */
export const orderErrors = {
  INVALID_ORDER: row<{ field: bigint; value: bigint }>({
    sentence: ({ field, value }) => `${ORDER_FIELDS[Number(field)]} of the order is ${value}, which no order may have.`,
    remedy: 'Request the quote of the order again: it explains the fields. Then sign the new one.',
  }),
  ORDER_NOT_FOUND: row<{ agentId: bigint; orderId: Hex }>({
    status: 404,
    sentence: ({ agentId, orderId }) => `Agent ${agentId} has placed no order ${orderId}.`,
    remedy: 'List its orders.',
  }),
  ORDER_BOOK_NOT_SET: row({
    status: 503,
    sentence: () =>
      'The contracts of this deployment lack the OrderBook, which keeps orders that wait for a price or a time.',
    remedy: 'Trade with intents and exit ladders; orders need another deployment.',
  }),
  TOO_MANY_OPEN_ORDERS: row<{ agentId: bigint; max: bigint }>({
    sentence: ({ agentId, max }) => `Agent ${agentId} has ${max} open orders, the maximum.`,
    remedy: 'Cancel an order, or sign the key of one to replace it.',
  }),
  POSITION_TOKEN_MISMATCH: row<{ positionId: bigint; expected: Address; provided: Address }>({
    sentence: ({ positionId, expected, provided }) =>
      `The order names the token ${provided}; position ${positionId} is in ${expected}.`,
    remedy: "Sign the position's token.",
  }),
  ORDER_NOT_OPEN: row<{ orderId: Hex }>({
    sentence: ({ orderId }) => `The order ${orderId} was never placed with this content, or it has ended.`,
    remedy: 'Sign a new order.',
  }),
  ORDER_IS_VOID: row<{ orderId: Hex }>({
    sentence: ({ orderId }) => `The order ${orderId} ended with a stop, a new signer or a new owner.`,
    remedy: 'Sign a new order once the agent may trade.',
  }),
  ORDER_EXPIRED: row<{ orderId: Hex; validUntil: bigint }>({
    sentence: ({ orderId, validUntil }) => `The order ${orderId} expired at ${validUntil}.`,
    remedy: 'Sign a new order.',
  }),
  ORDER_NOT_DUE: row<{ orderId: Hex; dueAt: bigint }>({
    sentence: ({ orderId }) => `The next part of the order ${orderId} is not due yet.`,
    remedy: 'Wait until then.',
    retryable: true,
  }),
  CONDITION_NOT_MET: row<{ orderId: Hex; price: bigint; trigger: bigint }>({
    sentence: ({ orderId, price, trigger }) =>
      `The oracle price is ${formatUnits(price, ORACLE_DECIMALS)} USD; the order ${orderId} waits for ${trigger === 0n ? 'its activation' : `${formatUnits(trigger, ORACLE_DECIMALS)} USD`}.`,
    remedy: 'Wait for the price.',
    retryable: true,
  }),
  STOP_ABOVE_PRICE: row<{ price: bigint; oraclePrice: bigint }>({
    sentence: ({ price, oraclePrice }) =>
      `A stop at ${formatUnits(price, ORACLE_DECIMALS)} USD would sell at once: the oracle price is ${formatUnits(oraclePrice, ORACLE_DECIMALS)} USD.`,
    remedy:
      'Send a price below the present one. To sell at a higher price, place an order of type takeProfit; to sell now, reduce the position.',
  }),
  PRICE_BEFORE_ORDER: row<{ orderId: Hex; observedAt: bigint; placedAt: bigint }>({
    sentence: ({ orderId }) => `The oracle price is older than the order ${orderId}, which waits for a newer one.`,
    remedy: 'Wait for the next posted price.',
    retryable: true,
  }),
}
