import type { Context } from '../context.ts'
import type { Executor } from '../executor/client.ts'
import type { RelayOutcome, RelayRequest } from '../executor/intent.ts'

/** Runs around every relay of a context: it gets the message and must answer the outcome of `relay`. */
type Around = (message: RelayRequest, relay: () => Promise<RelayOutcome>) => Promise<RelayOutcome>

/** The context with something done around every relay; everything else is the given context's. */
export function aroundRelays(context: Context, around: Around): Context {
  const wrap = (executor: Executor): Executor => ({
    ...executor,
    relay: message => around(message, () => executor.relay(message)),
  })
  return Object.create(context, {
    executor: { get: () => wrap(context.executor) },
    relayer: { get: () => wrap(context.relayer) },
  })
}
