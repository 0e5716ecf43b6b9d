import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { disguiseTape, windowsOf } from '../../rehearsal/derive-market.ts'
import { parseTape, type Tape } from '../../rehearsal/tape.ts'

// Exports as people have them: of each, the lines that differ from what we write.

const file = (text: string, more: { name?: string; symbol?: string; timeZone?: string } = {}) => ({
  name: 'nvda.csv',
  text,
  ...more,
})
/** Returns the ends of candles: time and price in USD. */
const closes = ({ steps }: Tape, symbol = 'NVDA') =>
  steps
    .filter(({ endsBar }) => endsBar)
    .map(({ time, prices }) => [new Date(time * 1000).toISOString(), Number(prices.get(symbol)) / 1e8])

const YFINANCE = `Price,Close,High,Low,Open,Volume
Ticker,NVDA,NVDA,NVDA,NVDA,NVDA
Date,,,,,
2025-02-13,135.2899932861328,136.5,131.1699981689453,131.55999755859375,197430000
2025-02-14,138.85000610351562,139.25,135.5,136.47999572753906,195479600
2025-02-18,139.39999389648438,143.44000244140625,137.92999267578125,141.27000427246094,219176600
`
const KLINES = (
  zeros: string,
) => `1746624600${zeros},118.42,119.10,118.30,118.95,10342.1,1746624899999,1225000.12,812,5120.4,606200.5,0
1746624900${zeros},118.95,119.40,118.80,119.20,8120.5,1746625199999,967100.00,640,4010.2,477900.1,0
1746625200${zeros},119.20,119.22,118.10,118.35,15022.9,1746625499999,1782300.55,1190,6200.9,735400.0,0
`

