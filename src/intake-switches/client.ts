import { refuse } from '../errors/refuse.ts'
import { logFailure } from '../log.ts'
import { withDeadline } from '../timeout.ts'
import type { IntakeClosure, IntakeKind } from './intake-kind.ts'
import type { IntakeChange, IntakeSwitchesObject } from './object.ts'

/** Which kinds of intake the operator has closed. */
export type IntakeSwitches = {
  /** Returns the closed kinds, at most two seconds old; if they cannot be read, those that this isolate knows. */
  closures(): Promise<readonly IntakeClosure[]>
  /** Returns the closure of a kind; undefined while it is open. */
  closureOf(kind: IntakeKind): Promise<IntakeClosure | undefined>
  /** Applies all changes at once and returns the closed kinds. Throws INTAKE_SWITCHES_UNREACHABLE. */
  change(changes: readonly IntakeChange[]): Promise<readonly IntakeClosure[]>
}

/** A change is in force in all isolates after this time. */
const LEASE_MS = 2_000
const READ_TIMEOUT_MS = 500

/** Creates the client of the switches. Each isolate reads them at most once per lease. */
export function createIntakeSwitches(namespace: DurableObjectNamespace<IntakeSwitchesObject>): IntakeSwitches {
  let known: readonly IntakeClosure[] = []
  let freshUntil = 0
  let reading: Promise<readonly IntakeClosure[]> | undefined
  const object = () => namespace.getByName('switches')

  function remember(closures: readonly IntakeClosure[]) {
    known = closures
    freshUntil = Date.now() + LEASE_MS
    return known
  }

  async function read(): Promise<readonly IntakeClosure[]> {
    try {
      const closures = await withDeadline(
        Promise.resolve(object().closures()),
        Date.now() + READ_TIMEOUT_MS,
        () => known,
      )
      return remember(closures)
    } catch (error) {
      // An unreadable switch must not keep anybody from getting out.
      logFailure('intake switches unreadable', error)
      return remember(known)
    } finally {
      reading = undefined
    }
  }

  async function closures(): Promise<readonly IntakeClosure[]> {
    if (Date.now() < freshUntil) return known
    reading ??= read()
    return reading
  }

  return {
    closures,
    closureOf: async kind => (await closures()).find(closure => closure.kind === kind),
    async change(changes) {
      try {
        return remember(await object().change(changes))
      } catch (error) {
        throw refuse('INTAKE_SWITCHES_UNREACHABLE', {}, { cause: error })
      }
    },
  }
}
