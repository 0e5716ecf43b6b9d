import type { Address, Hex } from 'viem'
import { defineTable } from './table.ts'

/** An event of a contract that is neither a trade nor a price. Integers in `args` are digits. */
export type ContractEvent = {
  block: number
  logIndex: number
  contract: Address
  name: string
  agentId: number | null
  args: Record<string, unknown>
  transactionHash: Hex
  timestamp: number
}

export const eventsTable = defineTable<ContractEvent>('events', {
  block: event => event.block,
  log_index: event => event.logIndex,
  contract: event => event.contract,
  name: event => event.name,
  agent_id: event => event.agentId,
  args: ({ args }) => JSON.stringify(args),
  transaction_hash: event => event.transactionHash,
  timestamp: event => event.timestamp,
})

/** A row of `events`. */
export type EventRow = {
  block: number
  log_index: number
  contract: Address
  name: string
  agent_id: number | null
  args: string
  transaction_hash: Hex
  timestamp: number
}

/** Returns the event of a row. */
export const toContractEvent = (row: EventRow): ContractEvent => ({
  block: row.block,
  logIndex: row.log_index,
  contract: row.contract,
  name: row.name,
  agentId: row.agent_id,
  args: JSON.parse(row.args) as ContractEvent['args'],
  transactionHash: row.transaction_hash,
  timestamp: row.timestamp,
})

/** Events that change who controls an agent, or what its owner allows. */
export const OWNER_EVENTS = [
  'MandateUpdated',
  'BuyingStopped',
  'CloseAllStarted',
  'CloseAllEnded',
  'OwnershipOffered',
  'AgentOwnershipTransferred',
  'AgentSignerUpdated',
  'IntentsCancelled',
] as const

/** Returns names as a list of SQL. */
export const quoted = (names: readonly string[]): string => names.map(name => `'${name}'`).join()

/** A price that was posted to the oracle. Times are Unix seconds. */
type PostedPrice = {
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
