import type { Hex } from 'viem'
import type { Call, IntentKind } from './relay-types.ts'

/**
 * `received`: being checked. `prepared`: signed and journalled. `sent`: a node accepted the transaction. `mined`:
 * executed. `final`: executed, in a final block. `reverted`: mined without effect. `rejected`: nothing was executed.
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

/** What a lane knows about an intent. `createdAt` and `updatedAt` are Unix seconds of the service's clock. */
export type IntentRecord = {
  digest: Hex
  kind: IntentKind
  group: string
  groupNonce: string
  /** Unix seconds, compared with block timestamps. */
  deadline: bigint
  /** The call that carries the signed intent. */
  call: Call
  state: IntentState
  attempts: AttemptRecord[]
  revertData?: Hex
  /** Why nothing was executed, if there is no revert data. It never contains a URL. */
  reason?: string
  blockNumber?: bigint
  createdAt: number
  updatedAt: number
}
