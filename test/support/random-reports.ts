import { envelopeParameters, type PriceReport } from '@agent-trading-service/protocol/price-report'
import { encodeAbiParameters, type Hex, padHex, toHex } from 'viem'
import { encodeReport } from '../../devnet/price-reports.ts'
import { randomOf } from './seeded-random.ts'

/** Returns random reports of all supported schemas with any values, each in an envelope without valid signatures. */
export function randomReports(count: number): { report: PriceReport; payload: Hex }[] {
  const { next, pick } = randomOf('price reports')
  const uint = (bits: bigint): bigint => (BigInt(Math.floor(next() * 2 ** 48)) * 2n ** bits) / 2n ** 48n
  const seconds = () => Number(uint(32n))
  /** Any value of int192, negative ones and those near its ends included. */
  const price = () => (next() < 0.1 ? -(2n ** 191n) + uint(8n) : uint(191n) - 2n ** 190n)
  const word = (): Hex => padHex(toHex(uint(256n)), { size: 32 })

  function randomReport(): PriceReport {
    const schema = pick([8, 10, 11] as const)
    const common = {
      feedId: `0x${schema.toString(16).padStart(4, '0')}${word().slice(6)}` as Hex,
      validFromTimestamp: seconds(),
      observationsTimestamp: seconds(),
      nativeFee: uint(192n),
      linkFee: uint(192n),
      expiresAt: seconds(),
      // The provider's own decoder throws for other statuses of schemas 8 and 10.
      marketStatus: schema === 11 ? seconds() : pick([0, 1, 2]),
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

  return Array.from({ length: count }, () => {
    const report = randomReport()
    const context = [word(), word(), word()] as const
    const signatures = [[word(), word()], [word(), word()], word()] as const
    return { report, payload: encodeAbiParameters(envelopeParameters, [context, encodeReport(report), ...signatures]) }
  })
}
