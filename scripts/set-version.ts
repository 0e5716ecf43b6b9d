import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { exitWith } from '../devnet/environment.ts'
import { hashesOf, RELEASED, readMigrations } from './released-migrations.ts'

// `npm run release -- 0.2.0`: sets the version everywhere, makes the changelog's unreleased part that of the version,
// and records the migrations, which no later commit may change.
// --notes prints what the changelog says of the present version. --check names files with another version than
//   package.json.

const root = join(import.meta.dirname, '..')
const CHANGELOG = 'CHANGELOG.md'
const UNRELEASED = '## [Unreleased]\n'
const VERSION = /^\d+\.\d+\.\d+(-[\w.]+)?$/

const pathOf = (file: string) => join(root, file)
const textOf = (file: string) => readFileSync(pathOf(file), 'utf8')

/** The files that name the version, with what stands before it. */
const places: [file: string, before: RegExp][] = [
  ['package.json', /(?<=^ {2}"version": ")[^"]+/gm],
  ['packages/protocol/package.json', /(?<=^ {2}"version": ")[^"]+/gm],
  ['packages/client/package.json', /(?<=^ {2}"version": ")[^"]+/gm],
  ['packages/cli/package.json', /(?<=^ {2}"version": "|"@agent-trading-service\/client": ")[^"]+/gm],
  ['packages/cli/server.json', /(?<="version": ")[^"]+/g],
  ['src/config/config.ts', /(?<=^export const VERSION = ')[^']+/gm],
]
const workspaces = ['', 'packages/protocol', 'packages/client', 'packages/cli']

type Lock = { version: string; packages: Record<string, { version: string; dependencies?: Record<string, string> }> }

/** Returns package-lock.json with a version. */
function withLockVersion(text: string, version: string): string {
  const lock: Lock = JSON.parse(text)
  lock.version = version
  for (const path of workspaces) {
    const entry = lock.packages[path]
    if (entry === undefined) throw new Error(`package-lock.json has no package ${path || 'at its root'}.`)
    entry.version = version
    if (entry.dependencies?.['@agent-trading-service/client'])
      entry.dependencies['@agent-trading-service/client'] = version
  }
  return `${JSON.stringify(lock, null, 2)}\n`
}

const withVersion = (version: string): [file: string, text: string][] => [
  ...places.map(([file, before]): [string, string] => [file, textOf(file).replace(before, version)]),
  ['package-lock.json', withLockVersion(textOf('package-lock.json'), version)],
]

/** Returns the part of the changelog about a version, without its heading. */
function notesOf(version: string): string {
  const [, part] = textOf(CHANGELOG).split(`## [${version}]`)
  if (part === undefined) throw new Error(`CHANGELOG.md has no part [${version}].`)
  const [, ...lines] = (part.split(/^## /m)[0] ?? '').split('\n')
  return lines.join('\n').trim()
}

function release(version: string): void {
  if (!VERSION.test(version)) throw new Error(`${version} is not a version: give one such as 0.2.0.`)
  const changelog = textOf(CHANGELOG)
  if (changelog.includes(`## [${version}]`)) throw new Error(`CHANGELOG.md has a part [${version}] already.`)
  if (notesOf('Unreleased') === '') throw new Error('CHANGELOG.md says nothing under [Unreleased].')
  const date = new Date().toISOString().slice(0, 10)
  const heading = `${UNRELEASED}\n## [${version}] - ${date}\n`
  for (const [file, text] of withVersion(version)) writeFileSync(pathOf(file), text)
  writeFileSync(pathOf(CHANGELOG), changelog.replace(UNRELEASED, heading))
  writeFileSync(RELEASED, `${JSON.stringify(hashesOf(readMigrations()), null, 2)}\n`)
  console.log(`Version ${version}. Next: npm run examples, npm run check, then commit, and tag v${version}.`)
}

function check(version: string): void {
  const stale = withVersion(version).flatMap(([file, text]) => (text === textOf(file) ? [] : [file]))
  if (stale.length > 0) throw new Error(`package.json says ${version}, but not: ${stale.join(', ')}.`)
}

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { check: { type: 'boolean' }, notes: { type: 'boolean' } },
  })
  const { version: present } = JSON.parse(textOf('package.json')) as { version: string }
  if (values.check) check(present)
  else if (values.notes) console.log(notesOf(present))
  else release(positionals[0] ?? '')
} catch (error) {
  exitWith(error)
}
