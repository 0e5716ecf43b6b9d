import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { billFor, MONTHS } from '../../bench/counts/bill.ts'
import { readMeasured, STEPS } from '../../bench/counts/measured.ts'
import { scalingTables, withTables } from '../../bench/counts/scaling-page.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/scaling.md'), 'utf8')

it('docs/scaling.md has the figures of bench/counts.json', () => {
  expect(page).toBe(withTables(page, scalingTables(readMeasured())))
})

it('every step of the life was counted', () => {
  const { steps } = readMeasured()
  expect(Object.keys(steps).sort()).toEqual(Object.keys(STEPS).sort())
  for (const step of ['open', 'ladder', 'close'] as const) {
    expect(steps[step].objectRowsWritten).toBeGreaterThan(0)
    expect(steps[step].d1RowsWritten).toBeGreaterThan(0)
    expect(steps[step].rpcRequests).toBeGreaterThan(0)
  }
})

it('a bill is the sum of its lines, and more work costs more', () => {
  const bills = MONTHS.map(month => billFor(readMeasured(), month))
  for (const { lines, total } of bills) expect(total).toBeCloseTo(lines.reduce((sum, { dollars }) => sum + dollars, 0))
  const totals = bills.map(({ total }) => total)
  expect(totals).toEqual(totals.toSorted((a, b) => a - b))
})
