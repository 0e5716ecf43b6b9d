import type { IntakeClosure, IntakeKind } from '@agent-trading-service/protocol/intake-kind'
import { withDeadline } from '../concurrency.ts'
import { refuse } from '../errors/refuse.ts'
import { logFailure } from '../log.ts'
import type { IntakeChange, IntakeSwitchesObject } from './object.ts'

/** Which kinds of intake the operator has closed. */
export type IntakeSwitches = {
  /** Returns the closed kinds, at most two seconds old; if they cannot be read, the kinds that this isolate knows. */
  closures(): Promise<readonly IntakeClosure[]>
  /** Returns the closure of a kind; undefined while it is open. */
  closureOf(kind: IntakeKind): Promise<IntakeClosure | undefined>
  /** Applies all changes at once and returns the closed kinds. Throws INTAKE_SWITCHES_UNREACHABLE. */
  change(changes: readonly IntakeChange[]): Promise<readonly IntakeClosure[]>
}

/** A change is in force in all isolates after this time. */
const LEASE_MS = 2_000
const READ_TIMEOUT_MS = 500

/**
 * Creates the client of the switches. While one request renews the lease, the others use what is known; once it has
 * expired, each request reads for itself. None waits for a promise of another one, which may end with its request and
 * never settle.
 */
export function createIntakeSwitches(namespace: DurableObjectNamespace<IntakeSwitchesObject>): IntakeSwitches {
  let known: readonly IntakeClosure[] = []
  let validUntil = 0
  let renewAt = 0
  /** Calls of the object are numbered as they start. Those up to `newestCall` may be older than what is known. */
  let calls = 0
  let newestCall = 0
  const object = () => namespace.getByName('switches')

  /** The lease counts from before the call, because the switches may change between their read and its result. */
  function remember(closures: readonly IntakeClosure[], startedAt: number, call: number) {
    newestCall = call
    known = closures
    validUntil = startedAt + LEASE_MS
    renewAt = validUntil - READ_TIMEOUT_MS
    return known
  }

  async function read(): Promise<readonly IntakeClosure[]> {
    const call = ++calls
    const startedAt = Date.now()
    const reading = (async () => object().closures())()
    const closures = await withDeadline(reading, startedAt + READ_TIMEOUT_MS, () => known).catch((error: unknown) => {
      // An unreadable switch must not block a risk-reducing request.
      logFailure('intake switches unreadable', error)
      return known
    })
    return call > newestCall ? remember(closures, startedAt, call) : known
  }

  async function closures(): Promise<readonly IntakeClosure[]> {
    const now = Date.now()
    if (now < renewAt) return known
    renewAt = validUntil
    return read()
  }

  return {
    closures,
    closureOf: async kind => (await closures()).find(closure => closure.kind === kind),
    async change(changes) {
      const startedAt = Date.now()
      try {
        const closures = await object().change(changes)
        // Reads that started before may not have seen the change.
        return remember(closures, startedAt, ++calls)
      } catch (error) {
        throw refuse('INTAKE_SWITCHES_UNREACHABLE', {}, { cause: error })
      }
    },
  }
}
