import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { exitWith } from '../devnet/environment.ts'
import { CHAINS_FOLDER, chainIndex, chainsPage } from './chains.ts'
import { writeGenerated } from './generated-file.ts'

// `npm run environments`: writes the list of public chains, docs/chains.md, and the environments of wrangler.toml from
// its top level and from BASE_URL of each one. `-- --domain trading.example.org` first sets every BASE_URL to
// https://api-<chain id>.<domain>. --check only compares.

const { values } = parseArgs({ options: { domain: { type: 'string' }, check: { type: 'boolean' } } })
const path = join(import.meta.dirname, '../wrangler.toml')
try {
  writeGenerated(join(CHAINS_FOLDER, '../public-chains.ts'), chainIndex(CHAINS_FOLDER), 'environments')
  // Both modules read the list that was just written.
  const { publicChains } = await import('@agent-trading-service/protocol/public-chains')
  const { withEnvironments } = await import('./environments.ts')
  writeGenerated(join(import.meta.dirname, '../docs/chains.md'), chainsPage(publicChains), 'environments')
  if (values.domain !== undefined) writeFileSync(path, await withDomain(readFileSync(path, 'utf8'), values.domain))
  writeGenerated(path, withEnvironments(readFileSync(path, 'utf8')), 'environments')
} catch (error) {
  exitWith(error)
}

async function withDomain(toml: string, domain: string): Promise<string> {
  if (!/^([a-z0-9-]+\.)+[a-z]{2,}$/.test(domain))
    throw new Error(`${domain} is not a domain: give one such as trading.example.org, without https:// or a path.`)
  const { environments, withVars } = await import('./environments.ts')
  return environments.reduce(
    (text, environment) => withVars(text, environment, { BASE_URL: `https://api-${environment.chainId}.${domain}` }),
    toml,
  )
}
