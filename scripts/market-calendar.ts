import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { marketHours, type Session } from '../packages/protocol/src/market-hours.ts'
import type { ListingSession } from '../packages/protocol/src/token-description.ts'

// `npm run calendar`: installs exchange-calendars from PyPI into a temporary folder, compares the sessions of every
// minute from 2020 to 2035 and each closed minute's next opening, and writes the fixture that CI compares. PYTHON names
// another interpreter than python3.

const PACKAGE = 'exchange-calendars==4.13.2'
const FIXTURE = join(import.meta.dirname, '../test/unit/nyse-sessions.json')
const START = Date.UTC(2020, 0, 1) / 1000
const MINUTE = 60
const SESSIONS: Record<string, Session> = { n: 'overnight', p: 'pre', r: 'regular', o: 'post', c: 'closed' }
const MAX_SHOWN = 10

const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-calendar-'))
try {
  const python = join(folder, 'venv/bin/python')
  const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: 'inherit' })
  run(process.env.PYTHON || 'python3', '-m', 'venv', join(folder, 'venv'))
  run(python, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', PACKAGE)
  run(python, join(import.meta.dirname, 'market-calendar.py'), folder)
  const minutes = readFileSync(join(folder, 'minutes.txt'), 'latin1')
  const differences = [
    ...compare('us-equity-24-5', minutes),
    ...compare('us-equity-regular', minutes.replace(/[^r]/g, 'c')),
  ]
  for (const line of differences.slice(0, MAX_SHOWN)) console.error(line)
  if (differences.length > 0) process.exitCode = 1
  else {
    const sessions: unknown = JSON.parse(readFileSync(join(folder, 'sessions.json'), 'utf8'))
    writeFileSync(FIXTURE, `${JSON.stringify(sessions, undefined, 2)}\n`)
  }
  console.log(`${PACKAGE}: ${minutes.length} minutes in two calendars, ${differences.length} differences`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** Returns a line for each minute whose session or next opening is another one. */
function compare(calendar: ListingSession, minutes: string): string[] {
  const lines: string[] = []
  // The last closure of the file has no opening in it.
  let opensAt: number | undefined
  for (let index = minutes.length - 1; index >= 0; index--) {
    const at = START + index * MINUTE
    const expected = SESSIONS[minutes[index] ?? '']
    if (expected !== 'closed') opensAt = at
    const { session, nextOpen } = marketHours(calendar, at)
    const isSameOpening = opensAt === undefined || nextOpen === (expected === 'closed' ? opensAt : undefined)
    if (session !== expected || !isSameOpening)
      lines.push(`${calendar} ${new Date(at * 1000).toISOString()}: ${session} ${nextOpen}, expected ${expected}`)
  }
  return lines
}
