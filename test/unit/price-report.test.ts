import {
  currentReport,
  decodeEnvelope,
  decodeReport,
  isTrading,
  observedAtOf,
} from '@agent-trading-service/protocol/price-report'
import type { Hex } from 'viem'
import { describe, expect, it } from 'vitest'
import { encodeReport, reportOf, signReport } from '../../devnet/price-reports.ts'

const idOf = (schema: number): Hex => `0x${schema.toString(16).padStart(4, '0')}${'ab'.repeat(30)}`
const DIGEST: Hex = `0x0006${'cd'.repeat(30)}`
const stateAt = (observedAt: number, marketStatus = 2) => ({ price: 180n * 10n ** 18n, observedAt, marketStatus })

describe('a signed price report', () => {
  it('a signed price report decodes to what was signed, in every supported schema', async () => {
    for (const schema of [8, 10, 11]) {
      const report = reportOf(idOf(schema), stateAt(1_790_000_000))
      const payload = await signReport(encodeReport(report), { configDigest: DIGEST })
      expect(decodeEnvelope(payload)).toEqual(report)
    }
  })

  it('a signed price report of another schema, or bytes that are none, do not decode', () => {
    const report = encodeReport(reportOf(idOf(8), stateAt(1_790_000_000)))
    expect(() => decodeReport(`0x0003${report.slice(6)}`)).toThrow('schema 3')
    expect(() => decodeReport(report.slice(0, -64) as Hex)).toThrow()
    expect(() => decodeEnvelope('0x')).toThrow()
  })

  it('a signed price report trades in the session of its stream alone: status 1 is closed, except before the market of schema 11', () => {
    const trading = (schema: number, session: number) =>
      [0, 1, 2, 3, 4, 5, 6, 255].filter(status => isTrading(reportOf(idOf(schema), stateAt(1, status)), session))
    expect([8, 10, 11].map(schema => trading(schema, 0))).toEqual([[2], [2], [2]])
    expect([8, 10].flatMap(schema => trading(schema, 1))).toEqual([])
    expect(trading(11, 1)).toEqual([1, 3])
    expect(trading(11, 2)).toEqual([4])
    expect(trading(11, 3)).toEqual([])
  })

  it('a signed price report is as old as the price in it, however new it is itself', () => {
    const report = reportOf(idOf(11), stateAt(1_000))
    if (report.schema !== 11) throw new Error('schema 11')
    expect(observedAtOf(report)).toBe(1_000)
    expect(observedAtOf({ ...report, lastSeenTimestampNs: 900n * 10n ** 9n })).toBe(900)
  })

  it('a signed price report of three streams is the one whose session it is; none while the market is closed', () => {
    const of = (...statuses: number[]) =>
      statuses.map((status, index) => ({ index, report: reportOf(idOf(11), stateAt(1_000 + index, status)) }))
    expect(currentReport(of(2, 2, 2))?.index).toBe(0)
    expect(currentReport(of(3, 3, 3))?.index).toBe(1)
    expect(currentReport(of(4, 4, 4))?.index).toBe(2)
    expect(currentReport(of(5, 5, 5))).toBeUndefined()
    expect(currentReport([undefined])).toBeUndefined()
  })
})