describe('a file of prices', () => {
  it('of yfinance has its symbol in the header, days in the zone that is named, and noise that is rounded with a note', () => {
    const tape = parseTape([file(YFINANCE, { timeZone: 'America/New_York' })])
    expect(closes(tape)).toEqual([
      ['2025-02-14T05:00:00.000Z', 135.28999329],
      ['2025-02-15T05:00:00.000Z', 138.8500061],
      ['2025-02-19T05:00:00.000Z', 139.3999939],
    ])
    expect(tape.notes).toEqual(['nvda.csv: 9 prices were rounded to 8 decimals.'])
    expect(() => parseTape([file(YFINANCE)])).toThrow('Line 4 of nvda.csv: "2025-02-13" has no offset from UTC')
  })

  it('of yfinance may have several tickers, and either of the two header lines first', () => {
    const text = `Ticker,AAPL,AAPL,AAPL,AAPL,BRK.B,BRK.B,BRK.B,BRK.B
Price,Open,High,Low,Close,Open,High,Low,Close
Datetime,,,,,,,,
2025-02-14 14:30:00+00:00,10,12,9,11,20,22,19,21
2025-02-14 14:35:00+00:00,11,12,9,12,21,22,19,22
2025-02-14 14:40:00+00:00,12,12,9,10,,,,
`
    const tape = parseTape([file(text)])
    expect(tape.symbols).toEqual(['AAPL', 'BRK.B'])
    expect(closes(tape, 'AAPL').map(([, price]) => price)).toEqual([11, 12, 10])
  })

  it('of yfinance may have no name of its index, and none of its header lines in older versions', () => {
    const [fields = '', tickers = '', index = '', ...days] = YFINANCE.split('\n')
    const own = closes(parseTape([file(YFINANCE, { timeZone: 'UTC' })]))
    const unnamed = [fields.replace('Price', ''), tickers.replace('Ticker', '')]
    for (const lines of [
      [fields, tickers],
      [...unnamed, index],
      [...unnamed.reverse(), index],
    ])
      expect(closes(parseTape([file([...lines, ...days].join('\n'), { timeZone: 'UTC' })]))).toEqual(own)
  })

  it.each([
    ['milliseconds', KLINES('000')],
    ['microseconds', KLINES('000000')],
  ])('of Binance has no header and %s, and gets its symbol with its name', (_, text) => {
    const tape = parseTape([file(text, { symbol: 'NVDA' })])
    expect(closes(tape)).toEqual([
      ['2025-05-07T13:35:00.000Z', 118.95],
      ['2025-05-07T13:40:00.000Z', 119.2],
      ['2025-05-07T13:45:00.000Z', 118.35],
    ])
    expect(() => parseTape([file(text)])).toThrow(
      'nvda.csv names no symbol. Name it with the file: --tape NVDA=nvda.csv.',
    )
  })

  it('of TradingView has offsets, of Alpaca a space before the time, and both have columns that are not read', () => {
    const tradingView = `time,open,high,low,close,Volume
2025-05-07T09:30:00-04:00,118.42,119.1,118.3,118.95,1034210
2025-05-07T09:35:00-04:00,118.95,119.4,118.8,119.2,812050`
    const alpaca = `symbol,timestamp,open,high,low,close,volume,trade_count,vwap
NVDA,2025-05-07 13:30:00+00:00,118.42,119.1,118.3,118.95,1034210,9,118.7
NVDA,2025-05-07 13:35:00+00:00,118.95,119.4,118.8,119.2,812050,8,119`
    expect(closes(parseTape([file(tradingView, { symbol: 'NVDA' })]))).toEqual(closes(parseTape([file(alpaca)])))
  })

  it('of investing.com has the newest day first, calls the close the price, and separates thousands', () => {
    const text = `\uFEFF"Date","Price","Open","High","Low","Vol.","Change %"
"02/18/2025","1,139.40","1,141.27","1,143.44","1,137.93","219.18M","0.40%"
"02/14/2025","1,138.85","1,136.48","1,139.25","1,135.50","195.48M","2.63%"

`
    expect(closes(parseTape([file(text, { symbol: 'NVDA', timeZone: 'UTC' })]))).toEqual([
      ['2025-02-18T00:00:00.000Z', 1_138.85],
      ['2025-02-22T00:00:00.000Z', 1_139.4],
    ])
    const named = text.replaceAll('02/18/2025', 'Feb 18, 2025').replaceAll('02/14/2025', 'Feb 14, 2025')
    expect(closes(parseTape([file(named, { symbol: 'NVDA', timeZone: 'UTC' })]))).toHaveLength(2)
  })

  it('is refused without prices, also next to others and for one of its tickers', () => {
    const empty = [
      file('time,price\n1772000000,1\n1772000060,2', { symbol: 'F' }),
      file('time,price\n', { symbol: 'NVDA' }),
    ]
    expect(() => parseTape(empty)).toThrow('nvda.csv has no prices. Export it again, or leave it out.')
    const failed = `Price,Close,Close,High,High,Low,Low,Open,Open
Ticker,AAPL,XYZ,AAPL,XYZ,AAPL,XYZ,AAPL,XYZ
Date,,,,,,,,
2025-02-13,10,,11,,9,,10,
2025-02-14,10,,11,,9,,10,`
    expect(() => parseTape([file(failed, { timeZone: 'UTC' })])).toThrow('nvda.csv has no prices of XYZ. Export')
  })

  it('may repeat a price, but not have another one at its time, whichever row comes first', () => {
    const rows = ['1772000060,3', '1772000000,2', '1772000000,1']
    const prices = (...some: string[]) => file(`time,price\n${some.join('\n')}`, { symbol: 'NVDA' })
    expect(() => parseTape([prices(...rows)])).toThrow(
      'Line 4 of nvda.csv: NVDA has another price at the same time. Delete one of them.',
    )
    expect(() => parseTape([prices(...rows.slice(0, 2)), prices(...rows.slice(2))])).toThrow('another price')
    expect(parseTape([prices(...rows.slice(0, 2), ...rows.slice(0, 2))]).steps).toHaveLength(2)
  })

  it('of Finnhub has a status in a column s, which is no symbol', () => {
    const text = 't,o,h,l,c,s,v\n1772000000,1,1,1,1,ok,9\n1772000060,1,1,1,1,ok,9'
    expect(() => parseTape([file(text)])).toThrow('nvda.csv names no symbol. Name it with the file')
    expect(parseTape([file(text, { symbol: 'NVDA' })]).symbols).toEqual(['NVDA'])
  })

  it('of pandas may have a column of closes for each ticker, where an empty cell is no price', () => {
    const text = 'Date,AAPL,BRK-B,005930.KS\n2025-02-13,10,20,30\n2025-02-14,11,,31\n2025-02-15,12,22,\n'
    for (const own of [text, text.replace('Date', '')]) {
      const tape = parseTape([file(own, { timeZone: 'UTC' })])
      expect(tape.symbols).toEqual(['005930.KS', 'AAPL', 'BRK-B'])
      expect(tape.steps.map(({ prices }) => [...prices.values()].map(price => Number(price) / 1e8))).toEqual([
        [10, 20, 30],
        [11, 31],
        [12, 22],
      ])
    }
    const alone = file('Date,SPY\n2025-02-13,10\n2025-02-14,11', { timeZone: 'UTC' })
    expect(parseTape([alone]).symbols).toEqual(['SPY'])
  })

  it.each([
    'Date,C,AAPL',
    'Date,AAPL,VOLUME',
    'DATE,VALUE',
    'Date,AAPL,AAPL',
    'Date,LOW,HD',
    'Date,T,VZ',
    'Date,Aapl,MSFT',
    'Date,1,2',
    'Week,AAPL,MSFT',
  ])('whose columns are not of tickers alone has none of closes: %s', header => {
    const row = (day: number) => `2025-02-${day}${',1'.repeat(header.split(',').length - 1)}`
    expect(() => parseTape([file(`${header}\n${row(13)}\n${row(14)}`, { timeZone: 'UTC' })])).toThrow('names no ')
  })

  it('may be one of several, each of one symbol', () => {
    const rows = (price: number) => `time,price\n1772000000,${price}\n1772000060,${price + 1}`
    const files = [file(rows(100), { symbol: 'F' }), file(rows(200), { name: 'brk.csv', symbol: 'BRK.B' })]
    expect(parseTape(files).symbols).toEqual(['BRK.B', 'F'])
    const pair = file('time,symbol,price\n1772000000,BTC/USDT,1\n1772000060,BTC/USDT,2', { symbol: 'BTC' })
    expect(parseTape([pair]).symbols).toEqual(['BTC'])
  })
})

