import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'

// `npm run test:edr -- <vitest arguments>`: tests of the service on Hardhat's EDR in anvil's place. Without arguments,
// the projects that `projects` lists. It installs Hardhat apart from the dependencies, because only this command needs
// it.

const HARDHAT = 'hardhat@3.18.0'
const projects = [
  'surfaces',
  'trading',
  'checks',
  'protocol only',
  'keeper',
  'history',
  'track record',
  'lane',
  'client',
]
const root = join(import.meta.dirname, '..')
const folder = join(root, 'node_modules/.cache/edr')
const hardhat = join(folder, 'node_modules/hardhat')

if (!existsSync(hardhat)) {
  mkdirSync(folder, { recursive: true })
  const { status } = spawnSync('npm', ['install', '--no-save', '--no-audit', '--prefix', folder, HARDHAT], {
    stdio: 'inherit',
  })
  if (status !== 0) throw new Error(`npm could not install ${HARDHAT}.`)
}

/** Runs tests, and returns whether they passed. */
function test(args: readonly string[]): boolean {
  const env = { ...process.env, EMBEDDED_NODE: join(root, 'test/edr/node.ts'), EDR_HARDHAT: hardhat }
  const script = join(root, 'scripts/test.ts')
  return spawnSync(process.execPath, [script, ...args], { cwd: root, stdio: 'inherit', env }).status === 0
}

const args = process.argv.slice(2)
// One after another: EDR keeps every block and its snapshot, about a gigabyte in ten minutes.
const runs = args.length > 0 ? [args] : projects.map(name => [`--project=${name}`])
const failed = runs.filter(run => !test(run))
if (failed.length > 0) console.error(`Failed on EDR: ${failed.map(run => run.join(' ')).join(', ')}`)
process.exitCode = failed.length > 0 ? 1 : 0
