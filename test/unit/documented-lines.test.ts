import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const programs = readdirSync(join(root, 'test/libraries')).map(file =>
  readFileSync(join(root, 'test/libraries', file), 'utf8'),
)
const versions = readFileSync(join(root, 'scripts/libraries.ts'), 'utf8')

/** Returns the rows of a table of a guide, from its heading on. */
function rowsOf(guide: string, heading: string): string[] {
  const text = readFileSync(join(root, 'docs/guides', guide), 'utf8')
  const section = text.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  return section.split('\n').filter(line => line.startsWith('| ') && !/^\| library \|/.test(line))
}

it('every line of the guide that signs with a library is in a program that `npm run libraries` runs, with its version', () => {
  const rows = rowsOf('signing.md', 'With your own library')
  expect(rows).toHaveLength(6)
  for (const row of rows) {
    const [, library = '', line = ''] = row
      .split(' | ')
      .map(cell => cell.replace(/^\| /, ''))
      .toSpliced(0, 0, '')
    const version = / (\d+\.\d+\.\d+)/.exec(library)?.[1]
    if (version !== undefined) expect(versions, library).toContain(version)
    const snippets = [...line.matchAll(/`([^`]+)`/g)].map(([, snippet = '']) => snippet)
    expect(snippets.length, library).toBeGreaterThan(0)
    for (const snippet of snippets)
      expect(
        programs.some(program => program.includes(snippet)),
        snippet,
      ).toBe(true)
  }
})

it('every library of the table of streams is one that `npm run libraries` runs, with its version', () => {
  const rows = rowsOf('streams.md', 'Libraries')
  expect(rows.length).toBeGreaterThanOrEqual(7)
  for (const row of rows) {
    const [, library = '', version = ''] = /^\| `([^`]+)` (\S+) /.exec(row) ?? []
    expect(versions, row).toContain(version)
    expect(versions, row).toContain(library)
  }
})
