import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs, parseEnv } from 'node:util'
import { exitWith } from '../devnet/environment.ts'
import { type Variable, variables } from '../src/config/variables.ts'
import { jsonOf, liveVersion, migrationTagOf, waitUntilReady } from './deployed-version.ts'
import { varsFileOf } from './deployment-vars.ts'
import {
  databaseOf,
  type Environment,
  environmentOf,
  lastMigrationTag,
  PLACEHOLDER_DOMAIN,
  varsOf,
  withEnvironments,
} from './environments.ts'
import { keepReplacedAssets } from './replaced-assets.ts'
import { runCommand, type Wrangler, wranglerOf } from './run-wrangler.ts'

const HELP = `Deploys the Worker of an environment: builds it, runs the doctor, migrates the database, adds the scripts that open tabs
may still load, deploys, waits until the new version is ready, and rolls back to the one before if it is not.
  npm run deploy -- --env arbitrum-sepolia
  --secrets        also uploads the secrets of .dev.vars.<environment>; the first deploy needs it, a changed key too
  --skip-doctor    deploys whatever the doctor would say, for instance while the chain is down
  --wait <seconds> how long the new version may take to become ready; 180 by default
  --url <url>      where it responds, if not at BASE_URL
  --config <file>  another wrangler.toml`
const root = join(import.meta.dirname, '..')
const ATS = join(root, 'packages/cli/bin/ats.js')
/** The doctor's exit code when something deserves a look and nothing is wrong. */
const DOCTOR_WARNS = 11
const FILE_TIMEOUT_MS = 15_000

type Options = { secrets: boolean; 'skip-doctor': boolean; wait: string; url?: string | undefined; config: string }

await main().catch(exitWith)

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      env: { type: 'string' },
      secrets: { type: 'boolean', default: false },
      'skip-doctor': { type: 'boolean', default: false },
      wait: { type: 'string', default: '180' },
      url: { type: 'string' },
      config: { type: 'string', default: join(root, 'wrangler.toml') },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  await deploy(environmentOf(values.env), values)
}

async function deploy(environment: Environment, options: Options): Promise<void> {
  const waitMs = Number(options.wait) * 1_000
  if (!(waitMs > 0)) throw new Error(`--wait is ${options.wait}: expected seconds.`)
  const secrets = options.secrets ? secretsOf(varsFileOf(options.config, environment.name)) : undefined
  const toml = readFileSync(options.config, 'utf8')
  const url = options.url ?? assertConfigured(toml, environment)
  const wrangler = wranglerOf(options.config, environment.name)

  step('build')
  await succeed(wrangler(['deploy', '--dry-run'], { quiet: true }), 'The Worker cannot be built')
  if (!options['skip-doctor']) await runDoctor(environment, options.config)

  const before = await liveVersion(wrangler)
  await announceMigrations(wrangler, toml, before)
  await migrateDatabase(wrangler, databaseOf(toml, environment))

  step('assets of open tabs')
  const added = await keepReplacedAssets(join(dirname(options.config), 'public/app'), path => served(url, path))
  console.log(`${added} files of the pages of earlier versions stay for a day.`)

  step('deploy')
  await upload(wrangler, secrets)
  const version = await liveVersion(wrangler)
  if (version === undefined) throw new Error('Wrangler deployed, but Cloudflare names no live version.')

  step(`wait until ${url}/health/ready responds from version ${version}`)
  const problem = await waitUntilReady(url, version, waitMs)
  if (problem === undefined) return console.log(`Deployed: ${url} is ready.`)
  console.error(`Version ${version} is not ready after ${options.wait} s: ${problem}`)
  await rollBack(wrangler, before)
  process.exitCode = 1
}

function step(text: string) {
  console.log(`\n== ${text}`)
}

/** Throws with what the command printed if it fails. */
async function succeed(command: ReturnType<Wrangler>, failure: string): Promise<string> {
  const { code, output } = await command
  if (code !== 0) throw new Error(`${failure}. Nothing was deployed.\n${output.trim()}`)
  return output
}

/** Reads a file of the pages that are live; undefined if there is none, or if the service does not respond. */
async function served(url: string, path: string): Promise<Uint8Array | undefined> {
  const response = await fetch(`${url}/app/${path}`, { signal: AbortSignal.timeout(FILE_TIMEOUT_MS) }).catch(() => null)
  return response?.ok ? response.bytes() : undefined
}

