import type { ServerContext } from '@modelcontextprotocol/server'
import type { Context } from '../context.ts'
import type { Executor } from '../executor/client.ts'
import type { RelayOutcome, RelayRequest } from '../executor/relay-types.ts'

const REPORT_INTERVAL_MS = 1000

/** Returns a context that reports the progress of relays to the client of a call, if the client asked for it. */
export function withProgress(context: Context, { mcpReq }: ServerContext): Context {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined) return context
  let progress = 0
  const report = (message: string) => {
    progress += 1
    return mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, message } })
  }
  return wrapRelays(context, async ({ kind }, relay) => {
    await report(`The signature is valid; sending the ${kind} transaction.`)
    const timer = setInterval(() => void report('Waiting for inclusion.'), REPORT_INTERVAL_MS)
    try {
      const outcome = await relay()
      await report(outcome.state === 'mined' ? `Mined in block ${outcome.blockNumber}.` : `Outcome: ${outcome.state}.`)
      return outcome
    } finally {
      clearInterval(timer)
    }
  })
}

/** Returns a context whose executor and relayer call `around` for every relay; it must return the outcome of `relay`. */
function wrapRelays(
  context: Context,
  around: (message: RelayRequest, relay: () => Promise<RelayOutcome>) => Promise<RelayOutcome>,
): Context {
  const wrap = (executor: Executor): Executor => ({
    ...executor,
    relay: (message, respondBy) => around(message, () => executor.relay(message, respondBy)),
  })
  return Object.create(context, {
    executor: { get: () => wrap(context.executor) },
    relayer: { get: () => wrap(context.relayer) },
  })
}
