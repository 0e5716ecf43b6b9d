import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { afterAll, expect, it } from 'vitest'
import { unstable_getMiniflareWorkerOptions, unstable_readConfig } from 'wrangler'
import { writeDeploymentVars } from '../../scripts/deployment-vars.ts'
import { environmentOf, environments, withEnvironments, withVars } from '../../scripts/environments.ts'

const WRANGLER_TOML = join(import.meta.dirname, '../../wrangler.toml')
const committed = readFileSync(WRANGLER_TOML, 'utf8')
const folder = mkdtempSync(join(tmpdir(), 'environments-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

type WranglerConfig = Record<string, unknown> & {
  durable_objects: { bindings: object[] }
  d1_databases: { database_name: string }[]
  ratelimits: { namespace_id: string }[]
  secrets: { required: string[] } | undefined
}

/** Returns an environment of a wrangler.toml as wrangler reads it. */
const read = (config: string, env?: string): WranglerConfig =>
  unstable_readConfig({ config, ...(env && { env }) }, { hideWarnings: true })

it.each(environments)(
  '$name has every binding of the top level, and its own name, database, counters and host',
  async ({ name, chainId }) => {
    const [top, own] = [read(WRANGLER_TOML), read(WRANGLER_TOML, name)]
    expect(own.name).toBe(`agent-trading-service-${chainId}`)
    expect(own.durable_objects).toEqual(top.durable_objects)
    expect(own.version_metadata).toEqual(top.version_metadata)
    expect(own.d1_databases).toMatchObject([{ binding: 'HISTORY', database_name: `agent-trading-history-${chainId}` }])
    expect(own.ratelimits.map(({ namespace_id: _, ...limit }) => limit)).toEqual(
      top.ratelimits.map(({ namespace_id: _, ...limit }) => limit),
    )
    for (const inherited of ['migrations', 'triggers', 'placement', 'assets', 'observability', 'keep_vars'] as const)
      expect(own[inherited]).toEqual(top[inherited])
    expect(own).toMatchObject({ keep_vars: true, workers_dev: false, triggers: { crons: ['* * * * *'] } })
    expect(own.vars).toMatchObject({ CHAIN_ID: `${chainId}` })
    expect(own.routes).toMatchObject([{ pattern: expect.stringMatching(`^api-${chainId}\\.`), custom_domain: true }])
    expect(own.secrets?.required).toContain('EXECUTOR_PRIVATE_KEY')
  },
)

it('fetch reaches no host of the operator past its protection, in any environment', () => {
  for (const env of [undefined, ...environments.map(({ name }) => name)])
    expect(read(WRANGLER_TOML, env).compatibility_flags).toContain('global_fetch_strictly_public')
})

it('no two environments share a database or a rate limit', () => {
  const own = environments.map(({ name }) => read(WRANGLER_TOML, name))
  const names = own.flatMap(({ d1_databases, ratelimits }) => [
    ...d1_databases.map(({ database_name }) => database_name),
    ...ratelimits.map(({ namespace_id }) => namespace_id),
  ])
  expect(new Set(names).size).toBe(names.length)
})

it('a binding that is added at the top level reaches every environment', () => {
  const added = committed.replace(
    '[[durable_objects.bindings]]',
    '[[durable_objects.bindings]]\nname = "ADDED"\nclass_name = "Added"\n\n[[durable_objects.bindings]]',
  )
  const path = join(folder, 'added.toml')
  writeFileSync(path, withEnvironments(added))
  for (const { name } of environments) {
    const bindings = read(path, name).durable_objects.bindings
    expect(bindings).toContainEqual({ name: 'ADDED', class_name: 'Added' })
  }
})

it('a chain that is new gets its first variables, and with them its environment', () => {
  const path = join(folder, 'new.toml')
  const [before, after] = committed.split('[env.robinhood.vars]')
  writeFileSync(path, withEnvironments(`${before}${after?.slice(after.indexOf('[env.'))}`))
  expect(read(path, 'robinhood')).toMatchObject({
    name: 'agent-trading-service-4663',
    vars: { CHAIN_ID: '4663', BASE_URL: 'https://api-4663.example.com' },
    routes: [{ pattern: 'api-4663.example.com', custom_domain: true }],
  })
})

it('the host of an environment is that of its BASE_URL', () => {
  const environment = environmentOf('arbitrum')
  const path = join(folder, 'host.toml')
  writeFileSync(
    path,
    withEnvironments(withVars(committed, environment, { BASE_URL: 'https://api-42161.trading.test' })),
  )
  expect(read(path, 'arbitrum').routes).toEqual([{ pattern: 'api-42161.trading.test', custom_domain: true }])
  expect(() => environmentOf('arbitrun')).toThrow(
    'use --env with one of arbitrum, arbitrum-sepolia, robinhood, robinhood-testnet',
  )
})

it('a deployment is written as wrangler reads it, next to the secrets that are there, and a second time without a change', () => {
  const path = join(folder, 'wrangler.toml')
  copyFileSync(WRANGLER_TOML, path)
  const address = '0x00000000000000000000000000000000000000aB' as const
  const deployment = {
    chainId: 46630,
    deployedAtBlock: '1234',
    contracts: { TradeRouter: address },
    vaults: { genesis: address },
    tokens: { NVDA: address },
  }
  const { environment, files } = writeDeploymentVars(deployment, path)
  const vars = {
    CHAIN_ID: '46630',
    CONTRACTS: JSON.stringify(deployment.contracts),
    TOKENS: JSON.stringify(deployment.tokens),
    VAULTS: JSON.stringify(deployment.vaults),
    START_BLOCK: '1234',
  }
  expect(environment).toBe('robinhood-testnet')
  expect(read(path, environment).vars).toMatchObject({ ...vars, BASE_URL: expect.any(String) })
  const [, secretsFile = ''] = files
  expect(statSync(secretsFile).mode & 0o777).toBe(0o600)
  const text = readFileSync(secretsFile, 'utf8')
  expect(parseEnv(text)).toMatchObject({ ...vars, EXECUTOR_PRIVATE_KEY: '', RPC_URL: '' })

  writeFileSync(secretsFile, text.replace("RPC_URL=''", "RPC_URL='http://127.0.0.1:1/secret'"))
  const toml = readFileSync(path, 'utf8')
  expect(toml).not.toContain('RPC_URL =')
  writeDeploymentVars(deployment, path)
  expect(readFileSync(path, 'utf8')).toBe(toml)
  const { workerOptions } = unstable_getMiniflareWorkerOptions(path, environment)
  expect(workerOptions.bindings).toMatchObject({ ...vars, RPC_URL: 'http://127.0.0.1:1/secret' })
  expect(() => writeDeploymentVars({ ...deployment, chainId: 31337 }, path)).toThrow(
    'wrangler.toml has no environment for chain 31337; it has 42161 (arbitrum)',
  )
})
