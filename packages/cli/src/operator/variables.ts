import { parseEnv } from 'node:util'
import { type Address, getAddress, isAddress } from 'viem'
import { Failure } from '../failure.ts'
import { readTextFile } from '../text-file.ts'

/** Where the variables of a deployment are. */
export type VariablesSource = {
  /** A file of NAME='value' lines, such as .dev.vars. */
  vars?: string | undefined
  /** The name of an environment of wrangler.toml. */
  env?: string | undefined
  /** The path of wrangler.toml. */
  wrangler?: string | undefined
  /** The file that `npm run deploy:contracts` has written. */
  deployment?: string | undefined
  rpc?: string | undefined
}

export type Variables = Record<string, string>

/**
 * Returns the variables of a deployment: from the deployment file, overridden by the environment's block, the
 * vars file and --rpc. The process environment supplies what none of them has. Throws `VARIABLES_MISSING`.
 */
export function readVariables({ vars, env, wrangler = 'wrangler.toml', deployment, rpc }: VariablesSource): Variables {
  const inherited = Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return {
    ...Object.fromEntries(inherited),
    ...(deployment !== undefined && deploymentVariables(deployment)),
    ...(env !== undefined && environmentBlock(textOf(wrangler), env, wrangler)),
    ...(vars !== undefined && (parseEnv(textOf(vars)) as Variables)),
    ...(rpc !== undefined && { RPC_URL: rpc }),
  }
}

/** Returns the names of those variables without which there is no chain, and that are not set. */
export const unsetOfChain = (variables: Variables): string[] =>
  ['CHAIN_ID', 'RPC_URL', 'CONTRACTS'].filter(name => !variables[name])

/**
 * Returns the contracts that CONTRACTS names, including contracts that the Worker itself does not need, such as the
 * timelock.
 */
export function namedContracts({ CONTRACTS = '{}' }: Variables): Record<string, Address> {
  const parsed = parsedJson(CONTRACTS) ?? {}
  return Object.fromEntries(
    Object.entries(parsed).flatMap(([name, value]) =>
      typeof value === 'string' && isAddress(value, { strict: false }) ? [[name, getAddress(value)]] : [],
    ),
  )
}

function deploymentVariables(path: string): Variables {
  const { chainId, contracts, tokens, vaults, deployedAtBlock } = parsedJson(textOf(path)) ?? {}
  if (chainId === undefined || contracts === undefined)
    throw new Failure('usage', `${path} is not a deployment file.`, {
      code: 'VARIABLES_MISSING',
      remedy: 'Pass the file that `npm run deploy:contracts -- --out` has written.',
    })
  return {
    CHAIN_ID: `${chainId}`,
    CONTRACTS: JSON.stringify(contracts),
    TOKENS: JSON.stringify(tokens ?? {}),
    VAULTS: JSON.stringify(vaults ?? {}),
    ...(deployedAtBlock !== undefined && { START_BLOCK: `${deployedAtBlock}` }),
  }
}

/** Returns the variables of `[env.<name>.vars]`, whose values are strings, numbers or booleans on one line. */
function environmentBlock(toml: string, name: string, path: string): Variables {
  const [, rest] = toml.split(new RegExp(`^\\[env\\.(?:"${escaped(name)}"|${escaped(name)})\\.vars\\][^\\n]*$`, 'm'))
  if (rest === undefined)
    throw new Failure('usage', `${path} has no block [env.${name}.vars].`, {
      code: 'VARIABLES_MISSING',
      remedy: 'Pass the name of an environment that it has, or --vars.',
    })
  const [block = ''] = rest.split(/^\[/m)
  return Object.fromEntries(
    [...block.matchAll(/^\s*([A-Z0-9_]+)\s*=\s*(.+?)\s*$/gm)].map(([, key = '', value = '']) => [
      key,
      tomlValue(value),
    ]),
  )
}

function tomlValue(text: string): string {
  const [, long] = /^'''(.*)'''/.exec(text) ?? []
  const [, literal] = /^'([^']*)'/.exec(text) ?? []
  const [basic] = /^"(?:[^"\\]|\\.)*"/.exec(text) ?? []
  return long ?? literal ?? (basic === undefined ? text.replace(/\s*#.*$/, '') : JSON.parse(basic))
}

const escaped = (text: string) => text.replace(/[^\w-]/g, '\\$&')

function textOf(path: string): string {
  try {
    return readTextFile(path)
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure('usage', `${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`, {
      code: 'VARIABLES_MISSING',
      remedy: 'Check the path.',
    })
  }
}

function parsedJson(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
