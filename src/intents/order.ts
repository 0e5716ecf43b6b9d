import { isBuy } from '@agent-trading-service/protocol/order-rules'
import { type Order, OrderEnd, orderMessage } from '@agent-trading-service/protocol/order-typed-data'
import type { Address, Hex } from 'viem'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import type { Call } from '../call.ts'
import { priceNeedOf } from '../chain/carried-prices.ts'
import type { TradingChain } from '../chain/configured-chain.ts'
import { encodeCall } from '../chain/encode-and-decode-call.ts'
import { getOrderTerms } from '../chain/read-order-terms.ts'
import { tokenBySymbol } from '../chain/token-symbols.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import { requestingAgent } from '../executor/requester.ts'
import { transactionRequest } from '../rpc/requests.ts'
import type { MessageKindName } from './message-kinds.ts'
import { relaySignedBody, repeatingAgent, type SignedBody } from './relay-signed-body.ts'
import { orderRefusal } from './stop-loss.ts'
import { assertLadderShape } from './trade-intent.ts'

/** Places an order that an agent's signer has signed. Throws AGENT_NOT_FOUND and the refusals of `relaySignedBody`. */
export async function placeOrder(
  context: Context,
  call: Call,
  terms: Omit<Order, 'token'>,
  { symbol, ...signed }: Signed & { symbol: string },
) {
  const { trading, history } = context
  const { agentId, exits, deadline, nonce } = terms
  if (exits.length > 0) assertLadderShape(exits)
  const kind = isBuy(terms) ? 'PlaceOrder' : 'PlaceReduction'
  const placed = await relay(context, call, { kind, agentId, nonce }, async () => {
    const order = { ...terms, token: await tokenBySymbol(trading, symbol) }
    return {
      ...signed,
      message: { ...orderMessage(order), deadline },
      exits,
      data: accepted => encodeCall(orderBookAbi, 'placeOrder', [order, accepted]),
      token: order.token,
      refusalOfTerms: () => orderRefusal(trading, order),
      findExecuted: async ({ digest }) => {
        const { order: known } = await history.order(agentId, digest)
        return known && { hash: known.transactionHash, blockNumber: known.blockNumber }
      },
    }
  })
  return presentReceipt(placed, { agentId, orderId: placed.digest, state: 'open' })
}

type CancellationMessage = { agentId: bigint; orderId: Hex; deadline: bigint; nonce: bigint }
type SignedCancellation = Pick<Signed, 'signature'> & CancellationMessage

/** Cancels an open order. Throws AGENT_NOT_FOUND and the refusals of `relaySignedBody`. */
export async function cancelOrder(context: Context, call: Call, signed: SignedCancellation) {
  const { signature, agentId, orderId, deadline, nonce } = signed
  const message = { agentId, orderId, deadline, nonce }
  const cancelled = await relay(context, call, { kind: 'CancelOrder', agentId, nonce }, async () => ({
    signature,
    message,
    data: accepted => encodeCall(orderBookAbi, 'cancelOrder', [message, accepted]),
    findExecuted: async () => {
      const { order } = await context.history.order(agentId, orderId)
      const end = order?.end?.reason === OrderEnd.Cancelled ? order.end : undefined
      if (end === undefined || !(await carries(context.trading, end.transactionHash, message))) return undefined
      return { hash: end.transactionHash, blockNumber: end.blockNumber }
    },
  }))
  return presentReceipt(cancelled, { agentId, orderId, state: 'cancelled' })
}

/**
 * Whether a transaction carries a cancellation: another one may have ended the same order. Throws HISTORY_UNAVAILABLE.
 */
async function carries({ rpc }: TradingChain, hash: Hex, message: CancellationMessage): Promise<boolean> {
  const transaction = await rpc.read(transactionRequest(hash), found => found !== null)
  if (transaction === null) throw refuse('HISTORY_UNAVAILABLE')
  const content = encodeCall(orderBookAbi, 'cancelOrder', [message, '0x']).slice(SELECTOR_CHARS, MESSAGE_CHARS)
  return transaction.input.includes(content)
}

/** Of calldata in hex: the selector, and with it the four words of a cancellation. */
const SELECTOR_CHARS = 10
const MESSAGE_CHARS = SELECTOR_CHARS + 4 * 64

type Signed = { signature: Hex; note?: string | undefined }

/**
 * What differs between the messages to the order book. `data` is its calldata for a signature in the form that it
 * accepts.
 */
type OrderMessage = Signed &
  Pick<SignedBody, 'message' | 'exits' | 'refusalOfTerms' | 'findExecuted'> & {
    data: (signature: Hex) => Hex
    /** The token whose price it needs. */
    token?: Address
  }

function relay(
  context: Context,
  call: Call,
  { kind, agentId, nonce }: { kind: MessageKindName; agentId: bigint; nonce: bigint },
  read: () => Promise<OrderMessage>,
) {
  return relaySignedBody(context, call, { kind, nonce, by: repeatingAgent(agentId) }, async () => {
    const { data, token, ...message } = await read()
    const terms = await getOrderTerms(context.trading, agentId)
    const { agent, domain, block } = terms
    return {
      ...message,
      terms,
      by: { as: 'signer', agent: requestingAgent(agentId, agent, block), account: agent.signer },
      callWith: accepted => ({ to: domain.verifyingContract, data: data(accepted) }),
      prices: token && priceNeedOf(context.trading, [token]),
    }
  })
}

const presentReceipt = <State extends 'open' | 'cancelled'>(
  { hash, blockNumber, warnings }: Awaited<ReturnType<typeof relay>>,
  { agentId, orderId, state }: { agentId: bigint; orderId: Hex; state: State },
) => ({
  agentId: `${agentId}`,
  orderId,
  state,
  transactionHash: hash,
  blockNumber: `${blockNumber}`,
  ...(warnings && { warnings }),
})
