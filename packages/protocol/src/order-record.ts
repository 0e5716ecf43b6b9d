import type { Address, Hex } from 'viem'
import type { Order } from './order-typed-data.ts'
import type { LogPosition } from './trade-events.ts'

/**
 * A part of an order that was executed. `amount` is tokens bought, or the USDC that the vault keeps. Parts count from
 * 1.
 */
export type OrderExecution = {
  part: number
  amount: bigint
  positionId: bigint
  keeper: Address
  blockNumber: bigint
  timestamp: bigint
  transactionHash: Hex
}

/** How an order ended before its last part: `reason` is an `OrderEnd`. Times are Unix seconds. */
type EndOfOrder = { reason: number; blockNumber: bigint; timestamp: bigint; transactionHash: Hex }

/**
 * An order and what became of it, its executions oldest first. `end` is null while it is open, and when its last part
 * ended it.
 */
export type OrderRecord = LogPosition & {
  orderId: Hex
  order: Order
  timestamp: bigint
  transactionHash: Hex
  executions: OrderExecution[]
  end: EndOfOrder | null
  /** When its position was closed, of one that is open; Unix seconds. */
  positionClosedAt?: bigint | undefined
  /** What its signer said about it. */
  note?: string | undefined
}
