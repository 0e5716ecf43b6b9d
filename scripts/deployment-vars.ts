import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseEnv } from 'node:util'
import { parse } from 'smol-toml'
import type { Address } from 'viem'
import { type Addresses, addressVars } from '../devnet/worker-vars.ts'
import { type Variable, variables } from '../src/config/variables.ts'
import { environments, withEnvironments, withVars } from './environments.ts'

/** The path of the file with the variables and secrets of an environment, which git ignores. */
export const varsFileOf = (wranglerToml: string, environment: string) =>
  join(dirname(wranglerToml), `.dev.vars.${environment}`)

/**
 * Writes the variables that name a deployment's contracts into its environment in wrangler.toml and, with an empty line
 * for each secret, into .dev.vars.<environment>. Other variables and secrets stay. Returns the environment's name and
 * the files written.
 */
export function writeDeploymentVars(
  deployment: Addresses & { deployedAtBlock: string; watchedAccounts?: Record<string, Address> },
  wranglerToml: string,
): { environment: string; files: string[] } {
  const environment = environments.find(({ chainId }) => chainId === deployment.chainId)
  if (environment === undefined) {
    const known = environments.map(({ name, chainId }) => `${chainId} (${name})`).join(', ')
    throw new Error(`wrangler.toml has no environment for chain ${deployment.chainId}; it has ${known}.`)
  }
  const toml = readFileSync(wranglerToml, 'utf8')
  // Later changes of the accounts are made in wrangler.toml.
  const { env } = parse(toml) as { env?: Record<string, { vars?: Record<string, string> }> }
  const isWatching = env?.[environment.name]?.vars?.WATCHED_ACCOUNTS !== undefined
  const vars = {
    ...addressVars(deployment),
    START_BLOCK: deployment.deployedAtBlock,
    ...(deployment.watchedAccounts && !isWatching && { WATCHED_ACCOUNTS: JSON.stringify(deployment.watchedAccounts) }),
  }
  writeFileSync(wranglerToml, withEnvironments(withVars(toml, environment, vars)))
  const file = varsFileOf(wranglerToml, environment.name)
  writeFileSync(file, devVars(existsSync(file) ? readFileSync(file, 'utf8') : newFile(environment.name), vars))
  chmodSync(file, 0o600)
  return { environment: environment.name, files: [wranglerToml, file] }
}

/** Returns the text of a .dev.vars file with variables set; lines of other variables stay as they are. */
function devVars(text: string, vars: Record<string, string>): string {
  const lines = text.trimEnd().split('\n')
  for (const [name, value] of Object.entries(vars)) {
    const line = `${name}='${value}'`
    const at = lines.findIndex(known => known.startsWith(`${name}=`))
    if (at === -1) lines.push(line)
    else lines[at] = line
  }
  const written = `${lines.join('\n')}\n`
  for (const [name, value] of Object.entries(vars))
    if (parseEnv(written)[name] !== value)
      throw new Error(`The value of ${name} cannot be written into a .dev.vars file.`)
  return written
}

function newFile(environment: string): string {
  const secrets = Object.entries<Variable>(variables).filter(([, { secret }]) => secret)
  return `# Variables and secrets of ${environment}. Git ignores this file; keep it as safe as the keys in it. An empty value counts as absent.
${secrets.map(secretLine).join('')}
# The deployment, as in wrangler.toml.
`
}

const secretLine = ([name, { meaning }]: [string, Variable]) => `\n# ${meaning.replaceAll('`', '')}\n${name}=''\n`
