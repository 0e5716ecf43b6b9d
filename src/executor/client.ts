import { type Address, bytesToHex, type Hex, stringToBytes } from 'viem'
import { withDeadline } from '../concurrency.ts'
import { keccak256 } from '../crypto/keccak256.ts'
import { refuse } from '../errors/refuse.ts'
import type { GasBudgetStatus, GasSpend, GasUse } from './gas-budgets.ts'
import type { IntentRecord, SentTransaction } from './intent-record.ts'
import type { ExecutorLaneObject, GasTerms, LaneStatus } from './object.ts'
import type { GasShortage, RelayOutcome, RelayRequest, Requester } from './relay-types.ts'
import { principalOf } from './requester.ts'
import { addressOfKey } from './signing-account.ts'

/** The lanes of one or more executor accounts. */
export type Executor = {
  /** The account of the first lane. */
  address: Address
  /** Returns the account that relays someone's intents. */
  addressOf(by: Requester): Address
  /**
   * Simulates and sends an intent and waits for its inclusion, at most until `respondBy` (epoch milliseconds). Never
   * throws. The same digest again joins the first call or returns its outcome.
   */
  relay(request: RelayRequest, respondBy?: number): Promise<RelayOutcome>
  /** Returns what the requester's lane knows about a digest. Throws EXECUTOR_UNREACHABLE. */
  find(by: Requester, digest: Hex): Promise<IntentRecord | undefined>
  /**
   * Returns what the requester's lane knows about the intent with a body, if that is in flight or was executed. One of
   * an agent's signer is found by its nonce. Throws EXECUTOR_UNREACHABLE.
   */
  findBody(by: Requester, bodyHash: Hex, nonce: bigint | undefined): Promise<IntentRecord | undefined>
  /** Returns the remaining gas budgets that a request would use. Throws EXECUTOR_UNREACHABLE. */
  gasBudgets(use: GasUse): Promise<GasBudgetStatus>
  /**
   * Charges gas that the keeper spends for agents, where there is room for it. Returns the shortage of each, in their
   * order. Throws EXECUTOR_UNREACHABLE.
   */
  spendGas(spends: readonly GasSpend[]): Promise<(GasShortage | undefined)[]>
  /** Returns the budgets and what the request costs at the moment. Throws EXECUTOR_UNREACHABLE. */
  gasTerms(use: GasUse): Promise<GasTerms>
  /** Grants one price refresh per interval to all callers together. Throws EXECUTOR_UNREACHABLE. */
  takePriceRefresh(intervalMs: number): Promise<boolean>
  /** Returns the status of each lane. `waitMs` bounds how long a lane waits for a node. */
  status(waitMs?: number): Promise<LaneStatus[]>
}

/** How often a lane is called for one relay. */
const MAX_LANE_CALLS = 2
/** The time that a lane may need on top of the inclusion timeout: for a simulation and the replay of a revert. */
const LANE_GRACE_MS = 10_000
/** How much later than `respondBy` a lane's response may arrive. */
const RESPONSE_GRACE_MS = 100

/** Returns an executor over the lanes of the given keys: one Durable Object per account, and one lane per principal. */
export function createExecutor(
  namespace: DurableObjectNamespace<ExecutorLaneObject>,
  keys: readonly Hex[],
  { inclusionTimeoutMs }: { inclusionTimeoutMs: number },
): Executor {
  const addresses = keys.map(addressOfKey)
  const [first] = addresses
  if (first === undefined) throw new Error('An executor needs at least one key')
  const laneOf = (address: Address) => namespace.get(namespace.idFromName(address))
  const addressOf = (by: Requester) => chooseAddress(principalOf(by), addresses)

  /** Calls the lane again if the call breaks: the lane may have sent the intent, and then its journal has it. */
  async function relayToLane(request: RelayRequest, respondBy: number | undefined): Promise<RelayOutcome> {
    for (let calls = 1; ; calls++) {
      try {
        return await laneOf(addressOf(request.by)).relay(request, respondBy)
      } catch (error) {
        // After a call that broke, the intent may have been signed.
        if (isOverloaded(error)) return calls === 1 ? { state: 'busy', retryAfterSeconds: 1 } : { state: 'unknown' }
        if (calls === MAX_LANE_CALLS) return { state: 'unknown' }
      }
    }
  }

  /** Reads from the requester's lane, with one retry if the call breaks. */
  async function read<Result>(
    by: Requester,
    readLane: (lane: DurableObjectStub<ExecutorLaneObject>) => Promise<Result>,
  ): Promise<Result> {
    const address = addressOf(by)
    try {
      return await readLane(laneOf(address)).catch(() => readLane(laneOf(address)))
    } catch (error) {
      throw refuse('EXECUTOR_UNREACHABLE', {}, { cause: error })
    }
  }

  return {
    address: first,
    addressOf,
    relay: (request, respondBy) =>
      withDeadline(
        relayToLane(request, respondBy),
        respondBy === undefined ? Date.now() + inclusionTimeoutMs + LANE_GRACE_MS : respondBy + RESPONSE_GRACE_MS,
        (): RelayOutcome => ({ state: 'unknown' }),
      ),
    find: (by, digest) => read(by, lane => lane.find(digest)),
    findBody: (by, bodyHash, nonce) =>
      read(by, lane => lane.findBody(bodyHash, { group: principalOf(by), groupNonce: `${nonce}` })),
    takePriceRefresh: intervalMs => read({ as: 'service', task: 'prices' }, lane => lane.takePriceRefresh(intervalMs)),
    gasTerms: use => read(use.by, lane => lane.gasTerms(use)),
    gasBudgets: use => read(use.by, lane => lane.gasBudgets(use)),
    async spendGas(spends) {
      const ofLanes = Map.groupBy(spends, ({ use }) => addressOf(use.by))
      const charged = await Promise.all(
        [...ofLanes].map(async ([address, ofLane]) => {
          const shortages = await laneOf(address).spendGas(ofLane) // not repeated: the lane may have charged it
          return ofLane.map((spend, index) => [spend, shortages[index]] as const)
        }),
      ).catch(error => {
        throw refuse('EXECUTOR_UNREACHABLE', {}, { cause: error })
      })
      const shortageOf = new Map(charged.flat())
      return spends.map(spend => shortageOf.get(spend))
    },
    status: waitMs => Promise.all(addresses.map(address => laneOf(address).status(waitMs))),
  }
}

