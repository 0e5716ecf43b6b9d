import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readConfig } from '../../scripts/deploy-config.ts'
import { economicsTable } from '../../scripts/economics.ts'
import { simulateEconomics, termsOf } from '../../scripts/simulate-economics.ts'

const root = join(import.meta.dirname, '../..')
const terms = termsOf(readConfig(join(root, 'scripts/deploy.example.json')))

describe('owners whom luck has promoted', () => {
  it('earn what docs/security.md says, and that is nothing', () => {
    const table = economicsTable()
    expect(readFileSync(join(root, 'docs/security.md'), 'utf8')).toContain(table)
    const rows = table.split('\n').slice(2, -1)
    expect(rows).toHaveLength(12)
    for (const row of rows) {
      const [, , , one = '', fifty = ''] = row.split('|')
      expect([one, fifty].map(cell => Number(cell.replace(/,/g, ''))).every(earned => earned <= 0)).toBe(true)
    }
  })

  it('earn from depositors where the lock covers a stop without its exit and gaps', () => {
    const rows = simulateEconomics({ ...terms, stop: 0.3 }, 2)
    expect(Math.max(...rows.map(({ attacker }) => attacker))).toBeGreaterThan(0)
    expect(Math.min(...rows.map(({ depositors }) => depositors))).toBeLessThan(0)
  })
})
