import type { ServerContext } from '@modelcontextprotocol/server'
import { type Context, withClient } from '../context.ts'

/** Runs work for the client of a call once it may be worked for, as over HTTP. Throws RATE_LIMITED. */
export async function inClientTurn<Result>(
  { client }: Context,
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

/** Returns the context with the rate limits of a call's client, if it has any. */
export function withClientOf(context: Context, { http }: ServerContext): Context {
  const headers = http?.req?.headers
  return headers === undefined ? context : withClient(context, headers)
}
