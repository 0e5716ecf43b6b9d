import { type Address, encodeFunctionData, type Hex, isAddressEqual } from 'viem'
import { priceOracleAbi } from '../../../contracts-abi/price-oracle.ts'
import { decodeEvent } from './decode-event.ts'

/** Why the oracle skipped a price, in the order of its enum `SkipReason`. */
const SKIP_REASONS = [
  'notNewer',
  'fromFuture',
  'invalidPrice',
  'deviationTooLarge',
  'duplicateInBatch',
  'otherSource',
] as const
type SkipReason = (typeof SKIP_REASONS)[number]

/** A price to post: 8 decimals, observed at Unix seconds. */
export type PricePost = { token: Address; price: bigint; observedAt: bigint }

/** Encodes the oracle call that posts prices. The oracle skips invalid ones and emits an event for each. */
export const encodePricePost = (posts: readonly PricePost[]): Hex =>
  encodeFunctionData({
    abi: priceOracleAbi,
    functionName: 'post',
    args: [posts.map(({ token }) => token), posts.map(({ price }) => price), posts.map(({ observedAt }) => observedAt)],
  })

/** Returns the result of each token of a post from the receipt's logs: `undefined` if its price was updated. */
export function decodePricePost(
  oracle: Address,
  logs: readonly { address: Address; topics: Hex[]; data: Hex }[],
): Map<Address, SkipReason | undefined> {
  const results = new Map<Address, SkipReason | undefined>()
  for (const log of logs) {
    if (!isAddressEqual(log.address, oracle)) continue
    const event = decodeEvent(priceOracleAbi, log)
    if (event.eventName === 'PriceUpdated') results.set(event.args.asset, undefined)
    if (event.eventName === 'PriceSkipped') results.set(event.args.asset, SKIP_REASONS[event.args.reason])
  }
  return results
}
