import { type Address, decodeEventLog, encodeFunctionData, type Hex, isAddressEqual } from 'viem'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'

/** Why the oracle skipped an observation, by its number in `SkipReason`. */
const skipReasons = ['notNewer', 'fromFuture', 'invalidPrice', 'deviationTooLarge', 'duplicateInBatch'] as const
export type SkipReason = (typeof skipReasons)[number]

/** One observation: price with 8 decimals, observed at Unix seconds. */
export type PricePost = { token: Address; price: bigint; observedAt: bigint }

/** The one call that posts a batch; the oracle skips what it cannot take and says so in an event. */
export const encodePost = (posts: readonly PricePost[]): Hex =>
  encodeFunctionData({
    abi: priceOracleAbi,
    functionName: 'post',
    args: [posts.map(({ token }) => token), posts.map(({ price }) => price), posts.map(({ observedAt }) => observedAt)],
  })

/** What became of each token of a batch, from the receipt's logs: `undefined` when its price was taken. */
export function readPost(
  oracle: Address,
  logs: readonly { address: Address; topics: Hex[]; data: Hex }[],
): Map<Address, SkipReason | undefined> {
  const fates = new Map<Address, SkipReason | undefined>()
  for (const { address, topics, data } of logs) {
    if (!isAddressEqual(address, oracle)) continue
    const event = decodeEventLog({ abi: priceOracleAbi, topics: topics as [Hex, ...Hex[]], data })
    if (event.eventName === 'PriceUpdated') fates.set(event.args.asset, undefined)
    if (event.eventName === 'PriceSkipped') fates.set(event.args.asset, skipReasons[event.args.reason])
  }
  return fates
}
