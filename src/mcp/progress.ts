import type { ServerContext } from '@modelcontextprotocol/server'
import type { Context } from '../context.ts'
import { aroundRelays } from './after-relay.ts'

const STILL_WAITING_EVERY_MS = 1000

/** The context for a call whose client asked for progress: it is told what a submission waits for. */
export function reportingProgress(context: Context, { mcpReq }: ServerContext): Context {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined) return context
  let progress = 0
  const report = (message: string) => {
    progress += 1
    return mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, message } })
  }
  return aroundRelays(context, async ({ kind }, relay) => {
    await report(`The signature is good; the ${kind} transaction is on its way.`)
    const timer = setInterval(() => void report('Waiting for the inclusion.'), STILL_WAITING_EVERY_MS)
    try {
      const outcome = await relay()
      await report(outcome.state === 'mined' ? `Mined in block ${outcome.blockNumber}.` : `Outcome: ${outcome.state}.`)
      return outcome
    } finally {
      clearInterval(timer)
    }
  })
}
