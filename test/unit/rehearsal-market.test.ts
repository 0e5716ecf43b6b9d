import { describe, expect, it } from 'vitest'
import { GENERATED_SYMBOLS, generateMarket } from '../../rehearsal/generate-market.ts'
import { hashOf, parseTape } from '../../rehearsal/tape.ts'

const parse = (text: string, file: { symbol?: string; timeZone?: string } = {}) =>
  parseTape([{ name: 'the tape', text, ...file }])

const usd = (cents: number) => BigInt(cents) * 10n ** 6n
const options = {
  kind: 'gbm',
  vol: 45,
  drift: 8,
  correlation: 0.4,
  days: 3,
  seed: 7,
  allHours: false,
} as const

describe('a tape', () => {
  it('a tape of prices has a step for each time, from the first at which every symbol has a price', () => {
    const { symbols, steps } = parse(
      'time,symbol,price\n1772000000,NVDA,100\n1772000060,AAPL,200.5\n2026-02-25T06:15:20Z,NVDA,101',
    )
    expect(symbols).toEqual(['AAPL', 'NVDA'])
    expect(steps.map(({ time, prices }) => [time, Object.fromEntries(prices)])).toEqual([
      [1_772_000_060, { NVDA: usd(10_000), AAPL: usd(20_050) }],
      [1_772_000_120, { NVDA: usd(10_100) }],
    ])
  })

  const CANDLES = 'time,symbol,open,high,low,close\n1772000000,NVDA,100,110,90,105\n1772003600,NVDA,105,106,80,81'

  it('a tape of a recorded day has the corporate actions that were announced, which its hash counts', () => {
    const token = { symbol: 'NVDA', name: 'NVIDIA', address: '0x', decimals: 18, priceUsd: '100', poolFee: 500 }
    const venue = { chainId: 1, tokens: [token, { ...token, symbol: 'COIN', decimals: 8 }], vaults: [] }
    const split = { symbol: 'NVDA', multiplier: '4', effectiveAt: 1_772_000_060 }
    const dayWith = (actions: object[]) =>
      parse(
        JSON.stringify({
          venue,
          liquidity: {},
          blocks: [
            { time: 1_772_000_000, prices: { NVDA: '100', COIN: '50' } },
            { time: 1_772_000_030, actions },
            { time: 1_772_000_090 },
          ],
        }),
      )
    // A token of other decimals is played by one without a multiplier.
    expect(dayWith([split, { ...split, symbol: 'COIN' }]).steps.map(({ actions }) => actions)).toEqual([
      undefined,
      [split],
      undefined,
    ])
    const hashes = [[], [split], [{ ...split, multiplier: '3' }]].map(actions => hashOf(dayWith(actions)))
    expect(new Set(hashes).size).toBe(3)
  })

  it.each([
    ['the extreme against their direction first', 'natural', [100, 90, 110, 105, 105, 106, 80, 81]],
    ['the low first on the pessimistic path', 'pessimistic', [100, 90, 110, 105, 105, 80, 106, 81]],
  ] as const)('candles go to both extremes in steps of at most six basis points, %s', (_, path, corners) => {
    const { steps } = parseTape([{ name: 'the tape', text: CANDLES }], path)
    const prices = steps.map(step => Number(step.prices.get('NVDA')) / 1e8)
    for (const [index, price] of prices.slice(1).entries())
      expect(Math.abs(price / Number(prices[index]) - 1)).toBeLessThanOrEqual(0.00061)
    const turns = prices.filter(
      (price, index) =>
        index === 0 ||
        index === prices.length - 1 ||
        steps[index]?.endsBar ||
        steps[index - 1]?.endsBar ||
        (price - Number(prices[index - 1])) * (Number(prices[index + 1]) - price) < 0,
    )
    expect(turns).toEqual(corners)
    expect(steps.filter(({ endsBar }) => endsBar).map(({ time }) => time)).toEqual([1_772_003_600, 1_772_007_200])
  })

  it('candles of several tokens that start together have their posts at the same times', () => {
    const rows = [1_772_000_000, 1_772_003_600].flatMap(time => [
      `${time},NVDA,100,110,99,100`,
      `${time},AAPL,100,101,99,100`,
    ])
    const { steps } = parse(['time,symbol,open,high,low,close', ...rows].join('\n'))
    expect(steps.filter(({ prices }) => prices.has('AAPL')).every(({ prices }) => prices.has('NVDA'))).toBe(true)
  })

  it('a recorded day plays posts and pools block by block, and lets the keeper act where it did', () => {
    const tokens = [{ symbol: 'NVDA' }]
    const blocks = [
      { time: 1_772_000_000, prices: { NVDA: '100' }, pools: { NVDA: '7' } },
      { time: 1_772_000_060, prices: { NVDA: '101' } },
      { time: 1_772_000_060, exits: true },
      { time: 1_772_000_061, pools: { NVDA: '8' } },
      { time: 1_772_000_900 },
    ]
    const { steps, liquidity } = parse(JSON.stringify({ venue: { tokens }, liquidity: { NVDA: '5' }, blocks }))
    expect(liquidity).toEqual(new Map([['NVDA', 5n]]))
    expect(steps.map(({ endsBar, keeperActs }) => [endsBar, keeperActs])).toEqual([
      [true, true],
      [false, false],
      [false, true],
      [true, true],
      [true, true],
    ])
    expect(steps[3]?.pools).toEqual(new Map([['NVDA', 8n]]))
  })

  it('a tape has the same hash however its file writes the same prices', () => {
    const one = parse('time,symbol,price\n1772000000,NVDA,100\n1772000060,NVDA,101')
    const other = parse('symbol,price,time\nNVDA,101.00,1772000060\nNVDA,100.0,1772000000\n')
    expect(hashOf(one)).toBe(hashOf(other))
  })

  it.each([
    ['price,symbol', 'The first line of the tape is time,symbol,price'],
    ['time,symbol,price\nsoon,NVDA,1', 'Line 2 of the tape: "soon" is not a time'],
    ['time,symbol,price\n1772000000,nvda!,1', 'Line 2 of the tape: "nvda!" is not a symbol'],
    ['time,symbol,price\n1772000000,NVDA,1\n1772000060,NVDA,-2', 'Line 3 of the tape, price: "-2" is not a price'],
    ['time,symbol,price\n1772000000,NVDA,1', 'A tape needs prices of all of its symbols at two times'],
    ['{"blocks":', 'The tape is no complete JSON'],
    ['{"blocks":[]}', 'The tape is JSON, but no recorded day'],
    ['time,symbol,open,high,low,close\n1772000000,NVDA,5,4,3,4', 'Line 2 of the tape: low is the lowest'],
    ['time,symbol,price\n2026-03-09 09:30,NVDA,100', 'Line 2 of the tape: "2026-03-09 09:30" has no offset from UTC'],
    ['time,symbol,price\n05/07/2025,NVDA,100', 'Line 2 of the tape: "05/07/2025" may name the day or the month first'],
    ['time,price\n1772000000,100\n1772000060,101', 'the tape names no symbol. Name it with the file: --tape NVDA='],
    ['time,symbol,price\n1772000000500,NVDA,100', '"1772000000500" is not in whole seconds'],
    ['time,symbol,price\n1772000000,NVDA,"1.234,56"', 'Line 2 of the tape, price: "1.234,56" is not a price'],
  ])('a tape that cannot be played is refused with the line and a remedy: %j', (csv, message) => {
    expect(() => parse(csv)).toThrow(message)
  })
})

describe('a generated market', () => {
  it('a generated market has bars of five minutes in the hours of the exchange', () => {
    const { symbols, steps } = generateMarket(options)
    expect(symbols).toEqual(GENERATED_SYMBOLS)
    expect(steps).toHaveLength(3 * 78)
    expect(steps.every(({ prices }) => prices.size === 12)).toBe(true)
  })

  it('a generated market is the same for the same options and another one for another seed', () => {
    expect(hashOf(generateMarket(options))).toBe(hashOf(generateMarket(options)))
    expect(hashOf(generateMarket({ ...options, seed: 8 }))).not.toBe(hashOf(generateMarket(options)))
  })

  it('a generated market of kind crash falls by a fifth or more, and a stale token has no prices in its second half', () => {
    const crash = generateMarket({ ...options, kind: 'crash', days: 30, stale: 'NVDA' })
    const prices = crash.steps.map(each => Number(each.prices.get('MSFT') ?? 0n))
    const high = Math.max(...prices)
    expect(Math.min(...prices.slice(prices.indexOf(high)))).toBeLessThan(high * 0.8)
    expect(crash.steps.filter(each => each.prices.has('NVDA')).length).toBeLessThan(crash.steps.length * 0.51)
  })
})
