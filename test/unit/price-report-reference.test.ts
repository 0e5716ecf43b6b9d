import { decodeEnvelope, envelopeParameters, type PriceReport } from '@agent-trading-service/protocol/price-report'
import { decodeReport as decodeByReference } from '@chainlink/data-streams-sdk'
import { encodeAbiParameters, type Hex, padHex, toHex } from 'viem'
import { expect, inject, it } from 'vitest'
import { encodeReport } from '../../devnet/price-reports.ts'
import { randomOf } from '../support/seeded-random.ts'

// The provider's own decoder (npm `@chainlink/data-streams-sdk`) must read the same in each report.

const REPORTS = inject('isLong') ? 10_000 : 1_000
const random = randomOf('price reports').next
const below = (max: bigint): bigint => (BigInt(Math.floor(random() * 2 ** 48)) * max) / 2n ** 48n
const uint = (bits: bigint) => below(2n ** bits)
const seconds = () => Number(uint(32n))
/** Any value of int192, negative ones and those near its ends included. */
const price = () => (random() < 0.1 ? -(2n ** 191n) + uint(8n) : uint(191n) - 2n ** 190n)

function randomReport(): PriceReport {
  const schema = randomOf('schema', random()).pick([8, 10, 11] as const)
  const common = {
    feedId: padHex(`0x${schema.toString(16).padStart(4, '0')}${toHex(uint(64n)).slice(2).padStart(16, '0')}`, {
      size: 32,
      dir: 'right',
    }),
    validFromTimestamp: seconds(),
    observationsTimestamp: seconds(),
    nativeFee: uint(192n),
    linkFee: uint(192n),
    expiresAt: seconds(),
    // The reference throws for other statuses of schemas 8 and 10.
    marketStatus: schema === 11 ? seconds() : Math.floor(random() * 3),
  }
  if (schema === 8) return { schema, ...common, lastUpdateTimestamp: uint(53n), midPrice: price() }
  if (schema === 10)
    return {
      schema,
      ...common,
      lastUpdateTimestamp: uint(53n),
      price: price(),
      currentMultiplier: price(),
      newMultiplier: price(),
      activationDateTime: seconds(),
      tokenizedPrice: price(),
    }
  return {
    schema,
    ...common,
    mid: price(),
    lastSeenTimestampNs: uint(53n),
    bid: price(),
    bidVolume: price(),
    ask: price(),
    askVolume: price(),
    lastTradedPrice: price(),
  }
}

const word = (): Hex => padHex(toHex(uint(256n)), { size: 32 })
const envelopeOf = (report: PriceReport): Hex =>
  encodeAbiParameters(envelopeParameters, [
    [word(), word(), word()],
    encodeReport(report),
    [word(), word()],
    [word(), word()],
    word(),
  ])

it(`our decoder and the provider's read the same in ${REPORTS} random reports`, () => {
  for (let count = 0; count < REPORTS; count++) {
    const report = randomReport()
    const payload = envelopeOf(report)
    const own = decodeEnvelope(payload)
    expect(own).toEqual(report)
    const { version, ...fields } = decodeByReference(payload, report.feedId)
    expect(version).toBe(`V${own.schema}`)
    const theirs = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, BigInt(value)]))
    const ours = Object.fromEntries(
      Object.keys(theirs).map(name => [name, BigInt((own as unknown as Record<string, bigint | number>)[name] ?? -1)]),
    )
    expect(ours).toEqual(theirs)
  }
})
