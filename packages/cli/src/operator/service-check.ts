import type { AccountPurpose, ServiceAccount } from '@agent-trading-service/protocol/deployment-facts'
import { type Finding, findingsOf } from '@agent-trading-service/protocol/finding'
import { z } from 'zod'

const { ok, unchecked, warning, wrong } = findingsOf('service')
const migrations = findingsOf('migrations')

const lanes = z.object({ lanes: z.array(z.object({ address: z.string() })) })
const readiness = z.object({
  problems: z.array(z.string()).default([]),
  executor: lanes,
  relayer: lanes,
  updater: lanes,
  keeper: lanes,
})
const names = z.array(z.string()).default([])
const index = z.object({ migrations: z.object({ applied: names, pending: names, unknown: names }) })

const TIMEOUT_MS = 15_000
/** Problems that the doctor reads from the chain itself. */
const READ_ELSEWHERE =
  /^(accounts lack|vaults have no idle|prices are stale|trading is paused|variables are invalid|ServiceReader is|the database of the index)/

/** What a running service says about itself; its accounts are empty if it does not respond. */
export type ServiceCheck = { findings: Finding[]; accounts: ServiceAccount[] }

/**
 * Queries the readiness and the index of a running service, the latter with the operator's secret. `env` is its
 * environment of wrangler.toml.
 */
export async function checkService(
  url: string,
  { operatorSecret, env }: { operatorSecret: string | undefined; env: string | undefined },
): Promise<ServiceCheck> {
  const headers = operatorSecret === undefined ? {} : { authorization: `Bearer ${operatorSecret}` }
  const read = async (path: string) => {
    const response = await fetch(`${url}${path}`, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) })
    // `npm run serve` names no version.
    const isOnCloudflare = response.headers.has('X-Worker-Version')
    return { status: response.status, isOnCloudflare, body: (await response.json()) as Record<string, unknown> }
  }
  const ready = await read('/health/ready').catch(() => undefined)
  if (ready === undefined)
    return {
      findings: [
        unchecked(url, `No service responds at ${url}.`, 'npm run deploy'),
        migrations.unchecked('HISTORY', 'The migrations were not read, because no service responds.'),
      ],
      accounts: [],
    }
  // A service that is not ready has the same fields in the details of its error.
  const facts = readiness.safeParse(ready.status === 200 ? ready.body : ready.body.details).data
  const findings =
    ready.status === 200
      ? [ok(url, `The service at ${url} is ready.`)]
      : [wrong(url, `The service at ${url} is not ready: ${ready.body.error}`, `read ${url}/health/ready`)]
  for (const problem of facts?.problems ?? [])
    if (!READ_ELSEWHERE.test(problem))
      findings.push(warning(url, `The service reports: ${problem}.`, `read ${url}/health/ready`))
  const state = operatorSecret === undefined ? undefined : await read('/operator/index').catch(() => undefined)
  const apply = ready.isOnCloudflare
    ? `npx wrangler d1 migrations apply HISTORY${env === undefined ? '' : ` --env ${env}`} --remote`
    : 'restart `npm run serve`, which applies them; its log line `migration failure` says why one fails'
  findings.push(judgeMigrations(index.safeParse(state?.body).data, { operatorSecret, apply }))
  return { findings, accounts: facts ? accountsOf(facts) : [] }
}

/** `apply` is how the operator applies migrations to the database. */
function judgeMigrations(
  state: z.output<typeof index> | undefined,
  { operatorSecret, apply }: { operatorSecret: string | undefined; apply: string },
): Finding {
  if (state === undefined)
    return migrations.unchecked(
      'HISTORY',
      operatorSecret === undefined
        ? 'The migrations are shown to the operator only.'
        : 'The service did not show its migrations.',
      operatorSecret === undefined ? 'set OPERATOR_SECRET' : null,
    )
  const { applied, pending, unknown } = state.migrations
  if (unknown.length > 0)
    return migrations.wrong(
      'HISTORY',
      `The database has migrations that the service lacks: ${unknown.join(', ')}. A file was renamed, or an older version is deployed.`,
      `deploy a version whose migrations/ has ${unknown.join(', ')}`,
    )
  if (pending.length === 0) return migrations.ok('HISTORY', `The database has all ${applied.length} migrations.`)
  return migrations.wrong('HISTORY', `The database lacks migrations: ${pending.join(', ')}.`, apply)
}

function accountsOf({ executor, relayer, updater, keeper }: z.output<typeof readiness>): ServiceAccount[] {
  const of = (purpose: AccountPurpose, group: z.output<typeof lanes>) =>
    group.lanes.map(({ address }) => ({ purpose, address: address as `0x${string}` }))
  return [...of('executor', executor), ...of('relayer', relayer), ...of('updater', updater), ...of('keeper', keeper)]
}
