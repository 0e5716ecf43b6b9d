import { type Address, type Hex, keccak256, stringToBytes } from 'viem'
import { privateKeyToAddress } from 'viem/accounts'
import { refuse } from '../errors/catalogue.ts'
import { patience } from '../timeout.ts'
import type { ExecutorLane } from './object.ts'

/** What the executor account sends: no value, just the call. */
export type Call = { to: Address; data: Hex }

export type Kind = 'open' | 'add' | 'reduce' | 'ladder' | 'register' | 'link' | 'prices' | 'exit' | 'settle'

/** One signed intent on its way to the chain. */
export type Relay = {
  /** EIP-712 digest of the signed body: the idempotency key. */
  digest: Hex
  kind: Kind
  /** Whose order is kept, such as `agent:12` or `signer:0x…`; it also chooses the lane. */
  group: string
  /** One digest holds one nonce of its group; another digest is answered `conflict`. */
  groupNonce: string
  /** Unix seconds in the chain's time. */
  deadline: bigint
  call: Call
}

export type Log = { address: Address; topics: Hex[]; data: Hex }

export type Outcome =
  /** Executed; the ids are in the logs. */
  | { state: 'mined'; hash: Hex; blockNumber: bigint; logs: Log[] }
  /** Mined and reverted; the revert data comes from a replay and is absent where the replay shows none. */
  | { state: 'reverted'; hash: Hex; data?: Hex }
  /** The simulation said no, or the deadline passed before inclusion: nothing was executed. The message never holds a URL. */
  | { state: 'refused'; data?: Hex; message?: string }
  /** The digest that holds this group nonce. */
  | { state: 'conflict'; digest: Hex }
  /** The wait ran out. The same digest again answers the outcome; it is never executed twice. */
  | { state: 'unknown'; hash?: Hex }
  /** The node could not be reached before anything was signed; nothing happened. */
  | { state: 'unsent' }
  /** Back-pressure, before anything was signed; `reverts` when the group has reverted too often of late. */
  | { state: 'busy'; retryAfterSeconds: number; why?: 'reverts' }
  /** The executor account cannot pay for gas; nothing was signed. */
  | { state: 'unfunded' }
  /** Somebody else sends from the executor account; nothing was signed. */
  | { state: 'paused'; retryAfterSeconds: number }

export type IntentState = 'received' | 'rejected' | 'prepared' | 'sent' | 'mined' | 'reverted' | 'final'

/**
 * A transaction that was signed for an intent, by the nonce of the executor's account; `cancel` is one that does nothing in
 * its place. Of those at one nonce at most one is ever mined: the others are `superseded`.
 */
export type AttemptRecord = {
  hash: Hex
  nonce: number
  purpose: 'call' | 'cancel'
  state: 'open' | 'mined' | 'reverted' | 'superseded'
  sentAt: number
}

/** A transaction of a lane, and the one that has taken its place. */
export type SentTransaction = {
  hash: Hex
  from: Address
  to: Address
  /** Whether it may still be mined. */
  isOpen: boolean
  replacedBy?: Hex
}

/** The life of an intent; times are Unix seconds of the service's clock. */
export type IntentRecord = {
  digest: Hex
  kind: Kind
  group: string
  groupNonce: string
  /** Unix seconds in the chain's time. */
  deadline: bigint
  state: IntentState
  attempts: AttemptRecord[]
  revertData?: Hex
  /** Why nothing was executed, where no revert data says it. It never holds a URL. */
  reason?: string
  blockNumber?: bigint
  createdAt: number
  updatedAt: number
}

export type LaneStatus = {
  address: Address
  /** Transactions whose outcome is open. */
  pending: number
  oldestPendingSeconds: number
  /** How many transactions the lane lets into flight at present. */
  depth: number
  /** Absent while the node has never answered. */
  balanceWei?: bigint
  /** Why the lane refuses intents; absent while it takes them. */
  pausedFor?: 'funds' | 'shared key'
}

export interface Executor {
  /** The account of the first lane. */
  address: Address
  /** The account that executes for a group. */
  addressOf(group: string): Address
  /** Simulates, sends and waits for the inclusion; the same digest again joins, or answers what became of it. */
  relay(relay: Relay): Promise<Outcome>
  /** What the group's lane knows of a digest, or undefined. */
  find(group: string, digest: Hex): Promise<IntentRecord | undefined>
  status(): Promise<LaneStatus[]>
}

/** The lanes of the given keys: one Durable Object per account, and one group always meets the same lane. */
export function createExecutor(
  namespace: DurableObjectNamespace<ExecutorLane>,
  keys: readonly Hex[],
  { inclusionTimeoutMs }: { inclusionTimeoutMs: number },
): Executor {
  const addresses = keys.map(addressOfKey)
  const [first] = addresses
  if (first === undefined) throw new Error('An executor needs at least one key')
  const lane = (address: Address) => namespace.get(namespace.idFromName(address))
  const addressOf = (group: string) => rendezvous(group, addresses)
  return {
    address: first,
    addressOf,
    relay: relay =>
      patience(
        relayTo(lane, addressOf(relay.group), relay),
        Date.now() + inclusionTimeoutMs + LANE_GRACE_MS,
        (): Outcome => ({ state: 'unknown' }),
      ),
    async find(group, digest) {
      const address = addressOf(group)
      try {
        return await lane(address)
          .find(digest)
          .catch(() => lane(address).find(digest))
      } catch (error) {
        throw refuse('EXECUTOR_UNREACHABLE', {}, error)
      }
    },
    status: () => Promise.all(addresses.map(address => lane(address).status())),
  }
}

const LANE_ATTEMPTS = 2
/** What a lane may need beyond its own wait: the simulation and the replay of a revert. */
const LANE_GRACE_MS = 10_000

type LaneOf = (address: Address) => DurableObjectStub<ExecutorLane>

/** A lane that broke on the way may have sent: its journal knows, and asking it again is safe. */
async function relayTo(lane: LaneOf, address: Address, relay: Relay): Promise<Outcome> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await lane(address).relay(relay)
    } catch (error) {
      if (isOverload(error)) return { state: 'busy', retryAfterSeconds: 1 }
      if (attempt === LANE_ATTEMPTS) return { state: 'unknown' }
    }
  }
}

const isOverload = (error: unknown) => error instanceof Error && 'overloaded' in error && error.overloaded === true

const addressCache = new Map<Hex, Address>()

export function addressOfKey(key: Hex): Address {
  const address = addressCache.get(key) ?? privateKeyToAddress(key)
  addressCache.set(key, address)
  return address
}

/** The address with the highest hash beside the group: adding or removing a key moves only that key's groups. */
function rendezvous(group: string, addresses: readonly Address[]): Address {
  const [first, ...others] = addresses
  if (first === undefined) throw new Error('An executor needs at least one key')
  if (others.length === 0) return first
  const weight = (address: Address) => keccak256(stringToBytes(`${group} ${address}`))
  let best = { address: first, weight: weight(first) }
  for (const address of others) {
    const candidate = { address, weight: weight(address) }
    if (candidate.weight > best.weight) best = candidate
  }
  return best.address
}
