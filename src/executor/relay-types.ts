import type { Address, Hex } from 'viem'
import type { GasBudgetName } from '../config/config.ts'

/** A contract call that the executor account sends. It transfers no value. */
export type Call = { to: Address; data: Hex }

export type IntentKind =
  | 'open'
  | 'add'
  | 'reduce'
  | 'ladder'
  | 'register'
  | 'link'
  | 'owner'
  | 'prices'
  | 'exit'
  | 'settle'
  | 'feedback'

/** Risk-reducing kinds: they reduce a position or stop an agent. An agent's other requests must not delay or block them. */
export const EXIT_KINDS: readonly IntentKind[] = ['reduce', 'owner']

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
  /** The block at which the request was checked. It is simulated on that state or a newer one, whichever node responds. */
  checkedAt?: bigint
  /** The accounts whose gas budgets the request uses in addition to the lane's, such as `agent:7`; see gas-budgets.ts. */
  spenders?: readonly GasSpender[]
  /** Whether it sells a whole position. */
  closesPosition?: boolean
}

export type GasSpender =
  | `agent:${string}`
  | `owner:${string}`
  | `payer:${string}`
  /** Agents and signers that are less than a day old share one budget. */
  | 'newAgents'
  /** Contracts that have never paid share one budget for the gas of settlements that revert. */
  | 'newContractPayers'

/** A budget without enough gas for a request. */
export type GasShortage = {
  budget: GasBudgetName
  window: 'minute' | 'day'
  limitGas: number
  leftGas: number
  retryAfterSeconds: number
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
  /** A gas budget has no room for the transaction. Nothing was signed. */
  | { state: 'exhausted'; shortage: GasShortage }
  /** Data on L1 costs more gas than the operator accepts for this kind. Nothing was signed. */
  | { state: 'costly'; l1Gas: number; maxL1Gas: number }
  /** The executor account cannot pay for gas. Nothing was signed. */
  | { state: 'unfunded' }
  /** Someone else sends from the executor account. Nothing was signed. */
  | { state: 'paused'; retryAfterSeconds: number }
