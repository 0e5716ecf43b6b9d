import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { enforceLimits } from '../../packages/cli/src/limits/enforce-limits.ts'
import { limitsPath } from '../../packages/cli/src/limits/limits-file.ts'
import { logPurchase, spentToday } from '../../packages/cli/src/limits/purchase-log.ts'

// Called directly where a test needs two processes at once, another day, or one process that outlives the file.

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'ats-'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const source = join(import.meta.dirname, '../../packages/cli/src/limits/purchase-log.ts')

it('never exceeds the limit per day with several processes at once', async () => {
  const purchases = `
    import { logPurchase } from ${JSON.stringify(source)}
    let bought = 0
    for (let index = 0; index < 20; index++)
      if (logPurchase(process.env.LOG, { id: process.pid + '-' + index, usdc: 100n, isWithin: spent => spent.usdc + 100n <= 1000n }).isWithin) bought++
    console.log(bought)`
  const run = promisify(execFile)
  const results = await Promise.all(
    Array.from({ length: 4 }, () =>
      run(process.execPath, ['--input-type=module-typescript', '-e', purchases], {
        env: { ...process.env, LOG: home },
      }),
    ),
  )
  const bought = results.reduce((sum, { stdout }) => sum + Number(stdout), 0)
  expect(spentToday(home).usdc).toBe(BigInt(bought) * 100n)
  expect(bought).toBeLessThanOrEqual(10)
  expect(bought).toBeGreaterThan(0)
})

it('counts the last 24 hours, and the same intent once', () => {
  const now = Date.UTC(2026, 5, 15, 12)
  const hour = 3_600_000
  const buy = (id: string, at: number) =>
    logPurchase(home, { id, usdc: 60n, isWithin: ({ usdc }) => usdc + 60n <= 100n, now: at }).isWithin
  expect(buy('a', now)).toBe(true)
  expect(buy('a', now + hour)).toBe(true)
  expect(buy('b', now + 23 * hour)).toBe(false)
  expect(buy('b', now + 25 * hour)).toBe(true)
  expect(spentToday(home, now + 25 * hour).usdc).toBe(60n)
})

it('counts purchases on both sides of midnight, whichever process writes first', () => {
  const midnight = Date.UTC(2026, 5, 15)
  const buy = (id: string, at: number) =>
    logPurchase(home, { id, usdc: 60n, isWithin: ({ usdc }) => usdc + 60n <= 100n, now: at }).isWithin
  expect(buy('a', midnight)).toBe(true)
  expect(buy('b', midnight - 1)).toBe(false)
})

it('logs purchases also without a limit per day, for a limit that is set later', () => {
  const purchase = { usdc: 60_000_000n, symbol: 'NVDA' }
  enforceLimits(home, { id: 'a', ...purchase })
  writeFileSync(limitsPath(home), '{"perDayUsdc":"100"}', { mode: 0o600 })
  expect(() => enforceLimits(home, { id: 'b', ...purchase })).toThrow('exceed the limit of 100 USDC per day')
})

it('counts the fees of registrations towards the day, and allows one registration a day unless the file names more', () => {
  const register = (id: string) => enforceLimits(home, { id, usdc: 1_000_000n, registers: true })
  const limits = (text: string) => writeFileSync(limitsPath(home), text, { mode: 0o600 })
  limits('{"perTradeUsdc":"0.5","perDayUsdc":"3","symbols":["NVDA"]}')
  register('a')
  expect(() => register('b')).toThrow('1 of 1 registrations per day are used')
  limits('{"perDayUsdc":"3","registrations":9}')
  register('b')
  expect(() => enforceLimits(home, { id: 'c', usdc: 1_000_001n, symbol: 'NVDA' })).toThrow('limit of 3 USDC per day')
  register('d')
  expect(() => register('e')).toThrow('The fee of 1 USDC and the 3 USDC of the last 24 hours exceed')
  expect(spentToday(home)).toEqual({ usdc: 3_000_000n, registrations: 3 })
})

const buyAny = () => enforceLimits(home, { id: 'a', usdc: 1n, symbol: 'NVDA' })

it('allows nothing once the limits file is gone in the middle', () => {
  writeFileSync(limitsPath(home), '{}', { mode: 0o600 })
  buyAny()
  rmSync(limitsPath(home))
  expect(buyAny).toThrow(
    expect.objectContaining({ kind: 'limits', facts: expect.objectContaining({ code: 'LIMITS_GONE' }) }),
  )
})

it.each([
  ['a link to nothing', () => symlinkSync(join(home, 'nowhere'), limitsPath(home))],
  ['a folder', () => mkdirSync(limitsPath(home), { mode: 0o700 })],
])('allows nothing if the limits file is %s', (_, make) => {
  make()
  expect(buyAny).toThrow(expect.objectContaining({ facts: expect.objectContaining({ code: 'LIMITS_INVALID' }) }))
})