it('a file of prices at dates, next to candles of others, has a note that a close of it is known a day early', () => {
  const notesWith = (...times: string[]) => {
    const closes = `Date,Close\n${times.map(time => `${time},1`).join('\n')}`
    const files = [file(YFINANCE), file(closes, { name: 'spy.csv', symbol: 'SPY' })]
    return parseTape(files.map(each => ({ ...each, timeZone: 'America/New_York' }))).notes?.join()
  }
  const note =
    'spy.csv: a price at a date is played when the day begins, before the candles of that day. If it is a close, write its time.'
  expect(notesWith('2025-02-13', '2025-02-14')).toContain(note)
  expect(notesWith('2025-02-13 00:00:00-05:00', '2025-02-14 00:00:00-05:00')).toContain(note)
  expect(notesWith('2025-02-13 16:00', '2025-02-14 16:00')).not.toContain('spy.csv')
  const alone = file('Date,Close\n2025-02-13,1\n2025-02-14,2', { symbol: 'SPY', timeZone: 'UTC' })
  expect(parseTape([alone]).notes).toEqual([])
})

describe('a file of prices that could be misread', () => {
  const own = { symbol: 'NVDA', timeZone: 'America/New_York' }
  const ROWS = [
    ['2025-02-13', '131.50', '136.50', '131.10', '135.20'],
    ['2025-02-14', '136.40', '139.25', '135.50', '138.80'],
  ]
  const table = (separator: string, rows = ROWS) =>
    [['Date', 'Open', 'High', 'Low', 'Close'], ...rows].map(row => row.join(separator)).join('\n')

  it.each([
    ['semicolons', table(';')],
    [
      'its header again, as exports that were put together',
      table(',').replace('\n2025-02-14', '\nDate,Open,High,Low,Close$&'),
    ],
    ['tabs', table('\t')],
    ['days without hyphens', table(',').replaceAll('2025-02-', '202502')],
    ['days first, with points', table(',').replaceAll(/2025-02-(\d+)/g, '$1.02.2025')],
    ['dollars, as of Nasdaq.com', table(',').replace('Close', 'Close/Last').replaceAll(/,1/g, ',$1')],
    ['columns of the same name after it', table(',').replaceAll('\n', ',1\n').replace('Close,1', 'Close,close')],
    ['an index without a name, as pandas writes it', table(',').replace('Date', '')],
    ['the close as Barchart calls it', table(',').replace('Close', 'Latest')],
    ['no candles, but closes', 'Date,Close\n2025-02-14,135.20\n2025-02-15,138.80'],
  ])('has %s', (_, text) => {
    expect(closes(parseTape([file(text, own)]))).toEqual([
      ['2025-02-14T05:00:00.000Z', 135.2],
      ['2025-02-15T05:00:00.000Z', 138.8],
    ])
  })

  it('has dates and clocks in columns of their own', () => {
    const rows = ['2025-02-13,15:35', '02/13/2025,9:35:00', '20250213,093500'].map(time => {
      const later = time.replace('35', '40')
      return closes(parseTape([file(`Date,Time,Open,High,Low,Close\n${later},1,1,1,1\n${time},1,1,1,1`, own)]))
    })
    expect(rows.map(([first]) => first?.[0])).toEqual([
      '2025-02-13T20:40:00.000Z',
      '2025-02-13T14:40:00.000Z',
      '2025-02-13T14:40:00.000Z',
    ])
  })

  it('has clocks as Excel and Interactive Brokers write them', () => {
    for (const times of [
      ['2/13/2025 9:35', '2/13/2025 9:40'],
      ['20250213  09:35:00', '20250213  09:40:00'],
    ]) {
      const [first] = closes(parseTape([file(`Date,Price\n${times.map(time => `${time},1`).join('\n')}`, own)]))
      expect(first?.[0]).toBe('2025-02-13T14:35:00.000Z')
    }
  })

  it('has the times of CoinMarketCap and CoinGecko at which candles open and prices were read', () => {
    const coinmarketcap = `timeOpen;timeClose;name;open;high;low;close;volume;timestamp
"2025-02-13T00:00:00.000Z";"2025-02-13T23:59:59.999Z";"1";9;12;8;11;1;"2025-02-13T23:59:59.999Z"
"2025-02-14T00:00:00.000Z";"2025-02-14T23:59:59.999Z";"1";9;12;8;11;1;"2025-02-14T23:59:59.999Z"`
    expect(closes(parseTape([file(coinmarketcap, own)]))[0]).toEqual(['2025-02-14T00:00:00.000Z', 11])
    const coingecko = `snapped_at,price,market_cap\n2025-02-13 00:00:00 UTC,9.5,1\n2025-02-14 00:00:00 UTC,9.6,1`
    expect(closes(parseTape([file(coingecko, own)]))[0]).toEqual(['2025-02-13T00:00:00.000Z', 9.5])
  })

  it('has no clock that is passed over', () => {
    const rows = 'Date,Time,Price\n2/13/2025,1:30 PM,1\n2/13/2025,1:35 PM,2\n2/14/2025,1:30 PM,3'
    expect(() => parseTape([file(rows, own)])).toThrow('Line 2 of nvda.csv: "1:30 PM" is not a time.')
    const both = 'Date,Timestamp,Price\n2025-02-13,1739457000,1\n2025-02-13,1739457060,2'
    expect(closes(parseTape([file(both, own)]))[0]?.[0]).toBe('2025-02-13T14:30:00.000Z')
  })

  it('has times in nanoseconds with Polygon, after whole seconds with pandas, and short offsets', () => {
    const polygon = `ticker,volume,open,close,high,low,window_start,transactions
NVDA,49,200.29,200.5,200.63,200.29,1744792500000000000,129
NVDA,18,200.39,200.61,200.61,200.34,1744792560000000000,57`
    expect(closes(parseTape([file(polygon)]))[0]).toEqual(['2025-04-16T08:36:00.000Z', 200.5])
    for (const time of ['2025-04-16 10:35:00 +0200', '2025-04-16 08:35:00 GMT', '16.04.2025 10:35 +02:00'])
      expect(parseTape([file(`time,price\n${time},1\n1744792560,1`, own)]).steps[0]?.time).toBe(1_744_792_500)
    for (const time of ['1744792500.0', '2025-04-16T10:35:00+02', '2025-04-16 08:35:00 UTC', '2025-04-16T08:35:00z'])
      expect(parseTape([file(`time,price\n${time},1\n1744792560,1`, own)]).steps[0]?.time).toBe(1_744_792_500)
  })

  it('has small prices with exponents, as pandas writes them', () => {
    const text = 'time,price\n1744792500,1.2e-07\n1744792560,1e-07\n1744792620,1.23456e+03\n1744792680,1e3'
    expect(closes(parseTape([file(text, own)])).map(([, price]) => price)).toEqual([1.2e-7, 1e-7, 1234.56, 1000])
  })

  it.each([
    [
      'closes that are not adjusted, next to adjusted ones',
      'Date,Close,Adj Close\n2024-06-07,1200,120\n2024-06-10,121,121',
      'Line 3 of nvda.csv: next to "Adj Close", prices are not adjusted for the split or dividend.',
    ],
    [
      'a comma that may be a decimal one',
      'time,price\n1744792500,"1,234"\n1744792560,"1,235"',
      'Line 2 of nvda.csv, price: the comma of "1,234" may separate thousands or decimals, and no other price tells. Write 1234 or 1.234.',
    ],
    ['a comma after zero', 'time,price\n1744792500,"0,123"\n1744792560,1.5', '"0,123" is not a price'],
    [
      'decimal commas that are not quoted',
      'time,price\n1744792500,118,42\n1744792560,118,50',
      'Line 2 of nvda.csv has 3 cells, but the first line 2.',
    ],
    [
      'a quote that does not end',
      'time,price,volume\n1744792500,1,1\n1744792560,1,"2\n1744792620,1,3\n1744792680,1,4',
      'Line 3 of nvda.csv: a quote does not end in its line. Close or delete it.',
    ],
    [
      'hours without punctuation, which may be seconds of a later year',
      'time,price\n2026030914,1\n2026030915,2',
      'Line 2 of nvda.csv: "2026030914" may be Unix seconds, 2034-03-15T10:21:54Z, or an hour, 2026-03-09T14:00. Write ISO 8601, such as 2026-03-09T14:00.',
    ],
    [
      'no price in a row',
      'time,price\n1744792500,nan\n1744792560,1',
      'Line 2 of nvda.csv, price: the price is missing. Delete the row, or write its price.',
    ],
    ['a price that no pool has', `time,price\n1744792500,${'9'.repeat(80)}\n1744792560,1`, 'is too high for a price'],
    [
      'the name of another zone in its times',
      'time,price\n2026-03-09T09:30:00[Europe/Paris],1',
      '"2026-03-09T09:30:00[Europe/Paris]" is not a time. Write',
    ],
    [
      'other names of columns',
      'Datum;Hoch\n1;2',
      '"Datum,Hoch" names no columns that can be read. The first line of nvda.csv is time',
    ],
    [
      'other symbols than its own',
      'time,symbol,price\n1744792500,NVDA,1\n1744792500,AAPL,2',
      'Line 3 of nvda.csv: nvda.csv has prices of NVDA and AAPL, which are not all of NVDA. Pass it without a symbol',
    ],
    [
      'an adjusted close that moves with a dividend',
      'Date,Open,High,Low,Close,Adj Close\n2025-02-13,9,9,9,9,8.9\n2025-02-14,9,9,9,9,9',
      'Line 3 of nvda.csv: next to "Adj Close", prices are not adjusted for the split or dividend.',
    ],
  ])('is refused with %s', (_, text, message) => {
    expect(() => parseTape([file(text, own)])).toThrow(message)
  })
})

