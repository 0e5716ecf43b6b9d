import { setTimeout as sleep } from 'node:timers/promises'
import { TriggerType } from '@agent-trading-service/protocol/enums'
import { type Order, OrderCondition, OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import {
  type Address,
  encodeFunctionData,
  type Hex,
  keccak256,
  numberToHex,
  parseEther,
  parseEventLogs,
  toHex,
} from 'viem'
import { privateKeyToAddress } from 'viem/accounts'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import type { Devnet } from '../../devnet/index.ts'
import { presentOrderBody } from '../../src/resources/order-input.ts'
import { listen } from '../support/event-stream.ts'
import { type Random, randomOf } from '../support/seeded-random.ts'
import { eventKey, type OrderEvent, type OrderRun, type ShownOrder } from './violations.ts'

// Orders under faults: what agents place, a market that moves and a second keeper, and what chain and service say of it
// all.

/** The tokens whose prices move. The pools stay, so prices move by less than an order's slippage. */
const SYMBOLS = ['NVDA', 'AAPL', 'MSFT']
const MOVE_BPS = 60
const MOVE_INTERVAL_MS = 700
const OUTSIDER_SHARE = 0.3
const MAX_BATCH = 8
const MAX_GAS = 25_000_000
/**
 * Prices after the faults, relative to those at the start: stops and trailing stops fire, then what waits for a higher
 * price.
 */
const LAST_MOVES_BPS = [-150, 150, 0, 0]
const INTERVAL_SECONDS = 60
const SETTLE_TIMEOUT_MS = 90_000
const DAY_SECONDS = 86_400

/** An order to place: what the signer signs, and the body that carries it. */
export type OrderDraft = { order: Order; body: object }

/**
 * Returns an order of some kind: of the agent's position, if it has one, or to open one. `start` is the price at the
 * start.
 */
export function draftOrder(
  random: Random,
  terms: { agentId: bigint; nonce: bigint; deadline: bigint; positionId: bigint | undefined; positionSymbol: string },
  { tokens, startOf }: { tokens: Record<string, Address>; startOf(symbol: string): bigint },
): OrderDraft {
  const { positionId, positionSymbol, ...signed } = terms
  const isSale = positionId !== undefined && random.chance(0.7)
  const symbol = isSale ? positionSymbol : random.pick(SYMBOLS.filter(each => each !== positionSymbol))
  const at = (bps: number) => (startOf(symbol) * BigInt(10_000 + bps)) / 10_000n
  const now = BigInt(Math.floor(Date.now() / 1_000))
  const inParts = { parts: random.integer(2, 3), interval: BigInt(INTERVAL_SECONDS) }
  const conditions = [
    { condition: OrderCondition.AtOrBelow, price: at(-random.integer(10, MOVE_BPS)) },
    { condition: OrderCondition.AtOrAbove, price: at(random.integer(10, MOVE_BPS)) },
    inParts,
    ...(isSale
      ? [
          { condition: OrderCondition.Trailing, trailBps: random.integer(100, 200) },
          { condition: OrderCondition.Trailing, trailBps: random.integer(100, 200), ...inParts },
          { validAfter: now + BigInt(random.integer(5, 90)) },
        ]
      : []),
  ]
  const order: Order = {
    ...signed,
    side: isSale ? OrderSide.Reduce : OrderSide.Open,
    token: tokens[symbol] as Address,
    positionId: isSale ? positionId : 0n,
    usdcAmount: isSale ? 0n : BigInt(random.integer(10, 40)) * 1_000_000n,
    exitBps: isSale ? random.integer(1_000, 10_000) : 0,
    exits: isSale ? [] : [{ triggerType: TriggerType.StopLoss, triggerBps: -2_000n, exitBps: 10_000 }],
    maxSlippageBps: isSale ? 0 : 150,
    condition: OrderCondition.None,
    price: 0n,
    trailBps: 0,
    validAfter: 0n,
    validUntil: now + BigInt(DAY_SECONDS),
    parts: 1,
    interval: 0n,
    key: random.chance(0.3) ? BigInt(random.integer(1, 2)) : 0n,
    ...random.pick(conditions),
  }
  return { order, body: presentOrderBody(order, symbol) }
}

/** Moves prices and lets a second keeper execute orders while agents trade, until it is closed. */
export async function openMarket({ client, deployment, increaseTime }: Devnet, { seed }: { seed: number }) {
  const { contracts, tokens, accounts } = deployment
  const oracle = { address: contracts.PriceOracle, abi: priceOracleAbi }
  const book = { address: contracts.OrderBook as Address, abi: orderBookAbi }
  const assets = Object.values(tokens)
  const from = await client.getBlockNumber()
  const peeked = await Promise.all(
    assets.map(asset => client.readContract({ ...oracle, functionName: 'peekPrice', args: [asset] })),
  )
  const start = new Map(assets.map((asset, index) => [asset, peeked[index]?.[0] ?? 0n]))
  const observed = new Map(assets.map((asset, index) => [asset, Number(peeked[index]?.[1] ?? 0n)]))

  const outsider = privateKeyToAddress(keccak256(toHex(`keeper of ${seed}`)))
  const rpc = (method: string, ...params: unknown[]) =>
    client.request<{ Method: string; Parameters: unknown[]; ReturnType: unknown }>({ method, params })
  await rpc('anvil_setBalance', outsider, numberToHex(parseEther('100')))
  for (const account of [outsider, accounts.priceSetter.address]) await rpc('anvil_impersonateAccount', account)

  /**
   * Sends a transaction at the next nonce, unless another one is pending there, and does not wait for it: a reorg may
   * remove it.
   */
  const send = async (from: Address, to: Address, data: Hex) => {
    const nonce = numberToHex(await client.getTransactionCount({ address: from }))
    const gas = numberToHex(MAX_GAS)
    await rpc('eth_sendTransaction', { from, to, data, nonce, gas }).catch(() => {})
  }
  const execute = (orders: Order[]) =>
    send(outsider, book.address, encodeFunctionData({ ...book, functionName: 'executeOrders', args: [orders] }))
  const post = (moveOf: () => number) => {
    const prices = assets.map(asset => ((start.get(asset) ?? 0n) * BigInt(10_000 + moveOf())) / 10_000n)
    const data = encodeFunctionData({ ...oracle, functionName: 'setPrices', args: [assets, prices] })
    return send(accounts.priceSetter.address, oracle.address, data)
  }
  const postedAt = async () =>
    (await client.readContract({ ...oracle, functionName: 'peekPrice', args: [assets[0] as Address] }))[1]

  /** Posts all prices and waits until they are mined. */
  async function postMined(bps: number) {
    for (const before = await postedAt(); (await postedAt()) === before; await sleep(MOVE_INTERVAL_MS))
      await post(() => bps)
  }

  const logs = async <name extends 'OrderPlaced' | 'OrderExecuted' | 'OrderEnded' | 'OrderPeakRaised'>(
    eventName: name,
  ) => client.getContractEvents({ ...book, eventName, fromBlock: from + 1n, strict: true })

  /** Returns the orders of the run that have not ended. */
  async function openOrders(): Promise<Order[]> {
    const [placed, executed, ended] = await Promise.all([
      logs('OrderPlaced'),
      logs('OrderExecuted'),
      logs('OrderEnded'),
    ])
    const gone = new Set(ended.map(({ args }) => args.orderId))
    const partsOf = (orderId: Hex) => executed.filter(({ args }) => args.orderId === orderId).length
    return placed
      .filter(({ args: { orderId, order } }) => !gone.has(orderId) && partsOf(orderId) < order.parts)
      .map(({ args }) => args.order)
  }

  /** Returns how many of the orders anyone could execute at this moment. */
  async function dueOrders(): Promise<number> {
    const orders = await openOrders()
    const pages = Array.from({ length: Math.ceil(orders.length / MAX_BATCH) }, (_, page) =>
      orders.slice(MAX_BATCH * page, MAX_BATCH * (page + 1)),
    )
    const results = await Promise.all(
      pages.map(page =>
        client.simulateContract({ ...book, account: outsider, functionName: 'executeOrders', args: [page] }),
      ),
    )
    return results.flatMap(({ result: [executed] }) => executed.filter(Boolean)).length
  }

  const random = randomOf('market', seed)
  let isOpen = true
  async function move() {
    await post(() => random.integer(-MOVE_BPS, MOVE_BPS))
    const orders = random.chance(OUTSIDER_SHARE) ? await openOrders() : []
    if (orders.length > 0) await execute(orders.slice(0, MAX_BATCH))
  }
  const moving = (async () => {
    // The node may be between two branches.
    for (; isOpen; await sleep(MOVE_INTERVAL_MS)) await move().catch(() => {})
  })()
  const close = async () => {
    isOpen = false
    await moving
  }

  return {
    close,
    startOf: (symbol: string) => start.get(tokens[symbol] as Address) ?? 0n,

    /**
     * Opens a stream, with which the event log starts. Returns the id after which a stream resumes at the start of the
     * run.
     */
    async startEventLog(url: string): Promise<string> {
      for (;;) {
        const response = await fetch(`${url}/events`)
        if (response.status === 200) {
          const stream = listen(response)
          await stream.open()
          await stream.leave()
          return stream.lastEventId()
        }
        await response.body?.cancel()
        await sleep(MOVE_INTERVAL_MS)
      }
    },

    /** Stops the moves of the run, makes the last ones, and returns how many due orders the keeper left each time. */
    async settle(): Promise<number> {
      await close()
      let left = 0
      for (const bps of LAST_MOVES_BPS) {
        await increaseTime(INTERVAL_SECONDS + 1)
        await postMined(bps)
        const until = Date.now() + SETTLE_TIMEOUT_MS
        for (left = 1; left > 0 && Date.now() < until; ) {
          await sleep(MOVE_INTERVAL_MS)
          left = await dueOrders()
        }
        if (left > 0) return left
      }
      return left
    },

    /** Reads what the chain and the service say about the orders of the run, once no block follows. */
    async record(
      url: string,
      { left, streamed = '' }: { left: number; streamed: string | undefined },
    ): Promise<OrderRun> {
      for (;;) {
        const events = await readEvents()
        const agentIds = [...new Set(events.flatMap(({ name, agentId }) => (name === 'OrderPlaced' ? [agentId] : [])))]
        const shown = (await Promise.all(agentIds.map(agentId => readShown(url, agentId)))).flat()
        const run = { events, shown, streamed: await readStreamed(url, streamed, events), left }
        // The node may have been at a block when it was told to stop.
        if ((await readEvents()).length === events.length) return run
      }
    },
  }

  /**
   * Reads the events of the order book, oldest first, each execution with the oracle's price at that place in the
   * block.
   */
  async function readEvents(): Promise<OrderEvent[]> {
    const [posted, book_] = await Promise.all([
      client.getLogs({ address: oracle.address, fromBlock: from + 1n }),
      client.getLogs({ address: book.address, fromBlock: from + 1n }),
    ])
    const all = parseEventLogs({ abi: [...priceOracleAbi, ...orderBookAbi], logs: [...posted, ...book_] }).sort(
      (a, b) => (a.blockNumber === b.blockNumber ? a.logIndex - b.logIndex : Number(a.blockNumber - b.blockNumber)),
    )
    const blocks = [...new Set(all.map(({ blockNumber }) => blockNumber))]
    const times = new Map(
      await Promise.all(
        blocks.map(
          async blockNumber => [blockNumber, Number((await client.getBlock({ blockNumber })).timestamp)] as const,
        ),
      ),
    )
    const maxAges = new Map(
      await Promise.all(
        assets.map(
          async asset =>
            [asset, Number(await client.readContract({ ...oracle, functionName: 'maxAgeOf', args: [asset] }))] as const,
        ),
      ),
    )
    const prices = new Map(
      assets.map(asset => [asset, { price: start.get(asset) ?? 0n, at: observed.get(asset) ?? 0 }]),
    )
    const placed = new Map<Hex, Order>()
    return all.flatMap((log): OrderEvent[] => {
      const { eventName, args, transactionHash: hash, blockNumber } = log
      const timestamp = times.get(blockNumber) ?? 0
      if (eventName === 'PriceUpdated' || eventName === 'PriceForced') {
        const { asset, price, observedAt } = args as { asset: Address; price: bigint; observedAt?: bigint }
        prices.set(asset, { price, at: Number(observedAt ?? timestamp) })
      }
      if (!('orderId' in args)) return []
      const { orderId } = args
      if (eventName === 'OrderPlaced') placed.set(orderId, args.order)
      const order = placed.get(orderId)
      if (order === undefined) return [] // of an earlier run
      const known = { orderId, order, agentId: `${order.agentId}`, hash, timestamp }
      const price = prices.get(order.token)
      const maxAge = maxAges.get(order.token) ?? 0
      switch (eventName) {
        case 'OrderPlaced':
          return [{ ...known, name: eventName, peak: args.peak }]
        case 'OrderPeakRaised':
          return [{ ...known, name: eventName, peak: args.peak }]
        case 'OrderExecuted':
          return [
            {
              ...known,
              name: eventName,
              part: Number(args.part),
              price: price?.price ?? 0n,
              observedAt: price?.at ?? 0,
              maxAge,
            },
          ]
        case 'OrderEnded':
          return [{ ...known, name: eventName, reason: Number(args.reason) }]
        default:
          return []
      }
    })
  }

  /** Reads all orders of an agent that the service lists. */
  async function readShown(url: string, agentId: string): Promise<ShownOrder[]> {
    const shown: ShownOrder[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query = new URLSearchParams({ limit: '100', ...(cursor && { cursor }) })
      const page = (await (await fetch(`${url}/agents/${agentId}/orders?${query}`)).json()) as {
        orders: ShownOrder[]
        nextCursor: string | null
        lagBlocks: number
      }
      if (page.lagBlocks > 0) {
        await sleep(MOVE_INTERVAL_MS)
        continue
      }
      shown.push(...page.orders)
      cursor = page.nextCursor
    }
    return shown
  }

  /** Reads the events of orders from the stream after an event, until it has as many as the chain, or a timeout. */
  async function readStreamed(url: string, after: string, events: readonly OrderEvent[]): Promise<string[]> {
    const expected = events.filter(({ name }) => name !== 'OrderPeakRaised').length
    const earlier = await client.getContractEvents({ ...book, eventName: 'OrderPlaced', fromBlock: 0n, toBlock: from })
    const ofEarlierRuns = new Set(earlier.map(({ args }) => args.orderId))
    const timeout = AbortSignal.timeout(SETTLE_TIMEOUT_MS / 3)
    const response = await fetch(`${url}/events?lastEventId=${after}`, { signal: timeout })
    if (response.status !== 200) return [`${response.status} ${await response.text()}`]
    const stream = listen(response)
    const live = () => {
      const withdrawn = new Set(stream.events.flatMap(({ event, data }) => (event === 'reorg' ? data.withdrawn : [])))
      return stream.events.filter(
        ({ event, id, data }) => event === 'order' && !withdrawn.has(id) && !ofEarlierRuns.has(data.orderId),
      )
    }
    await stream.until(() => live().length >= expected).catch(() => {})
    return live().map(({ data }) => eventKey(data.type, data.orderId, data.transactionHash, data.part))
  }
}
