import type { Address } from 'viem'
import type { ContractEvent } from './events.ts'
import { defineTable } from './table.ts'

/** A price that was posted to the oracle. Times are Unix seconds. */
export type PostedPrice = {
  token: Address
  block: number
  logIndex: number
  price: bigint
  observedAt: number
  timestamp: number
}

export const pricesTable = defineTable<PostedPrice>('prices', {
  token: price => price.token,
  block: price => price.block,
  log_index: price => price.logIndex,
  price: ({ price }) => `${price}`,
  observed_at: price => price.observedAt,
  timestamp: price => price.timestamp,
})

/** Returns the price of an oracle event. A forced price counts as observed when it is posted. */
export function toPostedPrice({ block, logIndex, args, timestamp }: ContractEvent): PostedPrice {
  const { asset, price, observedAt = timestamp } = args as { asset: Address; price: string; observedAt?: string }
  return { token: asset, block, logIndex, price: BigInt(price), observedAt: Number(observedAt), timestamp }
}