it('a file with control characters or long cells is refused with a part of them that is safe to print', () => {
  const cell = `\u001b[2J\u202e${'9'.repeat(5_000)}`
  for (const text of [
    `time,symbol,price\n1744792500,NVDA,${cell}`,
    `time,symbol,price\n1744792500,NVDA,1.${cell}`,
    `time,symbol,price\n1744792500,NVDA,${'9'.repeat(5_000)}\u001b`,
    `time,symbol,price\n1744792500,NVDA,0.000000001${'0'.repeat(5_000)}`,
    `time,symbol,price\n1744792500,${cell},1`,
    `time,symbol,price\n${cell},NVDA,1`,
    `time,symbol,price,split\n1744792500,NVDA,1,${cell}`,
    `time,${cell}\n1744792500,1`,
    `time,symbol,price\n2026-03-09T00:00Z,NVDA,"1,${cell}"`,
  ]) {
    const refusal = (symbol?: string) => {
      try {
        parseTape([file(text, { ...(symbol !== undefined && { symbol }), timeZone: 'UTC' })])
        return ''
      } catch (error) {
        return `${error}`
      }
    }
    for (const message of [refusal(), ...(text.includes('NVDA') ? [refusal('NVDA')] : [])]) {
      expect(message).toMatch(/^TapeError: /)
      expect(message).not.toMatch(/[\p{Cc}\p{Cf}]/u)
      expect(message.length).toBeLessThan(300)
    }
  }
})

