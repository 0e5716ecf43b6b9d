import { expect, it } from 'vitest'
import { type Json, renderTable } from '../../packages/cli/src/output/table.ts'
import { valueText } from '../../packages/cli/src/output/units.ts'
import recorded from '../../src/generated/recorded-examples.json' with { type: 'json' }

type Responses = Record<string, Record<string, Json>>

const operations = Object.entries(recorded.operations as Record<string, { responses: Responses }>)

it.each(operations)('prints no raw unit in the table of what %s responds', (_, { responses }) => {
  for (const [status, bodies] of Object.entries(responses)) {
    const body = bodies['application/json']
    if (!status.startsWith('2') || body === undefined) continue
    for (const line of renderTable(body, { wide: true }).split('\n')) {
      expect(line).not.toMatch(/\b1[78]\d{8}\b/) // Unix seconds
      if (/ {2}u?int\d+$/.test(line)) continue // a field of typed data
      const [name = '', text = ''] = line.split(/ {2,}/)
      if (/(Bps|Ppm)$/.test(name)) expect(text).toMatch(/ %$|^-$/)
      if (/(Usdc|^fill\.usdcAmount)$/.test(name)) expect(text).toMatch(/^-?\d+\.\d{2,6}$|^-$/)
    }
  }
})

it.each([
  ['fill.usdcAmount', '250000000', '250.00'],
  ['usdcAmount', '1000000000', '1000.00'],
  ['body.usdcAmount', '250', '250'],
  ['maxUsdcAmountHuman', '9750', '9750'],
  ['derived.returnBps', -604, '-6.04 %'],
  ['triggerBps', -800, '-8 %'],
  ['returnPpm', '-952', '-0.0952 %'],
  ['sharpeMilli', '-9602', '-9.602'],
  ['periodStart', '0', '0'],
  ['fill.tokenAmount', '5545', '5545 base units'],
])('prints %s %s as %s', (path, value, text) => expect(valueText(value, path)).toBe(text))
