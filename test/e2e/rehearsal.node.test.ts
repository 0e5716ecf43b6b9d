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

it('agents on one market take turns and are ranked, and a bar that is missed exits with 1', async () => {
  const agent = `${AGENT.map(part => `'${part}'`).join(' ')}`
  const run = await rehearse(
    ...['--tape', writeTape(), '--require', 'trades>100'],
    ...['--agent', `${agent} NVDA`, '--agent', `${agent} AAPL`],
  )
  expect(run.code, run.stderr).toBe(1)
  expect(run.stdout.match(/MISSED: trades>100/g)).toHaveLength(2)
})

it('a bar or a tape that is written wrong ends with 2 before anything starts', async () => {
  const bar = await rehearse('--market', 'gbm', '--require', 'fame>3', '--', 'true')
  expect(bar).toMatchObject({ code: 2, stderr: expect.stringContaining('There is no figure "fame"') })
  const file = join(folder, 'wrong.csv')
  writeFileSync(file, 'time,symbol,price\n1,NVDA,soon\n')
  const tape = await rehearse('--tape', `NVDA=${file}`, '--tz', 'America/New_York', '--', 'true')
  expect(tape).toMatchObject({ code: 2, stderr: expect.stringContaining('Line 2 of wrong.csv') })
})
