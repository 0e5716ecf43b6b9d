import type { ServerContext } from '@modelcontextprotocol/server'
import type { Context } from '../context.ts'
import type { ClientLimits } from '../rate-limits.ts'

/** Runs work for a client once it may be worked for, as over HTTP. Throws RATE_LIMITED. */
export async function inClientTurn<Result>(
  client: ClientLimits | undefined,
  options: { getsOut: boolean },
  run: () => Promise<Result>,
): Promise<Result> {
  await client?.enter(options)
  try {
    return await run()
  } finally {
    client?.leave()
  }
}

/** Returns the rate limits of the client that sent a request, if it has any. */
export const clientOf = (
  { rateLimits }: Pick<Context, 'rateLimits'>,
  { http }: ServerContext,
): ClientLimits | undefined => http?.req && rateLimits.ofClient(http.req.headers)