/** Returns the URL of the deployment; throws if the environment is not complete. */
function assertConfigured(toml: string, environment: Environment): string {
  const { name } = environment
  const { BASE_URL, CONTRACTS } = varsOf(toml, environment)
  if (withEnvironments(toml) !== toml)
    throw new Error('The environments of wrangler.toml are stale: run `npm run environments`.')
  if (BASE_URL === undefined || new URL(BASE_URL).host.endsWith(PLACEHOLDER_DOMAIN))
    throw new Error(
      `BASE_URL of ${name} is ${BASE_URL}: set it with \`npm run environments -- --domain <your domain>\`.`,
    )
  if (CONTRACTS === undefined)
    throw new Error(`${name} has no CONTRACTS: run \`npm run deploy:contracts -- --vars <deployment file>\`.`)
  return BASE_URL
}

/** Judges configuration and chain, but not the version that runs: a bad one must not stop the one that replaces it. */
async function runDoctor({ name }: Environment, config: string): Promise<void> {
  step('doctor')
  const file = varsFileOf(config, name)
  const source = ['--env', name, '--wrangler', config, ...(existsSync(file) ? ['--vars', file] : [])]
  const { code } = await runCommand(process.execPath, [ATS, 'doctor', '--no-service', ...source], false)
  if (code !== 0 && code !== DOCTOR_WARNS)
    throw new Error('The doctor found a fault. Nothing was deployed; --skip-doctor deploys nevertheless.')
}

/**
 * Says so if Cloudflare will not roll this deploy back, because it creates, renames or deletes classes of Durable
 * Objects.
 */
async function announceMigrations(wrangler: Wrangler, toml: string, before: string | undefined): Promise<void> {
  const live = before && (await migrationTagOf(wrangler, before))
  const next = lastMigrationTag(toml)
  if (live && live !== next)
    console.log(`This deploy migrates Durable Objects from ${live} to ${next}; Cloudflare does not roll that back.`)
}

/** Applies migrations/ to the history's database, which it creates if the account has none of that name. */
async function migrateDatabase(
  wrangler: Wrangler,
  { binding, name }: { binding: string; name: string },
): Promise<void> {
  step(`database ${name}`)
  const databases = jsonOf(
    await succeed(wrangler(['d1', 'list', '--json'], { quiet: true }), 'The databases cannot be listed'),
  ) as { name: string }[]
  if (!databases.some(database => database.name === name))
    await succeed(wrangler(['d1', 'create', name, '--update-config=false']), `${name} cannot be created`)
  await succeed(wrangler(['d1', 'migrations', 'apply', binding, '--remote']), `${name} cannot be migrated`)
}

/** Deploys, with secrets from a file that only this user can read and that is gone afterwards. */
async function upload(wrangler: Wrangler, secrets: Record<string, string> | undefined): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-deploy-'))
  try {
    const file = join(folder, 'secrets.json')
    if (secrets) writeFileSync(file, JSON.stringify(secrets), { mode: 0o600 })
    const args = secrets ? ['deploy', '--secrets-file', file] : ['deploy']
    await succeed(wrangler(args), 'Cloudflare did not accept the Worker')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Returns the secrets of a .dev.vars file that are not empty. */
function secretsOf(file: string): Record<string, string> {
  if (!existsSync(file)) throw new Error(`--secrets reads ${file}, which does not exist.`)
  const values = parseEnv(readFileSync(file, 'utf8'))
  const entries = Object.entries<Variable>(variables).flatMap(([name, { secret }]): [string, string][] => {
    const value = values[name]
    return secret && value ? [[name, value]] : []
  })
  return Object.fromEntries(entries)
}

async function rollBack(wrangler: Wrangler, before: string | undefined): Promise<void> {
  if (before === undefined)
    return console.error('There is no earlier version. The new one stays: fix what it names, or deploy again.')
  step(`roll back to version ${before}`)
  const { code } = await wrangler(['rollback', before, '--yes', '--message', 'The new version did not become ready'])
  console.error(
    code === 0
      ? `Rolled back to version ${before}. Migrations of the database stay; earlier versions work with them.`
      : `The rollback failed, and the new version is live. If this deploy migrated Durable Objects, only a fixed version helps: \`npm run deploy\` again. Otherwise run \`npx wrangler rollback ${before}\`.`,
  )
}
