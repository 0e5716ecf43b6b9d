import type { ServerContext } from '@modelcontextprotocol/server'
import type { RelayProgress } from '../call.ts'

const REPORT_INTERVAL_MS = 1000

/** Returns what reports the progress of a relay to the client of a request, if the client asked for it. */
export function progressOf({ mcpReq }: ServerContext): RelayProgress | undefined {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined) return undefined
  let progress = 0
  let timer: ReturnType<typeof setInterval> | undefined
  // A client that cannot be notified must not break the relay.
  const report = async (message: string) => {
    progress += 1
    await mcpReq
      .notify({ method: 'notifications/progress', params: { progressToken, progress, message } })
      .catch(() => {})
  }
  return {
    async start(kind) {
      await report(`The signature is valid; sending the ${kind} transaction.`)
      timer = setInterval(() => void report('Waiting for inclusion.'), REPORT_INTERVAL_MS)
    },
    async end(outcome) {
      clearInterval(timer)
      await report(outcome.state === 'mined' ? `Mined in block ${outcome.blockNumber}.` : `Outcome: ${outcome.state}.`)
    },
  }
}
