import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { serializeOrder } from '@agent-trading-service/protocol/order-typed-data'
import { createPositionOpener, type PositionToOpen } from '../../bench/bulk-positions.ts'
import { childOf, cpuSeconds, residentMebibytes } from '../../bench/child-process.ts'
import { startCountingProxy } from '../../bench/counting-proxy.ts'
import { median } from '../../bench/load-generator.ts'
import { describeMachine, table, writeSection } from '../../bench/results-file.ts'
import { type BenchAgent, registerAgents } from '../../bench/signed-intents.ts'
import { bundleWorker, startWorkerd, type Workerd } from '../../bench/workerd.ts'
import { startDevnet } from '../../devnet/index.ts'
import { unlimitedGas, workerVars } from '../../devnet/worker-vars.ts'
import { type FiringTime, measureExits, measureOrder } from './exit-times.ts'
import { createOrderPlacer, type PlacedOrder } from './order-copies.ts'
import { answerForCopies } from './position-copies.ts'
import type { KeeperCounters } from './worker.ts'

// `npm run bench:scale [-- --positions 100,1000 --real 10000 --bulk 1000 --seconds 20 --print]`: measures the keeper at
// growing numbers of open positions. Prints a table, and writes its section of bench/results.md unless `--print` is
// given.
const { values } = parseArgs({
  options: {
    positions: { type: 'string', default: '100,1000,10000,100000' },
    /** Positions above this number are copies. */
    real: { type: 'string', default: '10000' },
    /** How many exits become due at once in the last row. */
    bulk: { type: 'string', default: '1000' },
    /** How long the idle keeper is measured. */
    seconds: { type: 'string', default: '20' },
    /** Where prices come from: `reports`, or posts of the updater. */
    source: { type: 'string', default: 'updater' },
    print: { type: 'boolean', default: false },
  },
})
const sizes = values.positions.split(',').map(Number)
const maxReal = Number(values.real)
const bulk = Math.min(Number(values.bulk), Math.floor(Math.min(maxReal, Math.max(...sizes)) / 3))
const seconds = Number(values.seconds)

const BASE_SYMBOLS = ['NVDA', 'AAPL', 'MSFT', 'AMZN', 'GOOGL']
/** The tokens of the positions that fire one by one. */
const TRIGGER_SYMBOLS = ['AMZN', 'GOOGL', 'META']
const BULK_SYMBOL = 'TSLA'
const ORDER_SYMBOL = 'COST'
/** The price of the one order that executes, and of all others. */
const NEAR_BPS = 9_900n
const FAR_ORDER_BPS = 5_000n
const ORDERS_PER_REQUEST = 1_000
const FAR_BPS = -5_000
const BULK_BPS = -150
const BULK_PRICE_BPS = 9_800
/**
 * Each price move fires the positions of one row: the price falls below their trigger, but not below that of the next
 * row.
 */
const ROUNDS = [
  { triggerBps: -150, priceBps: 9_800 },
  { triggerBps: -350, priceBps: 9_795 },
]
const BLOCK_SECONDS = 0.25
const IDLE_TURNS = 4
/** How many positions the comparison must pass before it reaches the corrupted row. */
const COMPARED_DISTANCE = 2_000
const FILL_TIMEOUT_MS = 900_000
/** How long the keeper reads the position of an executed exit. */
const AFTER_EXIT_MS = 61_000

