import { csvLine } from '@agent-trading-service/protocol/csv-line'
import { type Command, Option } from 'commander'
import { Failure } from '../failure.ts'
import { withProgress } from '../output/progress.ts'
import { recordDay } from '../tape/record-day.ts'
import { createReader, type Reader } from '../trading/create-reader.ts'
import { createGroup, createServiceCommand, digits, rpcOption, type ServiceOptions, serviceUrl } from './options.ts'

type CandleQuery = Parameters<Reader['getCandles']>[0]
type Interval = NonNullable<CandleQuery['interval']>
type RecordOptions = ServiceOptions & {
  posts?: true
  rpc?: string
  symbols?: string
  interval: Interval
  from?: string
  to?: string
}
type Row = { time: string; symbol: string; prices: (string | undefined)[] }

const PAGE = 1000

/** `ats tape`: the prices that a rehearsal plays. */
export const tapeCommand = (): Command =>
  createGroup('tape', 'prices for a rehearsal', 'ats tape record --symbols NVDA,AAPL > tape.csv').addCommand(
    recordCommand(),
  )

function recordCommand(): Command {
  return createServiceCommand(
    'record',
    'print the candles of a deployment as a tape in CSV, or a day of it with every post',
    'ats tape record --symbols NVDA,AAPL --interval 5m > tape.csv',
    'ats tape record --posts --url https://api.example > day.json',
  )
    .option('--symbols <symbols>', 'tokens, separated by commas')
    .addOption(
      new Option('--posts', 'every post and pool, with vaults and policies, as JSON').conflicts([
        'symbols',
        'interval',
      ]),
    )
    .addOption(rpcOption('node to read posts from; the one that the deployment names by default').argParser(serviceUrl))
    .addOption(
      new Option('--interval <interval>', 'length of a bar')
        .choices(['1m', '5m', '15m', '1h', '4h', '1d'])
        .default('5m'),
    )
    .addOption(new Option('--from <seconds>', 'first time, in Unix seconds').argParser(digits))
    .addOption(new Option('--to <seconds>', 'last time, in Unix seconds; now by default').argParser(digits))
    .action(record)
}

async function record({ url, timeout, posts, rpc, symbols, interval, from, to }: RecordOptions): Promise<void> {
  if (posts) {
    const day = await withProgress('Reading the day', recordDay(url, { rpc, from, to }))
    process.stdout.write(`${JSON.stringify(day)}\n`)
    return
  }
  if (symbols === undefined)
    throw new Failure('usage', 'The tape has no symbols.', {
      code: 'SYMBOLS_REQUIRED',
      remedy: 'Name them, such as --symbols NVDA,AAPL, or record every post with --posts.',
    })
  const reader = createReader({ url, timeout })
  const range = { interval, ...(from !== undefined && { from }), ...(to !== undefined && { to }) }
  const names = [...new Set(symbols.split(',').map(symbol => symbol.trim()))].filter(Boolean)
  const rows: Row[] = []
  for (const symbol of names)
    rows.push(...(await withProgress(`Reading ${symbol}`, readCandles(reader, { symbol, ...range } as CandleQuery))))
  if (rows.length === 0)
    throw new Failure('refused', 'The deployment has no candles in that time.', {
      code: 'TAPE_EMPTY',
      remedy: 'Choose an earlier --from or a longer --interval: candles shorter than an hour exist for 90 days.',
    })
  rows.sort((a, b) => Number(a.time) - Number(b.time) || (a.symbol < b.symbol ? -1 : 1))
  const lines = rows.map(({ time, symbol, prices }) => csvLine([time, symbol, ...prices]))
  process.stdout.write(`${['time,symbol,open,high,low,close', ...lines].join('\n')}\n`)
}

/** Returns every candle of a token in a range, from all pages. */
async function readCandles(reader: Reader, query: CandleQuery): Promise<Row[]> {
  const rows: Row[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await reader.getCandles({ ...query, limit: PAGE, ...(cursor && { cursor }) } as CandleQuery)
    const { t, o, h, l, c } = page.candles
    rows.push(
      ...t.map((time, index) => ({ time, symbol: page.symbol, prices: [o[index], h[index], l[index], c[index]] })),
    )
    cursor = page.nextCursor
  }
  return rows
}
