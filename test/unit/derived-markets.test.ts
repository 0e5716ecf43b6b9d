import { describe, expect, it } from 'vitest'
import { disguiseTape, fitTape, resampleTape, windowsOf } from '../../rehearsal/derive-market.ts'
import { generateMarket } from '../../rehearsal/generate-market.ts'
import { planRuns, tapeOfRun } from '../../rehearsal/plan-examination.ts'
import { hashOf, parseTape, type Tape } from '../../rehearsal/tape.ts'

const options = { kind: 'gbm', vol: 45, drift: 8, correlation: 0.4, days: 40, seed: 7, allHours: false } as const
const tape = generateMarket(options)
const plan = { seeds: 6, days: 10, kinds: ['gbm', 'jumps'], allHours: false, windows: 2, disguises: 2 } as const

const timesOf = ({ steps }: Tape) => steps.map(({ time }) => time)
const pricesOf = ({ steps }: Tape, symbol: string) => steps.map(({ prices }) => Number(prices.get(symbol)))
const changesOf = (market: Tape, symbol: string) => {
  const prices = pricesOf(market, symbol)
  return prices.slice(1).map((price, index) => price / Number(prices[index]))
}

describe('a resampled tape', () => {
  it('a resampled tape has the times of the tape, and sessions of it in another order, all tokens together', () => {
    const resampled = resampleTape(tape, 1)
    expect(timesOf(resampled)).toEqual(timesOf(tape))
    expect(hashOf(resampled)).not.toBe(hashOf(tape))
    const [known, drawn] = [tape, resampled].map(market => ({
      nvda: changesOf(market, 'NVDA'),
      aapl: changesOf(market, 'AAPL'),
    })) as [Record<'nvda' | 'aapl', number[]>, Record<'nvda' | 'aapl', number[]>]
    for (const [index, change] of drawn.nvda.entries()) {
      const source = known.nvda.findIndex(
        (each, bar) =>
          Math.abs(each - change) < 1e-8 && Math.abs((known.aapl[bar] ?? 0) - (drawn.aapl[index] ?? 0)) < 1e-8,
      )
      expect(source, `bar ${index}`).toBeGreaterThanOrEqual(0)
    }
  })

  it('resampled tapes of the first seeds begin with different sessions', () => {
    const firsts = Array.from({ length: 20 }, (_, seed) =>
      changesOf(resampleTape(tape, seed + 1), 'NVDA')[0]?.toFixed(6),
    )
    expect(new Set(firsts).size).toBeGreaterThan(10)
  })

  it('a resampled tape is the same for the same seed, and candles stay within their bars', () => {
    const rows = Array.from({ length: 60 }, (_, day) => {
      const open = 100 + 10 * Math.sin(day)
      const close = 100 + 10 * Math.sin(day + 1)
      return `${1_772_000_000 + 86_400 * day},NVDA,${open.toFixed(2)},${(Math.max(open, close) + 1).toFixed(2)},${(Math.min(open, close) - 1).toFixed(2)},${close.toFixed(2)}`
    })
    const daily = parseTape([{ name: 'd.csv', text: `time,symbol,open,high,low,close\n${rows.join('\n')}` }])
    const resampled = resampleTape(daily, 3)
    expect(hashOf(resampled)).toBe(hashOf(resampleTape(daily, 3)))
    expect(resampled.steps.filter(({ endsBar }) => endsBar)).toHaveLength(60)
    const times = timesOf(resampled)
    expect(times.every((time, index) => index === 0 || time > (times[index - 1] ?? 0))).toBe(true)
  })

  it('a tape that is too short to resample is refused', () => {
    const short = parseTape([{ name: 's.csv', text: 'time,symbol,price\n1772000000,NVDA,1\n1772000060,NVDA,2' }])
    expect(() => resampleTape(short, 1)).toThrow('has 1 session. Resampling needs at least 4. Pass a longer tape')
  })
})

