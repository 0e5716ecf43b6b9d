import type { CarriedPrices } from '@agent-trading-service/protocol/carried-prices'
import type { Address, Hex } from 'viem'
import type { PriceNeed } from '../chain/carried-prices.ts'
import type { GasBudgetName } from '../config/config.ts'

/** A contract call that the executor account sends. It transfers no value. */
export type Call = { to: Address; data: Hex }

/** The prices that a call brings along: the newest of what it needs, or those that prove why it is made. */
export type PricesOfCall = PriceNeed | CarriedPrices

export type IntentKind =
  | 'open'
  | 'add'
  | 'reduce'
  | 'ladder'
  | 'order'
  | 'cancelOrder'
  | 'register'
  | 'link'
  | 'owner'
  | 'prices'
  | 'exit'
  | 'settle'
  | 'feedback'
  | 'checkpoint'
  | 'vaultRequests'

/**
 * Risk-reducing kinds: they reduce a position or stop an agent. An agent's other requests must not delay or block them.
 */
export const EXIT_KINDS: readonly IntentKind[] = ['reduce', 'owner']

/** An agent as its budgets see it. New agents cost little, so they share a budget. */
export type RequestingAgent = { id: bigint; owner: Address; isNew: boolean }

/**
 * Who causes a request, and as what. It comes from the chain, or is the account whose signature the contract verifies:
 * nothing that the caller chooses selects a lane, a turn, a budget or a counter, which all derive from it
 * (requester.ts).
 */
export type Requester =
  | { as: 'signer' | 'owner' | 'newOwner'; agent: RequestingAgent; account: Address; isContract?: boolean }
  | { as: 'registrant' | 'payer'; account: Address; isContract?: boolean }
  /** The keeper, which acts on what an agent has signed before. */
  | { as: 'keeper'; agent: Pick<RequestingAgent, 'id'> }
  /** The service itself. Its requests of one task are relayed in order. */
  | { as: 'service'; task: string }

/** A request to relay one intent to the chain. */
export type RelayRequest = {
  /** EIP-712 digest of the signed body. It is the idempotency key. */
  digest: Hex
  kind: IntentKind
  by: Requester
  /**
   * Each nonce of a group belongs to one digest. Another digest with the same nonce gets the outcome `conflict`. Of a
   * message that works at any nonce, it is `nonce.digest`.
   */
  groupNonce: string
  /** Unix seconds, compared with block timestamps. */
  deadline: bigint
  call: Call
  prices?: PricesOfCall | undefined
  /**
   * The block at which the request was checked. It is simulated on that state or a newer one, whichever node responds.
   */
  checkedAt?: bigint
  /** Whether it may use an exit reserve: it reduces risk, or takes the agent from a thief. */
  protects?: boolean
  /** Whether it sells a whole position. */
  closesPosition?: boolean
  /**
   * What the signer says about a trade. It is not part of the digest: the intent keeps that of the request that was
   * accepted.
   */
  note?: string
  /** The hash of everything that was posted. It finds the intent while the chain lacks what the digest is made of. */
  bodyHash?: Hex
}

/** Budgets of one account have gas per minute and hour, shared ones per minute and day. */
export type GasWindow = 'minute' | 'hour' | 'day'

/** A budget without enough gas for a request. */
export type GasShortage = {
  budget: GasBudgetName
  window: GasWindow
  limitGas: number
  leftGas: number
  retryAfterSeconds: number
}

export type ReceiptLog = { address: Address; topics: Hex[]; data: Hex }

/** The reason of an intent whose transaction vanished: no node knows it, although several sends were accepted. */
export const DROPPED = 'the sequencer left its transaction out'

export type RelayOutcome =
  /** The call was executed. Ids are read from the logs. */
  | { state: 'mined'; hash: Hex; blockNumber: bigint; logs: ReceiptLog[] }
  /**
   * The transaction was mined and reverted. `data` is the revert data of a replay; absent if the replay returned none.
   */
  | { state: 'reverted'; hash: Hex; data?: Hex }
  /** Nothing was executed: the simulation failed or the deadline passed first. `message` never contains a URL. */
  | { state: 'rejected'; data?: Hex; message?: string }
  /** Another digest holds this group nonce. */
  | { state: 'conflict'; digest: Hex }
  /**
   * The wait ended without a result; without a hash, no node is known to have the transaction. Relaying the same digest
   * again returns its outcome and never executes it twice.
   */
  | { state: 'unknown'; hash?: Hex }
  /** No node was reachable. Nothing was signed. */
  | { state: 'unsent' }
  /** The lane is at capacity, or the group reverted too often (`why: 'reverts'`). Nothing was signed. */
  | { state: 'busy'; retryAfterSeconds: number; why?: 'reverts' }
  /** A gas budget has no room for the transaction. Nothing was signed. */
  | { state: 'exhausted'; shortage: GasShortage }
  /** Gas, with the call's data on L1, costs more than the operator accepts for this kind. Nothing was signed. */
  | { state: 'costly'; gasPriceWei: bigint; maxGasPriceWei: bigint }
  /** The provider of the prices that the call brings along fails. Nothing was signed. */
  | { state: 'unpriced'; problem: string }
  /** The executor account cannot pay for gas. Nothing was signed. */
  | { state: 'unfunded' }
  /** Someone else sends from the executor account. Nothing was signed. */
  | { state: 'paused'; retryAfterSeconds: number }

/** An outcome after which nothing was signed, because the lane does not accept the request now. */
export type UnsentOutcome = Extract<
  RelayOutcome,
  { state: 'busy' | 'exhausted' | 'costly' | 'unpriced' | 'unfunded' | 'paused' }
>
