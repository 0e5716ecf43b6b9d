import { setTimeout as sleep } from 'node:timers/promises'
import type { Wrangler } from './run-wrangler.ts'

const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 2_000
const REQUEST_TIMEOUT_MS = 15_000

type Deployment = { versions: { version_id: string; percentage: number }[] }
type Version = { resources?: { script_runtime?: { migration_tag?: string } } }

/** Returns the id of the version that serves all traffic; undefined if the Worker was never deployed. */
export async function liveVersion(wrangler: Wrangler): Promise<string | undefined> {
  const { code, output } = await wrangler(['deployments', 'status', '--json'], { quiet: true })
  if (code !== 0) {
    if (/does not exist|has no deployments|code: 10007/.test(output)) return undefined
    throw new Error(`The live version cannot be read:\n${output.trim()}`)
  }
  const { versions } = jsonOf(output) as Deployment
  const [version] = versions
  if (versions.length !== 1 || version === undefined)
    throw new Error(
      'Several versions share the traffic: finish that deployment first with `npx wrangler versions deploy`.',
    )
  return version.version_id
}

/** Returns the last Durable Object migration of a version; undefined if Cloudflare names none. */
export async function migrationTagOf(wrangler: Wrangler, version: string): Promise<string | undefined> {
  const { code, output } = await wrangler(['versions', 'view', version, '--json'], { quiet: true })
  return code === 0 ? (jsonOf(output) as Version).resources?.script_runtime?.migration_tag : undefined
}

/** Parses the JSON that follows whatever wrangler prints before it. */
export const jsonOf = (output: string): unknown => JSON.parse(output.slice(output.search(/^[{[]/m)))

/**
 * Waits until /health/ready of the service responds 200 from the given version. Returns undefined, or why it did not
 * within the given time.
 */
export async function waitUntilReady(url: string, version: string, waitMs: number): Promise<string | undefined> {
  const deadline = Date.now() + waitMs
  let problem = 'it did not respond'
  for (let delay = FIRST_DELAY_MS; Date.now() < deadline; delay = Math.min(delay * 2, MAX_DELAY_MS)) {
    const found = await readinessProblem(url, version)
    if (found === undefined) return undefined
    problem = found
    await sleep(Math.min(delay, Math.max(0, deadline - Date.now())))
  }
  return problem
}

async function readinessProblem(url: string, version: string): Promise<string | undefined> {
  try {
    const response = await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) })
    const body = await response.text()
    const responding = response.headers.get('X-Worker-Version')
    if (responding !== version) return `version ${responding ?? '(unnamed)'} responded with ${response.status}`
    return response.ok ? undefined : `it responded with ${response.status}: ${body.slice(0, 2_000)}`
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    return `it did not respond (${cause instanceof Error ? cause.message : cause})`
  }
}
