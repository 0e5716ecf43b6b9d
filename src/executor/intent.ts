import type { Address, Hex } from 'viem'

/** A contract call that the executor account sends. It transfers no value. */
export type Call = { to: Address; data: Hex }

export type IntentKind = 'open' | 'add' | 'reduce' | 'ladder' | 'register' | 'link' | 'prices' | 'exit' | 'settle'

/** A request to relay one intent to the chain. */
export type RelayRequest = {
  /** EIP-712 digest of the signed body. It is the idempotency key. */
  digest: Hex
  kind: IntentKind
  /** Intents of one group, such as `agent:12` or `signer:0x…`, are relayed in order. The group also chooses the lane. */
  group: string
  /** Each nonce of a group belongs to one digest. Another digest with the same nonce gets the outcome `conflict`. */
  groupNonce: string
  /** Unix seconds, compared with block timestamps. */
  deadline: bigint
  call: Call
}

export type ReceiptLog = { address: Address; topics: Hex[]; data: Hex }

export type RelayOutcome =
  /** The call was executed. Ids are read from the logs. */
  | { state: 'mined'; hash: Hex; blockNumber: bigint; logs: ReceiptLog[] }
  /** The transaction was mined and reverted. `data` is the revert data of a replay; absent if the replay returned none. */
  | { state: 'reverted'; hash: Hex; data?: Hex }
  /** Nothing was executed: the simulation failed or the deadline passed first. `message` never contains a URL. */
  | { state: 'rejected'; data?: Hex; message?: string }
  /** Another digest holds this group nonce. */
  | { state: 'conflict'; digest: Hex }
  /** The wait ended without a result. Relaying the same digest again returns its outcome and never executes it twice. */
  | { state: 'unknown'; hash?: Hex }
  /** No node was reachable. Nothing was signed. */
  | { state: 'unsent' }
  /** The lane is at capacity, or the group reverted too often (`why: 'reverts'`). Nothing was signed. */
  | { state: 'busy'; retryAfterSeconds: number; why?: 'reverts' }
  /** The executor account cannot pay for gas. Nothing was signed. */
  | { state: 'unfunded' }
  /** Someone else sends from the executor account. Nothing was signed. */
  | { state: 'paused'; retryAfterSeconds: number }

/**
 * `received`: being checked. `prepared`: signed and journalled. `sent`: a node accepted the transaction. `mined`: executed.
 * `final`: executed, and too deep for a reorg. `reverted`: mined without effect. `rejected`: nothing was executed.
 */
export type IntentState = 'received' | 'prepared' | 'sent' | 'mined' | 'final' | 'reverted' | 'rejected'

/** `call`: carries the intent. `cancel`: a zero-value transfer that fills the nonce so the call can no longer be mined. */
export type AttemptPurpose = 'call' | 'cancel'

/** Of the attempts at one nonce at most one is mined. The others are `replaced`. */
export type AttemptState = 'pending' | 'mined' | 'reverted' | 'replaced'

/** One signed transaction at one account nonce. `sentAt` is in Unix seconds. */
export type AttemptRecord = {
  hash: Hex
  nonce: number
  purpose: AttemptPurpose
  state: AttemptState
  sentAt: number
}

/** A transaction that a lane signed. */
export type SentTransaction = {
  hash: Hex
  from: Address
  to: Address
  /** Whether it can still be mined. */
  isPending: boolean
  /** The transaction that replaced it. */
  replacedBy?: Hex
}

/** What a lane knows about an intent. `createdAt` and `updatedAt` are Unix seconds of the service's clock. */
export type IntentRecord = {
  digest: Hex
  kind: IntentKind
  group: string
  groupNonce: string
  /** Unix seconds, compared with block timestamps. */
  deadline: bigint
  state: IntentState
  attempts: AttemptRecord[]
  revertData?: Hex
  /** Why nothing was executed, if there is no revert data. It never contains a URL. */
  reason?: string
  blockNumber?: bigint
  createdAt: number
  updatedAt: number
}

export type LaneStatus = {
  address: Address
  /** The number of pending transactions. */
  pending: number
  oldestPendingSeconds: number
  /** How many transactions the lane currently allows in flight. */
  depth: number
  /** Absent until a node has answered. */
  balanceWei?: bigint
  /** Why the lane accepts no intents; absent while it does. */
  pausedFor?: 'funds' | 'shared key'
}