it('a file whose symbols begin at different times is played from the last one on, with a note', () => {
  const rows = ['2026-01-05T15:00Z,AAPL,230', '2026-01-05T15:05Z,AAPL,231', '2026-01-05T15:10Z,NVDA,180']
  const later = ['2026-01-05T15:15Z,NVDA,181', '2026-01-05T15:15Z,AAPL,232']
  const tape = parseTape([file(`time,symbol,price\n${[...rows, ...later].join('\n')}\n`)])
  expect(closes(tape).map(([time]) => time)).toEqual(['2026-01-05T15:10:00.000Z', '2026-01-05T15:15:00.000Z'])
  expect(tape.notes).toEqual(['Prices before 2026-01-05T15:10:00.000Z are not played: NVDA has none until then.'])
})

describe('a file of prices with splits and dividends', () => {
  const history = (rows: string, more = '') =>
    file(`Date,Open,High,Low,Close,Volume,Dividends,Stock Splits${more}\n${rows}`, {
      symbol: 'NVDA',
      timeZone: 'America/New_York',
    })
  const split = history(`2024-06-06,120,121,119,120,1,0.0,0.0
2024-06-07,120,121,119,120,1,0.0,0.0
2024-06-10,121,122,120,121,1,0.0,10.0
2024-06-11,121,122,120,121,1,0.605,0.0
2024-06-12,121,122,120,121,1,0.0,0.0`)

  it('has corporate actions when the day begins, announced before it, and prices that they do not move', () => {
    const tape = parseTape([split])
    const announced = tape.steps.flatMap(({ time, actions = [] }) => actions.map(action => ({ time, ...action })))
    expect(announced.map(({ multiplier }) => multiplier)).toEqual(['10.000000000000', '10.050000000000'])
    expect(announced.map(({ effectiveAt }) => new Date(effectiveAt * 1_000).toISOString())).toEqual([
      '2024-06-10T04:00:00.000Z',
      '2024-06-11T04:00:00.000Z',
    ])
    for (const { time, effectiveAt } of announced) expect(time).toBeLessThan(effectiveAt)
    expect(closes(tape).map(([, price]) => price)).toEqual([120, 120, 121, 121, 121])
    expect(tape.notes).toEqual(['2 splits and dividends of shares are replayed.'])
  })

  it('has them once if a row repeats', () => {
    const rows = split.text.split('\n')
    expect(parseTape([{ ...split, text: [...rows, rows[3]].join('\n') }])).toEqual(parseTape([split]))
  })

  it('has them in its windows, which begin with what is in force, and in disguise', () => {
    const actionsOf = ({ steps }: Tape) => steps.flatMap(({ actions = [] }) => actions)
    const [, second] = windowsOf(parseTape([split]), 2) as [Tape, Tape]
    expect(actionsOf(second).map(({ multiplier }) => Number(multiplier))).toEqual([10, 10.05])
    expect(second.steps[0]?.actions).toHaveLength(1)
    const { tape, names } = disguiseTape(parseTape([split]), 1)
    expect(actionsOf(tape).map(({ symbol }) => symbol)).toEqual([names.NVDA, names.NVDA])
    for (const { time, actions = [] } of tape.steps)
      for (const { effectiveAt } of actions) expect(effectiveAt - time).toBeLessThan(3 * 86_400)
  })

  it('is refused if its prices are not adjusted for them', () => {
    const falling = history('2024-06-07,1200,1210,1190,1200,1,0,0\n2024-06-10,121,122,120,121,1,0,10')
    expect(() => parseTape([falling])).toThrow('Line 3 of nvda.csv: the price moves with the split of 10.')
    const unadjusted = history(
      '2024-06-07,120,121,119,120,1,0,0,119\n2024-06-10,121,122,120,121,1,0.5,0,121',
      ',Adj Close',
    )
    expect(() => parseTape([unadjusted])).toThrow('Export adjusted ones, with yfinance by auto_adjust=True.')
    for (const [columns, before, after] of [
      ['adjusted_close,volume,dividend_amount,split_coefficient', '120,1,0.0,1.0', '121,1,0.0,10.0'],
      ['volume,divCash,splitFactor', '1,0.0,1.0', '1,0.0,10.0'],
      ['Adjusted_close', '120', '121'],
      ['Adj Close', '"1,200.00"', '12.10'],
      ['Ex-Dividend,Split Ratio,Adj. Close', '0.5,1.0,119.5', '0.5,1.0,121'],
    ])
      expect(() =>
        parseTape([
          file(
            `Date,Open,High,Low,Close,${columns}\n2024-06-07,1200,1210,1190,1200,${before}\n2024-06-10,121,122,120,121,${after}`,
            { symbol: 'NVDA', timeZone: 'America/New_York' },
          ),
        ]),
      ).toThrow('Export ')
    expect(() => parseTape([history('2024-06-07,120,121,119,120,1,0,ten')])).toThrow('Line 2 of nvda.csv, split: "ten"')
  })
})

