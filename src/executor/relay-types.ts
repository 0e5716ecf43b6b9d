import type { Address, Hex } from 'viem'
import type { GasBudgetName } from '../config/config.ts'

/** A contract call that the executor account sends. It transfers no value. */
export type Call = { to: Address; data: Hex }

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

/** Risk-reducing kinds: they reduce a position or stop an agent. An agent's other requests must not delay or block them. */
export const EXIT_KINDS: readonly IntentKind[] = ['reduce', 'owner']

/** A request to relay one intent to the chain. */
export type RelayRequest = {
  /** EIP-712 digest of the signed body. It is the idempotency key. */
  digest: Hex
  kind: IntentKind
  /** Intents of one group, such as `agent:12` or `signer:0x…`, are relayed in order. */
  group: string
  /**
   * Each nonce of a group belongs to one digest. Another digest with the same nonce gets the outcome `conflict`. Of a message
   * that works at any nonce, it is `nonce.digest`.
   */
  groupNonce: string
  /** Unix seconds, compared with block timestamps. */
  deadline: bigint
  call: Call
  /** The block at which the request was checked. It is simulated on that state or a newer one, whichever node responds. */
  checkedAt?: bigint
  /**
   * Who causes the request and costs something to become, such as `agent:7`; the group by default. It chooses the lane, so that
   * one lane counts everything that an agent causes, and is the member of the shared gas budgets.
   */
  principal?: string
  /** Who signed for the principal, if not its signer. Reverts and exit reserves of each are counted apart. */
  role?: 'owner' | 'newOwner'
  /** The account that signed. */
  signer?: Address
  /** The budgets that the request uses in addition to the lane's, such as `agent:7`; see gas-budgets.ts. */
  spenders?: readonly GasSpender[]
  /** Whether it may use an exit reserve: it reduces risk, or takes the agent from a thief. */
  protects?: boolean
  /** Whether it sells a whole position. */
  closesPosition?: boolean
  /** What the signer says about a trade. It is not part of the digest: the intent keeps that of the request that was accepted. */
  note?: string
}

export type GasSpender =
  | `agent:${string}`
  | `owner:${string}`
  | `payer:${string}`
  /** Agents that are less than a day old share one budget. */
  | 'newAgents'
  | 'registrations'
  /** Contracts share one budget for the gas of transactions that revert. */
  | 'contractReverts'

/** Returns who causes a request. */
export const principalOf = ({ principal, group }: Pick<RelayRequest, 'principal' | 'group'>): string =>
  principal ?? group

/** Returns whose reverts and exit reserve a request uses: `agent:7` for its signer, `agent:7 owner` for its owner. */
export const partyOf = (request: Pick<RelayRequest, 'principal' | 'group' | 'role'>): string =>
  request.role === undefined ? principalOf(request) : `${principalOf(request)} ${request.role}`

/** Whether a contract that signed decides what a request's transaction costs and whether it succeeds. */
export const runsStrangersCode = ({
  kind,
  spenders = [],
}: {
  kind: IntentKind
  spenders?: readonly string[]
}): boolean => kind === 'settle' || spenders.includes('contractReverts')

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

/** An outcome after which nothing was signed, because the lane does not accept the request now. */
export type UnsentOutcome = Extract<RelayOutcome, { state: 'busy' | 'exhausted' | 'costly' | 'unfunded' | 'paused' }>
