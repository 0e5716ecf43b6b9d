import { TriggerType } from '@agent-trading-service/protocol/enums'
import { type Order, OrderCondition, OrderSide, orderIdOf } from '@agent-trading-service/protocol/order-typed-data'
import { type Domain, domainAbi, toDomain } from '@agent-trading-service/protocol/typed-data'
import { type Address, encodeAbiParameters, encodeFunctionData, type Hex, keccak256, numberToHex, toHex } from 'viem'
import type { BenchAgent } from '../../bench/signed-intents.ts'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import type { Devnet } from '../../devnet/index.ts'

export type PlacedOrder = { orderId: Hex; order: Order }

const LIFETIME_SECONDS = 864_000n
const MAX_SLOTS = 32n
const WRITES_PER_REQUEST = 1_000
/** Above every nonce that is used. */
const FIRST_COPY = 2n ** 64n

/** Returns functions that place orders of an agent to buy a token for 1 USDC once its price has fallen. */
export function createOrderPlacer({ client, deployment, rpcUrl }: Devnet, symbol: string) {
  const { contracts, tokens, accounts } = deployment
  const book = { address: contracts.OrderBook as Address, abi: orderBookAbi }
  const token = tokens[symbol] as Address
  let domain: Domain | undefined

  /** Places an order that executes at `priceBps` of the present price, and waits until it is mined. */
  async function place({ agentId, account }: BenchAgent, priceBps: bigint): Promise<PlacedOrder> {
    domain ??= toDomain(
      await client.readContract({ address: book.address, abi: domainAbi, functionName: 'eip712Domain' }),
    )
    const [[price], nonce, { timestamp }] = await Promise.all([
      client.readContract({
        address: contracts.PriceOracle as Address,
        abi: priceOracleAbi,
        functionName: 'peekPrice',
        args: [token],
      }),
      client.readContract({
        address: contracts.TradeRouter as Address,
        abi: tradeRouterAbi,
        functionName: 'nonces',
        args: [agentId],
      }),
      client.getBlock(),
    ])
    const order: Order = {
      agentId,
      side: OrderSide.Open,
      token,
      positionId: 0n,
      usdcAmount: 1_000_000n,
      exitBps: 0,
      exits: [{ triggerType: TriggerType.StopLoss, triggerBps: -5_000n, exitBps: 10_000 }],
      maxSlippageBps: 100,
      condition: OrderCondition.AtOrBelow,
      price: (price * priceBps) / 10_000n,
      trailBps: 0,
      validAfter: 0n,
      validUntil: timestamp + LIFETIME_SECONDS,
      parts: 1,
      interval: 0n,
      key: 0n,
      deadline: timestamp + 300n,
      nonce,
    }
    const orderId = orderIdOf(domain, order)
    const signature = await account.sign({ hash: orderId })
    const from = accounts.executor.address
    const data = encodeFunctionData({ abi: orderBookAbi, functionName: 'placeOrder', args: [order, signature] })
    const rpc = (method: string, ...params: unknown[]) =>
      client.request<{ Method: string; Parameters: unknown[]; ReturnType: Hex }>({ method, params })
    await rpc('anvil_impersonateAccount', from)
    const hash = await rpc('eth_sendTransaction', { from, to: book.address, data, gas: numberToHex(1_000_000) })
    await rpc('anvil_stopImpersonatingAccount', from)
    const { status } = await client.waitForTransactionReceipt({ hash })
    if (status !== 'success') throw new Error('The order was not placed.')
    return { orderId, order }
  }

  /** Writes copies of an order, which differ in their nonce, into the storage of the order book. */
  async function copy(
    { orderId, order }: PlacedOrder,
    { from, to }: { from: number; to: number },
  ): Promise<PlacedOrder[]> {
    if (domain === undefined) throw new Error('No order was placed.')
    const { agentId } = order
    const ofAgent = await findOrdersOf(agentId, orderId)
    const value = await client.getStorageAt({ address: book.address, slot: slotOf(orderId, ofAgent) })
    const copies: PlacedOrder[] = []
    for (let start = from; start < to; start += WRITES_PER_REQUEST) {
      const page = Array.from({ length: Math.min(WRITES_PER_REQUEST, to - start) }, (_, index): PlacedOrder => {
        const copied = { ...order, nonce: FIRST_COPY + BigInt(start + index) }
        return { orderId: orderIdOf(domain as Domain, copied), order: copied }
      })
      const calls = page.map(({ orderId }, id) => ({
        jsonrpc: '2.0',
        id,
        method: 'anvil_setStorageAt',
        params: [book.address, slotOf(orderId, ofAgent), value],
      }))
      const headers = { 'content-type': 'application/json' }
      await (await fetch(rpcUrl, { method: 'POST', headers, body: JSON.stringify(calls) })).text()
      copies.push(...page)
    }
    return copies
  }

  /** Returns the storage slot of the mapping that has an agent's orders. */
  async function findOrdersOf(agentId: bigint, orderId: Hex): Promise<Hex> {
    for (let base = 0n; base < MAX_SLOTS; base++) {
      const ofAgent = slotOf(toHex(agentId, { size: 32 }), toHex(base, { size: 32 }))
      const value = await client.getStorageAt({ address: book.address, slot: slotOf(orderId, ofAgent) })
      if (BigInt(value ?? 0n) !== 0n) return ofAgent
    }
    throw new Error('The order book keeps its orders elsewhere.')
  }

  return { place, copy }
}

const slotOf = (key: Hex, slot: Hex): Hex =>
  keccak256(encodeAbiParameters([{ type: 'bytes32' }, { type: 'bytes32' }], [key, slot]))