describe('a candle', () => {
  const candles = (...times: string[]) =>
    file(`time,symbol,open,high,low,close\n${times.map(time => `${time},NVDA,100,104,99,103`).join('\n')}`)

  it('that does not fit the usual length is refused with file and line, and never changes the length of the others', () => {
    const half = candles(...['14:00', '14:30', '15:30', '16:30', '17:30'].map(time => `2026-03-09T${time}:00Z`))
    expect(() => parseTape([half])).toThrow(
      'Line 3 of nvda.csv: the candle begins 1800 seconds after the one before, but candles are 3600 seconds long.',
    )
    const live = candles(...['14:00:00', '14:05:00', '14:10:00', '14:14:43'].map(time => `2026-03-09T${time}Z`))
    expect(() => parseTape([live])).toThrow('Line 5 of nvda.csv')
  })

  it('of a day may follow one that clocks made an hour shorter, and nights and weekends are no odd rows', () => {
    const days = ['2026-03-05', '2026-03-06', '2026-03-07', '2026-03-08', '2026-03-09', '2026-03-10']
    expect(closes(parseTape([{ ...candles(...days), timeZone: 'America/New_York' }]))).toHaveLength(days.length)
    const hours = ['2026-03-05T19:30:00Z', '2026-03-05T20:30:00Z', '2026-03-06T14:30:00Z', '2026-03-06T15:30:00Z']
    expect(closes(parseTape([candles(...hours)]))).toHaveLength(hours.length)
  })

  it('is refused at an hour that clocks skip or repeat', () => {
    for (const time of ['2026-03-08 02:30', '2026-11-01 01:30'])
      expect(() => parseTape([{ ...candles(time), timeZone: 'America/New_York' }])).toThrow(
        `"${time}" is not a time of America/New_York`,
      )
  })

  const FIVE_MINUTES = ['13:30:00', '13:35:00', '13:40:00'].map(time => `2025-05-07T${time}Z`)
  it.each([
    ['of which a half is missing', ['2025-05-07T14:00Z', '2025-05-07T14:30Z', '2025-05-07T15:30Z'], 'Add more rows.'],
    ['of a file with one', ['2025-05-07T14:00Z'], 'NVDA has one candle, whose length is not known. Add the next one.'],
    ['of a month', ['2025-01-01T00:00Z', '2025-02-01T00:00Z', '2025-03-01T00:00Z'], 'Export shorter ones'],
    ['that is not whole, after a missing one', [...FIVE_MINUTES, '2025-05-07T13:47:13Z'], 'Line 5 of nvda.csv'],
    [
      'of a day that is not over',
      ['2025-05-07 00:00:00-04:00', '2025-05-08 00:00:00-04:00', '2025-05-09 14:41:12-04:00'],
      'Line 4 of nvda.csv: no other candle of 86400 seconds begins at such a time.',
    ],
  ])('%s is refused, because its length is not known', (_, times, message) => {
    expect(() => parseTape([candles(...times)])).toThrow(message)
  })

  it('of a token with a gap is refused if only others in the file tell its length', () => {
    const gap = `Ticker,AAPL,AAPL,AAPL,AAPL,NVDA,NVDA,NVDA,NVDA
Price,Open,High,Low,Close,Open,High,Low,Close
Datetime,,,,,,,,
2025-02-14 14:30:00+00:00,10,12,9,11,20,22,19,21
2025-02-14 14:31:00+00:00,11,12,9,12,,,,
2025-02-14 14:32:00+00:00,12,12,9,10,20,22,19,21`
    expect(() => parseTape([file(gap)])).toThrow('candles of NVDA may be 60 or 120 seconds long')
  })

  it('that repeats is played once, and is refused if it differs or overlaps that of another file', () => {
    const [first = '', second = ''] = FIVE_MINUTES
    expect(parseTape([candles(first, second, second)])).toEqual(parseTape([candles(first, second)]))
    const other = candles(first, second).text.replaceAll('104', '105')
    expect(() => parseTape([file(`${candles(first, second).text}\n${other.split('\n')[2]}`)])).toThrow(
      'Line 4 of nvda.csv: NVDA has another candle of the same time. Delete one of them.',
    )
    expect(() => parseTape([candles(first, second), file(other, { name: 'b.csv' })])).toThrow(
      'Line 2 of b.csv: the candle of NVDA begins before that of Line 2 of nvda.csv ends.',
    )
    expect(() => parseTape([candles(first, second), file(`time,symbol,price\n${first},NVDA,1`)])).toThrow(
      'NVDA has candles too',
    )
  })

  it('of a day ends when the next one begins, where clocks change', () => {
    const ends = (...days: string[]) =>
      closes(parseTape([{ ...candles(...days), timeZone: 'America/New_York' }])).map(([time]) => time)
    expect(ends('2026-03-08', '2026-03-09')[0]).toBe('2026-03-09T04:00:00.000Z')
    expect(ends('2026-10-31', '2026-11-01', '2026-11-02')[1]).toBe('2026-11-02T05:00:00.000Z')
    expect(ends('2026-11-01', '2026-11-02')[1]).toBe('2026-11-03T05:00:00.000Z')
  })

  it('of a wide range in few seconds has its open, both extremes and its close, and one that is too short is refused', () => {
    const lasting = (seconds: number) =>
      parseTape([
        file(
          `time,symbol,open,high,low,close\n${[0, 1].map(index => `${1_744_792_500 + seconds * index},NVDA,100,105,95,101`).join('\n')}`,
        ),
      ])
    for (const seconds of [4, 5, 60]) {
      const prices = lasting(seconds)
        .steps.slice(0, seconds)
        .map(step => Number(step.prices.get('NVDA')) / 1e8)
      expect([prices[0], Math.max(...prices), Math.min(...prices), prices.at(-1)]).toEqual([100, 105, 95, 101])
    }
    expect(() => lasting(3)).toThrow('Line 2 of nvda.csv: candles of 3 seconds are too short to be played.')
  })

  it('whose high is too far above its low is refused with file and line', () => {
    const text = 'time,symbol,open,high,low,close\n1744792500,NVDA,1,10000000,0.0000001,1\n1744792800,NVDA,1,1,1,1'
    expect(() => parseTape([file(text)])).toThrow('Line 2 of nvda.csv: the high is too far above the low to be played.')
  })
})

it('the rehearsal says that it reads these exports', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/rehearsal.md'), 'utf8')
  for (const source of ['yfinance', 'Binance', 'Alpaca', 'TradingView', 'investing.com']) expect(page).toContain(source)
})