it('windows of a tape follow each other, and each begins with a price of every token', () => {
  const windows = windowsOf(tape, 3)
  expect(windows.map(({ steps }) => steps.length)).toEqual(Array(3).fill(Math.floor(tape.steps.length / 3)))
  expect(windows.flatMap(timesOf)).toEqual(timesOf(tape).slice(0, windows.flatMap(timesOf).length))
  for (const { steps, symbols } of windows) expect([...(steps[0]?.prices.keys() ?? [])].sort()).toEqual(symbols)
  expect(() => windowsOf(tape, tape.steps.length)).toThrow('windows need at least')
})

it('a disguised tape has other symbols, dates and levels, on the same weekdays, and the same moves', () => {
  const { tape: disguised, names } = disguiseTape(tape, 5)
  expect(disguised.symbols.some(symbol => tape.symbols.includes(symbol))).toBe(false)
  const shift = (disguised.steps[0]?.time ?? 0) - (tape.steps[0]?.time ?? 0)
  expect(Math.abs(shift)).toBeGreaterThan(300 * 86_400)
  expect(Math.abs(shift) % (7 * 86_400)).toBe(0)
  const moved = changesOf(disguised, names.NVDA ?? '')
  for (const [index, change] of changesOf(tape, 'NVDA').entries()) expect(moved[index]).toBeCloseTo(change, 6)
  expect(pricesOf(disguised, names.NVDA ?? '')[0]).not.toBe(pricesOf(tape, 'NVDA')[0])
})

it('markets that are fitted to a tape have its tokens, prices, volatility and correlation', () => {
  const { vol, correlation, tokens } = fitTape(tape)
  expect(vol).toBeGreaterThan(38)
  expect(vol).toBeLessThan(52)
  expect(Math.abs(correlation - 0.4)).toBeLessThan(0.1)
  expect(tokens.NVDA).toBe(180.25)
})

it('markets that are fitted to a tape of a token below a dollar begin at its price, and move in fine steps', () => {
  const rows = Array.from(
    { length: 50 },
    (_, hour) => `${1_772_000_000 + 3_600 * hour},PEPE,0.0000${1_200 + (hour % 7)}`,
  )
  const cheap = parseTape([{ name: 'p.csv', text: `time,symbol,price\n${rows.join('\n')}` }])
  const prices = pricesOf(generateMarket({ ...options, ...fitTape(cheap) }), 'PEPE')
  expect(prices[0]).toBe(1_200)
  expect(new Set(prices).size).toBeGreaterThan(50)
})

it('a market of a tape with wrong prices is refused with the token that moves most, before a pool overflows', () => {
  const rows = Array.from({ length: 400 }, (_, minute) => {
    const time = 1_772_000_000 + 60 * minute
    return `${time},CALM,100\n${time},WILD,${minute % 2 ? 900_000 : 0.001}`
  })
  const wild = parseTape([{ name: 'w.csv', text: `time,symbol,price\n${rows.join('\n')}` }])
  for (const run of planRuns({ ...plan, days: 30 }, true).slice(0, 3))
    expect(() => tapeOfRun(run, { ...plan, days: 30 }, wild)).toThrow(
      'A market made of the tape would have a price above 10^12 USD. WILD moves most: from 0.001 to 900000 USD in one bar. Correct its prices, or play fewer --days.',
    )
})

describe('the plan of an examination', () => {
  it('the plan of an examination takes kinds of markets in turn, and needs a tape for windows and disguises', () => {
    expect(planRuns(plan, false).map(({ market }) => market.kind)).toEqual(Array(6).fill('generated'))
    const runs = planRuns(plan, true)
    expect(runs.map(({ id }) => id)).toEqual([
      ...[1, 2, 3, 4, 5, 6].map(seed => `seed-${seed}`),
      ...['window-1', 'window-2', 'original', 'disguise-1', 'disguise-2'],
    ])
    expect(runs.slice(0, 4).map(({ market }) => market)).toEqual([
      { kind: 'resampled', seed: 1 },
      { kind: 'generated', generator: 'gbm', seed: 2 },
      { kind: 'generated', generator: 'jumps', seed: 3 },
      { kind: 'resampled', seed: 4 },
    ])
  })

  it('every run of a plan has a tape of its own', () => {
    const hashes = planRuns(plan, true).map(run => hashOf(tapeOfRun(run, plan, tape)))
    expect(new Set(hashes).size).toBe(hashes.length)
  })
})
