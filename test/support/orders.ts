import { TriggerType } from '@agent-trading-service/protocol/enums'
import { type Order, OrderCondition, OrderSide, orderIdOf } from '@agent-trading-service/protocol/order-typed-data'
import { digestOf } from '@agent-trading-service/protocol/typed-data'
import type { Hex } from 'viem'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { chain, type Trader } from './actors.ts'
import { node } from './history-oracle.ts'
import { deployment } from './surfaces.ts'

// Orders that reach the chain without the service, as any account may send them.

const { accounts, contracts, tokens } = deployment
export const orderBook = { address: contracts.OrderBook as Hex, abi: orderBookAbi } as const
const domain = {
  name: 'Service OrderBook',
  version: '1',
  chainId: BigInt(deployment.chainId),
  verifyingContract: orderBook.address,
} as const

/** An order on the chain. */
export type Placed = { orderId: Hex; order: Order }

const nonceOf = (agentId: bigint) =>
  node.readContract({ address: contracts.TradeRouter, abi: tradeRouterAbi, functionName: 'nonces', args: [agentId] })

export const chainTime = async (): Promise<bigint> => (await node.getBlock()).timestamp

/**
 * Places an order to reduce a position, or to open one if no position is given, of 100 USDC with a stop-loss at -20 %;
 * whatever else is said of it in `fields`. Returns it once it is mined.
 */
export async function placeOrder(
  { agentId, account }: Trader,
  { symbol = 'NVDA', ...fields }: Partial<Order> & { symbol?: string },
): Promise<Placed> {
  const isSale = fields.positionId !== undefined
  const now = await chainTime()
  const order: Order = {
    agentId: BigInt(agentId),
    side: isSale ? OrderSide.Reduce : OrderSide.Open,
    token: tokens[symbol] as Hex,
    positionId: 0n,
    usdcAmount: isSale ? 0n : 100_000_000n,
    exitBps: isSale ? 10_000 : 0,
    exits: isSale ? [] : [{ triggerType: TriggerType.StopLoss, triggerBps: -2_000n, exitBps: 10_000 }],
    maxSlippageBps: isSale ? 0 : 100,
    condition: OrderCondition.None,
    price: 0n,
    trailBps: 0,
    validAfter: 0n,
    validUntil: now + 86_400n,
    parts: 1,
    interval: 0n,
    key: 0n,
    deadline: now + 300n,
    nonce: await nonceOf(BigInt(agentId)),
    ...fields,
  }
  const orderId = orderIdOf(domain, order)
  const signature = await account.sign({ hash: orderId })
  await chain.send(accounts.payer, { ...orderBook, functionName: 'placeOrder', args: [order, signature] })
  return { orderId, order }
}

/** Cancels an order, as its signer signs it. */
export async function cancelOrder({ account }: Trader, { orderId, order: { agentId } }: Placed): Promise<void> {
  const intent = {
    agentId,
    orderId,
    deadline: (await chainTime()) + 300n,
    nonce: await nonceOf(agentId),
  }
  const signature = await account.sign({ hash: digestOf(domain, 'CancelOrder', intent) })
  await chain.send(accounts.payer, { ...orderBook, functionName: 'cancelOrder', args: [intent, signature] })
}

/** Executes the part of an order that is due, as any account may. */
export const executeOrder = ({ order }: Placed) =>
  chain.send(accounts.payer, { ...orderBook, functionName: 'executeOrder', args: [order] })
