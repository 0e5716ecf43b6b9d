import { publicChains } from '@agent-trading-service/protocol/public-chains'
import { parse } from 'smol-toml'
import { parseConfig } from '../src/config/config.ts'
import { rateLimitBindings, UNITS_PER_BINDING_CALL } from '../src/limits/rate-limits.ts'

/** A deployment of the Worker on one chain: the part `[env.<name>]` of wrangler.toml. */
export type Environment = { name: string; chainId: number }

/** One for each known public chain. */
export const environments: readonly Environment[] = publicChains.map(({ environment, chain }) => ({
  name: environment,
  chainId: chain.id,
}))

/** The part of a host that stands for the operator's domain until `npm run environments -- --domain` names it. */
export const PLACEHOLDER_DOMAIN = 'example.com'

/** Secrets without which a deployment cannot trade. Wrangler refuses to deploy while one of them is not set. */
const REQUIRED_SECRETS = [
  'RPC_URL',
  'EXECUTOR_PRIVATE_KEY',
  'RELAYER_PRIVATE_KEY',
  'ORACLE_UPDATER_PRIVATE_KEY',
  'KEEPER_PRIVATE_KEY',
  'OPERATOR_SECRET',
]

/** Keys of wrangler.toml that an environment inherits or does not own. */
const INHERITED = new Set([
  'name',
  'main',
  'alias',
  'compatibility_date',
  'compatibility_flags',
  'keep_vars',
  'build',
  'assets',
  'migrations',
  'triggers',
  'placement',
  'observability',
  'limits',
  'workers_dev',
  'preview_urls',
  'routes',
  'vars',
  'secrets',
  'env',
])

type Table = { [key: string]: Value }
type Value = string | number | boolean | Value[] | Table

/** What this module reads of wrangler.toml. */
type WranglerToml = Table & {
  name: string
  migrations: { tag: string }[]
  d1_databases: { binding: string; database_name: string }[]
  env?: Record<string, { vars?: Record<string, string>; d1_databases?: { database_id?: string }[] }>
}

const parseToml = (toml: string) => parse(toml) as WranglerToml

/** Returns the variables of an environment in wrangler.toml. */
export const varsOf = (toml: string, { name }: Environment): Record<string, string> =>
  parseToml(toml).env?.[name]?.vars ?? {}

/** Returns the tag of the newest Durable Object migration. */
export const lastMigrationTag = (toml: string): string | undefined => parseToml(toml).migrations.at(-1)?.tag

/** Returns the binding and the name of an environment's database. */
export function databaseOf(toml: string, { chainId }: Environment): { binding: string; name: string } {
  const [database] = parseToml(toml).d1_databases
  if (database === undefined) throw new Error('wrangler.toml has no database.')
  return { binding: database.binding, name: databaseName(database.database_name, chainId) }
}

const databaseName = (name: string, chainId: number) => `${name}-${chainId}`

/** Returns the environment of a name; throws with the known ones if there is none. */
export function environmentOf(name: string | undefined): Environment {
  const environment = environments.find(known => known.name === name)
  if (environment) return environment
  const known = environments.map(({ name }) => name).join(', ')
  throw new Error(
    `${name ? `There is no environment ${name}` : 'Name an environment'}: use --env with one of ${known}.`,
  )
}

/**
 * Returns wrangler.toml with its generated parts written again: the rate limits, the environments and the first
 * variables of a new one. Environments do not inherit bindings, so each one repeats the top level's, with its own
 * database, rate limits and datasets. Its host is that of BASE_URL in its variables.
 */
export function withEnvironments(toml: string): string {
  const known = parseToml(toml).env ?? {}
  const added = environments.filter(({ name }) => known[name]?.vars === undefined).map(firstVars)
  const withLimits = withPart([toml, ...added].join('\n'), 'rate limits', rateLimits())
  const config = parseToml(withLimits)
  const blocks = environments.map((environment, index) => blockOf(config, environment, index + 1))
  return withPart(withLimits, 'environments', blocks.join('\n'))
}

const firstVars = ({ name, chainId }: Environment) =>
  `[env.${name}.vars]\nCHAIN_ID = "${chainId}"\nBASE_URL = "https://api-${chainId}.${PLACEHOLDER_DOMAIN}"\n`

/** Replaces what is between two comments that name a part. */
function withPart(toml: string, name: string, content: string): string {
  const [start, end] = [`# <${name}>\n`, `# </${name}>\n`]
  const [before, rest] = toml.split(start)
  const [, after] = rest?.split(end) ?? []
  if (before === undefined || after === undefined)
    throw new Error(`wrangler.toml lacks the lines ${start.trim()} and ${end.trim()} around its generated part.`)
  return `${before}${start}${content}${end}${after}`
}

