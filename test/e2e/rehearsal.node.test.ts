import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-rehearsal-'))
afterAll(() => rmSync(folder, { recursive: true }))

const SOURCE = '--conditions=@agent-trading-service/source'
const AGENT = [process.execPath, SOURCE, 'test/support/rehearsed-agent.ts']

type Run = { code: number | null; stdout: string; stderr: string }

const rehearse = (...args: string[]): Promise<Run> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [SOURCE, 'scripts/rehearse.ts', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let [stdout, stderr] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.once('error', reject).once('close', code => resolve({ code, stdout, stderr }))
  })

/** A tape of two tokens whose prices swing by 2 % around 100 and 200, in bars of five minutes of a session. */
function writeTape(): string {
  const rows = Array.from({ length: 40 }, (_, bar) => {
    const time = 1_772_461_800 + 300 * bar
    const swing = Math.round(200 * Math.sin(bar / 3))
    return `${time},NVDA,${(10_000 + swing) / 100}\n${time},AAPL,${(20_000 - 2 * swing) / 100}`
  })
  const file = join(folder, 'tape.csv')
  writeFileSync(file, `time,symbol,price\n${rows.join('\n')}\n`)
  return file
}

it('the same tape and agent give the same report to the letter, with exits that the keeper fired between the bars', async () => {
  const tape = writeTape()
  const [first, second] = ['first.json', 'second.json'].map(name => join(folder, name))
  const page = join(folder, 'report.html')
  for (const file of [first, second]) {
    const run = await rehearse(
      ...['--tape', tape, '--json', file ?? '', '--report', page, '--require', 'trades>3', '--'],
      ...AGENT,
      'NVDA',
      'AAPL',
    )
    expect(run.code, run.stderr).toBe(0)
    expect(run.stdout).toContain('met: trades>3')
  }
  const report = JSON.parse(readFileSync(first ?? '', 'utf8'))
  expect(report.bars).toBe(40)
  const trades: { source: string; timestamp: string }[] = report.agents[0].trades
  expect(trades.some(({ source }) => source === 'automation')).toBe(true)
  // The times of the tape, not those of the chain that played it.
  expect(trades.every(({ timestamp }) => Number(timestamp) < 1_772_461_800 + 300 * 41)).toBe(true)
  expect(readFileSync(second ?? '', 'utf8')).toBe(readFileSync(first ?? '', 'utf8'))
  expect(readFileSync(page, 'utf8')).toContain('bar 0')
})

/** A tape of hourly candles of a token, each with a range of 4 % and no gap before it. */
function writeCandles(): string {
  const rows = Array.from({ length: 6 }, (_, hour) => {
    const [open, close] = [100 + 0.9 * Math.sin(hour), 100 + 0.9 * Math.sin(hour + 1)].map(price => price.toFixed(2))
    return `${1_772_461_800 + 3_600 * hour},NVDA,${open},102,98,${close}`
  })
  const file = join(folder, 'candles.csv')
  writeFileSync(file, `time,symbol,open,high,low,close\n${rows.join('\n')}\n`)
  return file
}

it.each(['natural', 'pessimistic'])(
  'a stop and a target that lie within a candle fill at most 12 basis points from their trigger on the %s path',
  async path => {
    const json = join(folder, `${path}.json`)
    const run = await rehearse(
      ...['--tape', writeCandles(), '--path', path, '--hours', 'all', '--json', json, '--', ...AGENT, 'NVDA'],
    )
    expect(run.code, run.stderr).toBe(0)
    type Trade = { type: string; positionId: string; source: string; priceUsdc: string; triggerBps: number | null }
    const trades: Trade[] = JSON.parse(readFileSync(json, 'utf8')).agents[0].trades
    const entries = new Map(
      trades
        .filter(({ type }) => type === 'PositionOpened')
        .map(({ positionId, priceUsdc }) => [positionId, priceUsdc]),
    )
    const exits = trades.filter(({ source }) => source === 'automation')
    expect(exits.length).toBeGreaterThan(1)
    for (const { positionId, priceUsdc, triggerBps } of exits) {
      const trigger = Number(entries.get(positionId)) * (1 + Number(triggerBps) / 10_000)
      expect(Math.abs(Number(priceUsdc) / trigger - 1)).toBeLessThanOrEqual(0.0012)
    }
    // The low comes first, so every position that spans one meets its stop before its target.
    if (path === 'pessimistic') expect(exits.every(({ triggerBps }) => Number(triggerBps) < 0)).toBe(true)
  },
)

it('agents on one market take turns and are ranked, and a bar that is missed exits with 1', async () => {
  const agent = `${AGENT.map(part => `'${part}'`).join(' ')}`
  const run = await rehearse(
    ...['--tape', writeTape(), '--require', 'trades>100'],
    ...['--agent', `${agent} NVDA`, '--agent', `${agent} AAPL`],
  )
  expect(run.code, run.stderr).toBe(1)
  expect(run.stdout.match(/MISSED: trades>100/g)).toHaveLength(2)
})

it('a market has tokens of any price that a file can have', async () => {
  const file = join(folder, 'prices.csv')
  const rows = [1_772_700_000, 1_772_700_300].flatMap(time => [`${time},CHEAP,0.0000001`, `${time},DEAR,10000000`])
  writeFileSync(file, ['time,symbol,price', ...rows].join('\n'))
  const run = await rehearse('--tape', file)
  expect(run.code, run.stderr).toBe(0)
  expect(run.stdout).toContain('2 bars of 2 tokens')
})

it('a bar or a tape that is written wrong ends with 2 before anything starts', async () => {
  const bar = await rehearse('--market', 'gbm', '--require', 'fame>3', '--', 'true')
  expect(bar).toMatchObject({ code: 2, stderr: expect.stringContaining('There is no figure "fame"') })
  const file = join(folder, 'wrong.csv')
  writeFileSync(file, 'time,symbol,price\n1,NVDA,soon\n')
  const tape = await rehearse('--tape', `NVDA=${file}`, '--tz', 'America/New_York', '--', 'true')
  expect(tape).toMatchObject({ code: 2, stderr: expect.stringContaining('Line 2 of wrong.csv') })
})
