import { type Address, type Hex, keccak256, stringToBytes } from 'viem'
import { privateKeyToAddress } from 'viem/accounts'
import { refuse } from '../errors/catalogue.ts'
import { withDeadline } from '../timeout.ts'
import type { IntentRecord, LaneStatus, RelayOutcome, RelayRequest } from './intent.ts'
import type { ExecutorLane } from './object.ts'

export interface Executor {
  /** The account of the first lane. */
  address: Address
  /** The account that executes for a group. */
  addressOf(group: string): Address
  /** Simulates, sends and waits for the inclusion; the same digest again joins, or answers what became of it. */
  relay(relay: RelayRequest): Promise<RelayOutcome>
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
      withDeadline(
        relayTo(lane, addressOf(relay.group), relay),
        Date.now() + inclusionTimeoutMs + LANE_GRACE_MS,
        (): RelayOutcome => ({ state: 'unknown' }),
      ),
    async find(group, digest) {
      const address = addressOf(group)
      try {
        return await lane(address)
          .find(digest)
          .catch(() => lane(address).find(digest))
      } catch (error) {
        throw refuse('EXECUTOR_UNREACHABLE', {}, { cause: error })
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
async function relayTo(lane: LaneOf, address: Address, relay: RelayRequest): Promise<RelayOutcome> {
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