const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${text}`)
const machine = describeMachine()
say(machine)
const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-scale-'))
const bundle = await bundleWorker(join(import.meta.dirname, 'worker.ts'), folder)
const isReports = values.source === 'reports'
const devnet = await startDevnet({
  priceSource: isReports ? 'reports' : 'updater',
  emptyBlockMs: 1_000 * BLOCK_SECONDS,
})
const anvil = childOf(process.pid, 'anvil')
const proxy = await startCountingProxy(devnet.rpcUrl)
const vars = { ...workerVars(devnet.deployment), ...unlimitedGas, RPC_URL: proxy.url }
const openAll = createPositionOpener(devnet)
const orders = createOrderPlacer(devnet, ORDER_SYMBOL)

let baseAgents: BenchAgent[] = []
/** The agents whose orders execute, one per row; the first one has all others. */
let orderAgents: BenchAgent[] = []
const open: PlacedOrder[] = []
/** The number of real positions, which is the id of the last one. */
let real = 0
let originals = { first: 1, originals: 1 }
/** The agents whose positions fire in a row, in the order of the rows. */
const triggerAgents: { firstId: number; round: (typeof ROUNDS)[number] }[] = []
let exitedAt = 0
/** The positions whose exits become due at once. */
let bulkIds: number[] = []

try {
  orderAgents = await registerAgents(devnet, sizes.length)
  const rows: Row[] = []
  for (const [index, size] of sizes.entries()) rows.push(await measureRow(size, index))
  report(rows)
} finally {
  await proxy.stop()
  await devnet.stop()
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}

type Row = Awaited<ReturnType<typeof measureRow>>

async function measureRow(size: number, index: number) {
  const isLast = index === sizes.length - 1
  const load = (loadavg()[0] ?? 0).toFixed(1)
  const before = performance.now()
  if (size <= maxReal) await openUpTo(size)
  else await answerForCopies(devnet, { real, ...originals, total: size })
  await placeUpTo(size)
  say(`${size}: opened after ${((performance.now() - before) / 1_000).toFixed(0)} s`)

  await sleep(Math.max(2_000, exitedAt + AFTER_EXIT_MS - Date.now()))
  const workerd: Workerd = await startWorkerd({ vars, persistTo: join(folder, 'state'), bundle })
  const counters = async (path = 'counters', positionId = 0) =>
    (await (await fetch(`${workerd.url}/bench/${path}?positionId=${positionId}`)).json()) as KeeperCounters
  try {
    const startedAt = performance.now()
    for (let start = 0; start < open.length; start += ORDERS_PER_REQUEST)
      await sendOrders(workerd, open.slice(start, start + ORDERS_PER_REQUEST))
    await counters('wake')
    while ((await counters()).cursor < size) {
      if (performance.now() - startedAt > FILL_TIMEOUT_MS) throw new Error('The keeper did not read all positions.')
      await sleep(250)
    }
    const fillSeconds = (performance.now() - startedAt) / 1_000
    const fillCpu = workerd.cpuSeconds()
    say(`${size}: read after ${fillSeconds.toFixed(1)} s`)
    await sleep(3_000)

    const idle = await measureIdle(workerd, counters)
    say(`${size}: idle ${JSON.stringify(idle)}`)
    const comparison = await measureComparison(counters, size)
    say(`${size}: comparison ${JSON.stringify(comparison)}`)
    const triggers = triggerAgents.shift()
    const times: FiringTime[] = []
    if (triggers)
      for (const [index, symbol] of TRIGGER_SYMBOLS.entries())
        times.push(
          await measureExits(devnet, {
            symbol,
            priceBps: triggers.round.priceBps,
            positionIds: [triggers.firstId + index],
          }),
        )
    say(`${size}: one trigger ${JSON.stringify(times)}`)
    const order = await orders.place(orderAgents[index] as BenchAgent, NEAR_BPS)
    await sendOrders(workerd, [order])
    await sleep(2_000) // a price of the second in which it was placed does not count
    const orderTime = await measureOrder(devnet, { symbol: ORDER_SYMBOL, priceBps: 9_800, orderId: order.orderId })
    say(`${size}: one order ${JSON.stringify(orderTime)}`)
    real += 1 // it opened a position
    const bulkTime =
      isLast && bulk > 0
        ? await measureExits(devnet, { symbol: BULK_SYMBOL, priceBps: BULK_PRICE_BPS, positionIds: bulkIds })
        : undefined
    if (bulkTime) say(`${size}: ${bulk} exits ${JSON.stringify(bulkTime)}`)
    exitedAt = Date.now()
    return {
      size,
      load,
      fillSeconds,
      fillCpu,
      idle,
      comparison,
      times,
      orderTime,
      bulkTime,
      mebibytes: residentMebibytes(workerd.pid),
    }
  } finally {
    await workerd.stop()
  }
}

/** Adds orders until there are `size`. None of them is due. */
async function placeUpTo(size: number): Promise<void> {
  if (open.length === 0) open.push(await orders.place(orderAgents[0] as BenchAgent, FAR_ORDER_BPS))
  open.push(...(await orders.copy(open[0] as PlacedOrder, { from: open.length, to: size })))
}

/** Tells the keeper of orders, as the index would. */
async function sendOrders(workerd: Workerd, placed: readonly PlacedOrder[]): Promise<void> {
  const body = JSON.stringify(placed.map(({ orderId, order }) => ({ orderId, order: serializeOrder(order) })))
  await (await fetch(`${workerd.url}/bench/orders`, { method: 'POST', body })).text()
}

/** Opens positions until there are `size`: some fire one by one, some together, and others not at all. */
async function openUpTo(size: number): Promise<void> {
  const isLastReal = !sizes.some(other => other > size && other <= maxReal)
  const hasCopies = sizes.some(other => other > maxReal)
  const rounds = ROUNDS.slice(0, isLastReal && hasCopies ? 2 : 1)
  const ofBulk = isLastReal ? bulk : 0
  const ofBase = size - real - rounds.length * TRIGGER_SYMBOLS.length - ofBulk
  const agentCount = Math.max(Math.ceil(ofBase / BASE_SYMBOLS.length), ofBulk - baseAgents.length)
  const added = await registerAgents(devnet, agentCount + rounds.length)
  const triggerAgentsAdded = added.splice(0, rounds.length)
  const positions: PositionToOpen[] = []
  for (const [index, agent] of triggerAgentsAdded.entries()) {
    const round = rounds[index] as (typeof ROUNDS)[number]
    triggerAgents.push({ firstId: real + positions.length + 1, round })
    for (const symbol of TRIGGER_SYMBOLS) positions.push({ agent, symbol, stopLossBps: round.triggerBps })
  }
  baseAgents = [...baseAgents, ...added]
  bulkIds = Array.from({ length: ofBulk }, (_, index) => real + positions.length + 1 + index)
  for (const agent of baseAgents.slice(0, ofBulk)) positions.push({ agent, symbol: BULK_SYMBOL, stopLossBps: BULK_BPS })
  originals = { first: real + positions.length + 1, originals: ofBase }
  for (let index = 0; index < ofBase; index++) {
    const agent = added[Math.floor(index / BASE_SYMBOLS.length)] as BenchAgent
    positions.push({ agent, symbol: BASE_SYMBOLS[index % BASE_SYMBOLS.length] as string, stopLossBps: FAR_BPS })
  }
  await openAll(positions)
  real += positions.length
}

type Counters = (path?: string, positionId?: number) => Promise<KeeperCounters>

/**
 * Measures the keeper while no exit is due; all figures are per cycle, CPU in milliseconds. Pauses the keeper
 * alternately, because the node's own CPU changes with the load of the machine.
 */
async function measureIdle(workerd: Workerd, counters: Counters) {
  const read = async () => ({
    ...(await counters()),
    ...proxy.counts(),
    worker: workerd.cpuSeconds(),
    node: cpuSeconds(anvil),
  })
  type Reading = Awaited<ReturnType<typeof read>>
  const during = async (ms: number) => {
    const [before, startedAt] = [await read(), performance.now()]
    await sleep(ms)
    const after = await read()
    const more = (name: Exclude<keyof Reading, 'isWrong'>) => after[name] - before[name]
    return { more, elapsed: (performance.now() - startedAt) / 1_000 }
  }
  const idle: Awaited<ReturnType<typeof during>>[] = []
  const paused: typeof idle = []
  for (let turn = 0; turn < IDLE_TURNS; turn++) {
    await counters('pause')
    paused.push(await during((seconds * 500) / IDLE_TURNS))
    await counters('wake')
    await sleep(1_000)
    idle.push(await during((seconds * 1_000) / IDLE_TURNS))
  }
  const sumOf = (parts: typeof idle, name: Exclude<keyof Reading, 'isWrong'>) =>
    parts.reduce((sum, { more }) => sum + more(name), 0)
  const secondsOf = (parts: typeof idle) => parts.reduce((sum, { elapsed }) => sum + elapsed, 0)
  const cycles = sumOf(idle, 'cycles')
  const nodeAlone = sumOf(paused, 'node') / secondsOf(paused)
  return {
    cyclesPerSecond: cycles / secondsOf(idle),
    workerMs: (1_000 * sumOf(idle, 'worker')) / cycles,
    nodeMs: (1_000 * (sumOf(idle, 'node') - nodeAlone * secondsOf(idle))) / cycles,
    nodeAlone,
    requests: sumOf(idle, 'requests') / cycles,
    kibibytes: sumOf(idle, 'bytes') / cycles / 1_024,
    rowsRead: sumOf(idle, 'rowsRead') / cycles,
    rowsWritten: sumOf(idle, 'rowsWritten') / cycles,
  }
}

/**
 * Corrupts a row, measures how long the comparison takes to find it, and returns the resulting time for all rows, in
 * seconds.
 */
async function measureComparison(counters: Counters, size: number) {
  const { compared } = await counters()
  const distance = Math.min(COMPARED_DISTANCE, size - 1)
  const wrong = ((compared + distance - 1) % size) + 1
  const startedAt = performance.now()
  await counters('forget', wrong)
  while ((await counters('counters', wrong)).isWrong) await sleep(50)
  const found = (performance.now() - startedAt) / 1_000
  return { found, all: (found * size) / distance }
}

function report(rows: readonly Row[]) {
  const [first, last] = [rows[0], rows.at(-1)] as [Row, Row]
  const costOf = ({ idle }: Row) => idle.workerMs + idle.nodeMs
  const ratio = costOf(last) / costOf(first)
  const slowest = Math.max(...rows.flatMap(({ times }) => times.map(({ ms }) => ms)))
  const slowestBlocks = Math.max(...rows.flatMap(({ times }) => times.map(({ blocks }) => blocks)))
  const slowestOrder = Math.max(...rows.map(({ orderTime }) => orderTime.ms))
  const blockLimit = 1_000 + 2_000 * BLOCK_SECONDS
  const verdicts = [
    [
      `idle CPU at ${last.size.toLocaleString('en')} positions and as many orders, relative to ${first.size.toLocaleString('en')}`,
      `${ratio.toFixed(2)} times`,
      '1.5 times',
      ratio <= 1.5,
    ],
    [
      'a wrong row is found, at the largest size',
      `within ${last.comparison.all.toFixed(0)} s`,
      '1,000 s',
      last.comparison.all <= 1_000,
    ],
    isReports
      ? ([
          'from the observation of a report to the exit of one trigger, slowest',
          `${slowestBlocks} blocks, ${slowest.toFixed(0)} ms`,
          '2 blocks',
          slowestBlocks <= 2,
        ] as const)
      : ([
          'from the price to the exit of one trigger, slowest',
          `${slowest.toFixed(0)} ms`,
          `2 blocks and 1 s: ${blockLimit} ms`,
          slowest <= blockLimit,
        ] as const),
    [
      'from the price to the execution of one order, slowest',
      `${slowestOrder.toFixed(0)} ms`,
      `2 blocks and 1 s: ${blockLimit} ms`,
      slowestOrder <= blockLimit,
    ],
    ...(last.bulkTime
      ? [
          [
            `from the price to the last of ${bulk} exits due at once`,
            `${(last.bulkTime.ms / 1_000).toFixed(1)} s`,
            '10 s',
            last.bulkTime.ms <= 10_000,
          ] as const,
        ]
      : []),
  ] as const
  const copies = sizes.some(size => size > maxReal)
    ? ` Above ${maxReal.toLocaleString('en')}, positions are copies: the node executes the position manager's code for each, but they cannot be traded.`
    : ''
  const command = ['npm run bench:scale', ...(process.argv.length > 2 ? ['--', ...process.argv.slice(2)] : [])].join(
    ' ',
  )
  const section = [
    `## Keeper at scale${isReports ? ', on signed reports' : ''}`,
    `\`${command}\`: the keeper and its lane on the embedded chain, a block every ${BLOCK_SECONDS} s, ${seconds} s idle at each size. Real agents open the positions, with 1 USDC on paper.${copies} There are as many open orders as positions, all but one copied into the order book's storage. CPU of the node is its additional CPU compared with no keeper. Only the comparison finds wrong rows; the time for all rows is extrapolated from ${COMPARED_DISTANCE.toLocaleString('en')} rows.`,
    `Machine: ${machine}.`,
    table(
      [
        'open positions, and orders',
        'CPU per cycle, Worker and node',
        'cycles a second',
        'requests and bytes per cycle',
        'SQL rows read and written per cycle',
        'first read of new positions',
        'all rows compared',
        'price to exit of one trigger',
        'price to execution of one order',
        'memory of workerd',
        'load average',
      ],
      rows.map(({ size, idle, fillSeconds, comparison, times, orderTime, mebibytes, load }) => [
        size.toLocaleString('en'),
        `${idle.workerMs.toFixed(1)} + ${idle.nodeMs.toFixed(1)} ms`,
        idle.cyclesPerSecond.toFixed(2),
        `${idle.requests.toFixed(1)}, ${idle.kibibytes.toFixed(0)} KiB`,
        `${idle.rowsRead.toFixed(0)}, ${idle.rowsWritten.toFixed(1)}`,
        `${fillSeconds.toFixed(1)} s`,
        `${comparison.all.toFixed(0)} s`,
        `${median(times.map(({ ms }) => ms)).toFixed(0)} ms, ${median(times.map(({ blocks }) => blocks))} blocks`,
        `${orderTime.ms.toFixed(0)} ms, ${orderTime.blocks} blocks`,
        `${mebibytes.toFixed(0)} MiB`,
        load,
      ]),
    ),
    table(
      ['', 'measured', 'target', ''],
      verdicts.map(([what, figure, target, met]) => [what, figure, target, met ? 'met' : 'missed']),
    ),
  ].join('\n\n')
  console.log(`\n${section}`)
  if (!values.print) writeSection(isReports ? 'scale on reports' : 'scale', section)
}