/** Returns the bindings of a deployment's rate limits. */
function rateLimitTables(vars: Record<string, string>, ordinal: number | ''): Table[] {
  const { requestBudgets } = parseConfig(vars)
  return (['address', 'account'] as const).map((budget, index) => ({
    name: rateLimitBindings[budget],
    namespace_id: `${ordinal}${1001 + index}`,
    simple: { limit: Math.ceil(requestBudgets[budget] / UNITS_PER_BINDING_CALL), period: 60 },
  }))
}

const rateLimits = () =>
  rateLimitTables({}, '')
    .map(
      ({ simple = '', ...names }) =>
        `[[ratelimits]]\n${Object.entries(names).map(linesOf).join('')}simple = ${inline(simple)}\n`,
    )
    .join('\n')

function blockOf(config: WranglerToml, { name, chainId }: Environment, ordinal: number): string {
  const own = config.env?.[name]
  const host = own?.vars?.BASE_URL && new URL(own.vars.BASE_URL).host
  const bindings = Object.entries(config).filter(([key]) => !INHERITED.has(key))
  const block: Table = {
    name: `${config.name}-${chainId}`,
    workers_dev: host === undefined,
    preview_urls: false,
    ...(host && { routes: [{ pattern: host, custom_domain: true }] }),
    secrets: { required: REQUIRED_SECRETS },
    ...Object.fromEntries(bindings.map(([key, value]) => [key, ownBinding(key, value, chainId)])),
  }
  block.ratelimits = rateLimitTables(own?.vars ?? {}, ordinal)
  const databaseId = own?.d1_databases?.[0]?.database_id
  if (databaseId)
    block.d1_databases = asTables(block.d1_databases).map(table => ({ ...table, database_id: databaseId }))
  return `[env.${name}]\n${Object.entries(block).map(linesOf).join('')}`
}

/** Returns an environment's own form of a binding: what has a name in the account gets another one. */
function ownBinding(key: string, value: Value, chainId: number): Value {
  if (key === 'd1_databases')
    return asTables(value).map(table => ({ ...table, database_name: databaseName(`${table.database_name}`, chainId) }))
  if (key === 'analytics_engine_datasets')
    return asTables(value).map(table => ({ ...table, dataset: `${table.dataset}_${chainId}` }))
  return value
}

const asTables = (value: Value | undefined) => value as Table[]
const isTable = (value: Value): value is Table => typeof value === 'object' && !Array.isArray(value)

/** Writes a value of a table, a list with one entry per line. */
function linesOf([key, value]: [string, Value]): string {
  if (isTable(value))
    return Object.entries(value)
      .map(([name, part]) => linesOf([`${key}.${name}`, part]))
      .join('')
  if (!Array.isArray(value)) return `${key} = ${inline(value)}\n`
  return `${key} = [\n${value.map(entry => `  ${inline(entry)},\n`).join('')}]\n`
}

function inline(value: Value): string {
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`
  if (isTable(value))
    return `{ ${Object.entries(value)
      .map(([key, part]) => `${key} = ${inline(part)}`)
      .join(', ')} }`
  return typeof value === 'string' ? quoted(value) : `${value}`
}

/** Returns a TOML string; JSON stays readable in single quotes, which escape nothing. */
const quoted = (value: string) => (value.includes('"') && !/['\n]/.test(value) ? `'${value}'` : JSON.stringify(value))

/**
 * Returns wrangler.toml with variables of an environment set; its other variables and the comments between them stay.
 */
export function withVars(toml: string, { name }: Environment, vars: Record<string, string>): string {
  const lines = toml.split('\n')
  const header = lines.indexOf(`[env.${name}.vars]`)
  if (header === -1) throw new Error(`wrangler.toml lacks the line [env.${name}.vars].`)
  for (const [variable, value] of Object.entries(vars)) {
    const next = lines.findIndex((line, at) => at > header && line.startsWith('['))
    const end = next === -1 ? lines.length : next
    const line = `${variable} = ${quoted(value)}`
    const at = lines.findIndex((text, index) => index > header && index < end && text.startsWith(`${variable} = `))
    if (at === -1) lines.splice(lastValue(lines, header, end) + 1, 0, line)
    else lines[at] = line
  }
  const written = lines.join('\n')
  const result = parseToml(written).env?.[name]?.vars ?? {}
  for (const [variable, value] of Object.entries(vars))
    if (result[variable] !== value)
      throw new Error(`wrangler.toml sets ${variable} of ${name} in a form this script cannot change.`)
  return written
}

const lastValue = (lines: string[], header: number, end: number) =>
  lines.findLastIndex((line, at) => at === header || (at > header && at < end && /^\w+ = /.test(line)))
