import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, inject, it } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-fills-'))
afterAll(() => rmSync(folder, { recursive: true }))

const SOURCE = '--conditions=@agent-trading-service/source'
const RULES = inject('isLong') ? 500 : 24
const START = 1_772_461_800
const HOUR = 3_600

/** An agent has one position in a token, so several tokens try more rules in the same time. */
const SYMBOLS = ['NVDA', 'AAPL', 'TSLA', 'AMZN', 'MSFT', 'META', 'GOOGL', 'AMD']

type Trade = {
  timestamp: string
  symbol: string
  type: string
  positionId: string
  source: string
  priceUsdc: string
  triggerBps: number | null
}

function rehearse(
  tape: string,
  ...agent: string[]
): Promise<{ trades: Trade[]; orders: { symbol: string; price: string; state: string }[] }> {
  const json = join(folder, 'report.json')
  const args = ['--tape', tape, '--hours', 'all', '--json', json, '--', process.execPath, SOURCE, ...agent]
  const child = spawn(process.execPath, [SOURCE, 'scripts/rehearse.ts', ...args], { stdio: ['ignore', 'ignore', 2] })
  return new Promise((resolve, reject) =>
    child.once('exit', code =>
      code === 0 ? resolve(JSON.parse(readFileSync(json, 'utf8')).agents[0]) : reject(new Error(`exit code ${code}`)),
    ),
  )
}

/** Writes hourly candles of random ranges without gaps, and returns their file. */
function writeCandles(hours: number): string {
  let state = 7
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  const opens = new Map(SYMBOLS.map(symbol => [symbol, 100]))
  const rows = Array.from({ length: hours }, (_, hour) =>
    [...opens].map(([symbol, open]) => {
      const close = open * (1 + 0.02 * (random() - 0.5))
      const [high, low] = [Math.max(open, close) * (1 + 0.01 * random()), Math.min(open, close) * (1 - 0.01 * random())]
      opens.set(symbol, Number(close.toFixed(4)))
      return [START + HOUR * hour, symbol, ...[open, high, low, close].map(price => price.toFixed(4))].join(',')
    }),
  ).flat()
  const file = join(folder, 'candles.csv')
  writeFileSync(file, `time,symbol,open,high,low,close\n${rows.join('\n')}\n`)
  return file
}

it('random ladders and orders within candles fill at most 12 basis points from their trigger', async () => {
  const hours = Math.ceil((RULES * 1.7) / SYMBOLS.length)
  const { trades, orders } = await rehearse(writeCandles(hours), 'test/support/random-rules-agent.ts', `${RULES}`)
  const opened = trades.filter(({ source, type }) => source === 'intent' && type === 'PositionOpened')
  expect(2 * opened.length + 3 * orders.length).toBeGreaterThanOrEqual(RULES)
  const entries = new Map(
    trades.filter(({ type }) => type === 'PositionOpened').map(trade => [trade.positionId, Number(trade.priceUsdc)]),
  )
  const fired = trades.filter(({ source, triggerBps }) => source === 'automation' && triggerBps !== null)
  expect(fired.length).toBeGreaterThan(RULES / 4)
  for (const { positionId, priceUsdc, triggerBps } of fired) {
    const trigger = (entries.get(positionId) ?? 0) * (1 + Number(triggerBps) / 10_000)
    expect(Math.abs(Number(priceUsdc) / trigger - 1)).toBeLessThanOrEqual(0.0012)
  }
  const bought = trades.filter(({ source, type }) => source === 'order' && type === 'PositionOpened')
  const filled = orders.filter(({ state }) => state === 'filled')
  expect(bought).toHaveLength(filled.length)
  expect(bought.length).toBeGreaterThan(RULES / 20)
  for (const { symbol, priceUsdc } of bought) {
    const limits = filled.filter(order => order.symbol === symbol).map(({ price }) => Number(price) * 1e6)
    expect(Math.min(...limits.map(limit => Math.abs(Number(priceUsdc) / limit - 1)))).toBeLessThanOrEqual(0.0012)
  }
})

/** Writes the same prices as hourly and as daily candles, whose days span less than 4 %, and returns both files. */
function writeBothLengths(days: number): [daily: string, hourly: string] {
  let state = 3
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  const hours: { time: number; open: number; high: number; low: number; close: number }[] = []
  let price = 100
  for (let hour = 0; hour < days * 24; hour++) {
    const close = Number((price * (1 + 0.009 * (random() - 0.5))).toFixed(4))
    const [high, low] = [Math.max(price, close), Math.min(price, close)]
    hours.push({ time: START + HOUR * hour, open: price, high, low, close })
    price = close
  }
  const dailies = Array.from({ length: days }, (_, day) => {
    const own = hours.slice(day * 24, day * 24 + 24)
    return {
      time: own[0]?.time ?? 0,
      open: own[0]?.open ?? 0,
      high: Math.max(...own.map(({ high }) => high)),
      low: Math.min(...own.map(({ low }) => low)),
      close: own.at(-1)?.close ?? 0,
    }
  })
  const write = (name: string, candles: typeof hours) => {
    const file = join(folder, name)
    const rows = candles.map(({ time, open, high, low, close }) => [time, 'NVDA', open, high, low, close].join(','))
    writeFileSync(file, `time,symbol,open,high,low,close\n${rows.join('\n')}\n`)
    return file
  }
  return [write('daily.csv', dailies), write('hourly.csv', hours)]
}

it('daily candles and the shorter ones that they consist of give the same trades for rules that are 2 % away', async () => {
  const played = []
  for (const tape of writeBothLengths(24)) played.push(await rehearse(tape, 'test/support/daily-rules-agent.ts'))
  const [daily, hourly] = played.map(({ trades }) => trades) as [Trade[], Trade[]]
  const whatOf = ({ type, source, triggerBps }: Trade) => [type, source, triggerBps]
  expect(daily.map(whatOf)).toEqual(hourly.map(whatOf))
  expect(daily.filter(({ source }) => source === 'automation').length).toBeGreaterThan(2)
  // Each is at most 12 basis points from the trigger, on either side.
  for (const [index, { priceUsdc }] of daily.entries())
    expect(Math.abs(Number(priceUsdc) / Number(hourly[index]?.priceUsdc) - 1)).toBeLessThanOrEqual(0.0024)
})