/** Whether the platform rejected a call because the object has too many queued requests. */
const isOverloaded = (error: unknown) => error instanceof Error && 'overloaded' in error && error.overloaded === true

/** Chooses a principal's account by rendezvous hashing: adding or removing a key moves only that key's principals. */
function chooseAddress(principal: string, addresses: readonly Address[]): Address {
  const [first, ...others] = addresses
  if (first === undefined) throw new Error('An executor needs at least one key')
  if (others.length === 0) return first
  const weightOf = (address: Address) => bytesToHex(keccak256(stringToBytes(`${principal} ${address}`)))
  let best = { address: first, weight: weightOf(first) }
  for (const address of others) {
    const weight = weightOf(address)
    if (weight > best.weight) best = { address, weight }
  }
  return best.address
}

/** The journals of all lanes of a deployment, for callers who know neither principal nor account. */
export type Journals = {
  /** How many lanes each lookup of an intent asks, and each of a transaction. */
  lanes: { ofIntents: number; ofTransactions: number }
  /** Returns what the lanes know about a signed intent. Throws the error of a lane that is unreachable. */
  findIntent(digest: Hex): Promise<IntentRecord | undefined>
  /** Returns the same once the lanes are sure that the intent's block is not gone. */
  confirmIntent(digest: Hex): Promise<IntentRecord | undefined>
  /**
   * Ends the pause of a lane whose key others have used. Returns whether it was paused; undefined if the account has no
   * lane.
   */
  resume(address: Address): Promise<boolean | undefined>
  /** Returns a transaction that a lane signed. Throws the error of a lane that is unreachable. */
  findTransaction(hash: Hex): Promise<SentTransaction | undefined>
}

/**
 * Returns the journals of these keys: `relaying` for intents that agents sign, `own` for the service's transactions.
 */
export function createJournals(
  namespace: DurableObjectNamespace<ExecutorLaneObject>,
  { relaying, own }: { relaying: readonly Hex[]; own: readonly Hex[] },
): Journals {
  const lanesOf = (keys: readonly Hex[]) =>
    [...new Set(keys.map(addressOfKey))].map(address => namespace.get(namespace.idFromName(address)))
  const ofIntents = lanesOf(relaying)
  const ofTransactions = lanesOf([...relaying, ...own])
  return {
    lanes: { ofIntents: ofIntents.length, ofTransactions: ofTransactions.length },
    findIntent: async digest => newestOf(await collect(ofIntents.map(lane => lane.find(digest)))),
    confirmIntent: async digest => newestOf(await collect(ofIntents.map(lane => lane.confirm(digest)))),
    async resume(address) {
      if (![...relaying, ...own].some(key => addressOfKey(key) === address)) return undefined
      return namespace.get(namespace.idFromName(address)).resume()
    },
    async findTransaction(hash) {
      const [transaction] = await collect(ofTransactions.map(lane => lane.findTransaction(hash)))
      return transaction
    },
  }
}

/** If an added key moved the agent to another lane, its former lane may still have a rejected record of the intent. */
const newestOf = (records: IntentRecord[]): IntentRecord | undefined =>
  records.sort((a, b) => rankOf(b) - rankOf(a) || b.updatedAt - a.updatedAt)[0]

const rankOf = ({ state }: IntentRecord) => (state === 'rejected' || state === 'reverted' ? 0 : 1)

/** Returns all results that are defined. Throws if there is none and a promise was rejected. */
async function collect<Result extends object>(promises: Promise<Result | undefined>[]): Promise<Result[]> {
  const settled = await Promise.allSettled(promises)
  const found = settled.flatMap(result => (result.status === 'fulfilled' && result.value ? [result.value] : []))
  const failed = settled.find(result => result.status === 'rejected')
  if (found.length === 0 && failed) throw failed.reason
  return found
}
