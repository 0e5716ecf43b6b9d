import { decodeEnvelope } from '@agent-trading-service/protocol/price-report'
import { decodeReport as decodeByReference } from '@chainlink/data-streams-sdk'
import { expect, inject, it } from 'vitest'
import { randomReports } from '../support/random-reports.ts'

// The provider's own decoder (npm `@chainlink/data-streams-sdk`) must read the same in each report.
// `npm run libraries -- reports` compares with that of another language.

const REPORTS = inject('isLong') ? 10_000 : 1_000
const asText = (fields: object) => Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, `${value}`]))

it(`our decoder and the provider's read the same in ${REPORTS} random reports`, () => {
  for (const { report, payload } of randomReports(REPORTS)) {
    const own = decodeEnvelope(payload)
    expect(own).toEqual(report)
    const { version, ...theirs } = decodeByReference(payload, report.feedId)
    expect(version).toBe(`V${own.schema}`)
    expect(asText(own)).toMatchObject(asText(theirs))
  }
})
