// `npm run sol:properties`: runs public property suites, unchanged, against the vault and its shares. Git fetches them
// at the commits below, which are their checksums, because neither is on npm and their licence (AGPL-3.0) keeps them
// out of this tree.
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const suites = {
  'erc4626-tests': ['https://github.com/a16z/erc4626-tests', 'ac485460e014f22807c1ff687e0b4dc3af96ee40'],
  properties: ['https://github.com/crytic/properties', 'c793cd93c8f583471842f53029e325aec94f96b5'],
}

const contracts = fileURLToPath(new URL('..', import.meta.url))
for (const [name, [url, commit]] of Object.entries(suites)) {
  const folder = `${contracts}cache/suites/${name}`
  mkdirSync(folder, { recursive: true })
  const git = (...args) => run('git', ['-C', folder, ...args])
  git('init', '--quiet')
  git('fetch', '--quiet', '--depth', '1', url, commit)
  git('checkout', '--quiet', '--force', commit)
}
process.env.FOUNDRY_PROFILE = 'properties'
run(process.execPath, [`${contracts}tools/forge.mjs`, 'test', ...process.argv.slice(2)])

function run(command, args) {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit' })
  if (error) throw error
  if (status !== 0) process.exit(status ?? 1)
}
