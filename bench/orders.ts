import { OrderCondition, OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import type { Address } from 'viem'
import { openBook } from '../src/keeper/book.ts'
import { newOrderEntry, type OrderEntry, triggersOf } from '../src/keeper/order-entry.ts'
import { createSqlStorage } from '../test/support/sqlite-storage.ts'
import { describeMachine, table, writeSection } from './results-file.ts'

// `npm run bench:orders`: measures what an idle cycle reads of the keeper's book at growing numbers of open orders.
// What it asks the node for is the same at every number: the prices, and a simulation of 16 orders. Writes its section
// of bench/results.md.

const SIZES = [100, 1_000, 10_000, 100_000]
const CYCLES = 500
const NOW = 1_800_000_000
const PRICE = 100n * 10n ** 8n
const TOKENS = Array.from({ length: 11 }, (_, index): Address => `0x${`${index + 1}`.padStart(40, '0')}`)

/** Returns an order of each kind in turn; none is due. */
function entryOf(index: number): OrderEntry {
  const condition = index % 4
  const entry = newOrderEntry({
    block: 1,
    orderId: `0x${index.toString(16).padStart(64, '0')}`,
    order: {
      agentId: BigInt(index),
      side: OrderSide.Reduce,
      token: TOKENS[index % TOKENS.length] as Address,
      positionId: BigInt(index),
      usdcAmount: 0n,
      exitBps: 10_000,
      exits: [],
      maxSlippageBps: 0,
      condition,
      price: { [OrderCondition.AtOrBelow]: PRICE / 2n, [OrderCondition.AtOrAbove]: 2n * PRICE }[condition] ?? 0n,
      trailBps: condition === OrderCondition.Trailing ? 5_000 : 0,
      validAfter: condition === OrderCondition.None ? BigInt(NOW) + 86_400n : 0n,
      validUntil: BigInt(NOW) + 864_000n,
      parts: 1,
      interval: 0n,
      key: 0n,
      deadline: BigInt(NOW),
      nonce: 0n,
    },
  })
  if (condition !== OrderCondition.Trailing) return entry
  return { ...entry, isUnchecked: false, ...triggersOf(entry.order, (3n * PRICE) / 2n) }
}

/** Returns the CPU of an idle cycle, in milliseconds. */
function measure(size: number): number {
  const sql = createSqlStorage()
  const { orders } = openBook(sql)
  for (let index = 0; index < size; index++) orders.put(entryOf(index))
  orders.wake(NOW, TOKENS)
  const cycle = () => {
    orders.wake(NOW, [])
    const selected = [
      ...orders.tokens().flatMap(token => [...orders.reached(token, PRICE, 480), ...orders.raised(token, PRICE, 480)]),
      ...orders.unchecked(480),
      ...orders.ended(NOW, 96),
      ...orders.batches(),
    ]
    if (selected.length > 0) throw new Error('An order was due.')
    orders.nextInTurn(16)
    orders.nextWakeAt()
  }
  for (let turn = 0; turn < CYCLES; turn++) cycle()
  const start = process.cpuUsage()
  for (let turn = 0; turn < CYCLES; turn++) cycle()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1_000 / CYCLES
}

const machine = describeMachine()
const milliseconds = SIZES.map(measure)
const ratio = (milliseconds.at(-1) as number) / (milliseconds[0] as number)
const section = [
  '## Open orders',
  '`npm run bench:orders`: what an idle cycle of the keeper reads of its book, in SQLite. What it asks the node for is the same at every number of orders: the prices, and a simulation of 16.',
  `Machine: ${machine}.`,
  table(
    ['open orders', 'CPU per cycle'],
    SIZES.map((size, index) => [size.toLocaleString('en'), `${milliseconds[index]?.toFixed(2)} ms`]),
  ),
  table(
    ['', 'measured', 'target', ''],
    [['100,000 orders, relative to 100', `${ratio.toFixed(2)} times`, '1.5 times', ratio <= 1.5 ? 'met' : 'missed']],
  ),
].join('\n\n')
console.log(section)
writeSection('orders', section)
