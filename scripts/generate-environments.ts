import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { exitWith } from '../devnet/environment.ts'
import { environments, withEnvironments, withVars } from './environments.ts'
import { writeGenerated } from './generated-file.ts'

// `npm run environments`: writes the environments of wrangler.toml from its top level and from BASE_URL of each one.
// `-- --domain trading.example.org` first sets every BASE_URL to https://api-<chain id>.<domain>. --check only
// compares.

const { values } = parseArgs({ options: { domain: { type: 'string' }, check: { type: 'boolean' } } })
const path = join(import.meta.dirname, '../wrangler.toml')
try {
  if (values.domain !== undefined) writeFileSync(path, withDomain(readFileSync(path, 'utf8'), values.domain))
  writeGenerated(path, withEnvironments(readFileSync(path, 'utf8')), 'environments')
} catch (error) {
  exitWith(error)
}

function withDomain(toml: string, domain: string): string {
  if (!/^([a-z0-9-]+\.)+[a-z]{2,}$/.test(domain))
    throw new Error(`${domain} is not a domain: give one such as trading.example.org, without https:// or a path.`)
  return environments.reduce(
    (text, environment) => withVars(text, environment, { BASE_URL: `https://api-${environment.chainId}.${domain}` }),
    toml,
  )
}
