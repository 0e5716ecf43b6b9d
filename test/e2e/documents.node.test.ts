import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const read = (file: string) => readFileSync(join(root, file), 'utf8')
const documents = globSync(['*.md', 'docs/**/*.md', 'contracts/*.md'], { cwd: root })
const scripts = Object.keys(JSON.parse(read('package.json')).scripts)
const tests = globSync(['test/**/*.test.ts', 'devnet/*.test.ts', 'scripts/*.test.ts'], { cwd: root })
const contractTests = globSync('contracts/test/**/*', { cwd: root })

describe.each(documents)('%s', file => {
  it('links only to files that exist', () => {
    const links = [...read(file).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(([, link]) => link ?? '')
    expect(links.filter(link => !existsSync(join(root, dirname(file), link)))).toEqual([])
  })

  it('names only files of this repository', () => {
    const text = read(file)
    const isGeneric = (path: string) => /[<>*{}…]|NNNN/.test(path)
    const paths = [...text.matchAll(/`((?:src|test|scripts|devnet|bench|contracts|migrations|client)\/[\w./-]+)`/g)]
    const missing = paths
      .map(([, path]) => path ?? '')
      .filter(path => !isGeneric(path) && !existsSync(join(root, path)))
    expect(missing.filter(path => !tests.some(test => test.startsWith(`${path}.`)))).toEqual([])
  })

  it('names only npm scripts that exist', () => {
    const named = [...read(file).matchAll(/npm run (?:-s )?([\w:]+)/g)].map(([, name]) => name ?? '')
    expect(named.filter(name => !scripts.includes(name))).toEqual([])
  })
})

describe('docs/decisions.md', () => {
  it('names for every choice a test that exists', () => {
    const [, ...sections] = read('docs/decisions.md').split(/^### /m)
    const missing = sections.filter(section => {
      const [, names = ''] = /\*\*Tests?:\*\*(.*)$/s.exec(section.split(/^## /m)[0] ?? '') ?? []
      const named = [...names.matchAll(/`([\w./-]+)`/g)].map(([, name]) => name ?? '')
      const isContract = names.includes('contracts')
      const exists = (name: string) =>
        tests.some(test => test.includes(`/${name}.`) || test.startsWith(`${name}.`)) ||
        (isContract && contractTests.some(test => test.includes(`/${name}`)))
      return (named.length === 0 && !/npm run faults|every refusal test/.test(names)) || !named.every(exists)
    })
    expect(missing.map(section => section.split('\n')[0])).toEqual([])
  })
})

describe('docs/security.md', () => {
  it('names only what the contracts and the configuration of a deployment have', () => {
    const files = globSync(['contracts/src/**/*.sol', 'scripts/deploy-config.ts', 'src/resources/*.ts'], { cwd: root })
    const words = new Set(files.flatMap(file => [basename(file, '.sol'), ...(read(file).match(/\w+/g) ?? [])]))
    const names = [...read('docs/security.md').matchAll(/`([A-Za-z]\w+(?:\.[A-Za-z]\w+)?)[`(]/g)]
    const unknown = names.map(([, name]) => name ?? '').filter(name => !name.split('.').every(word => words.has(word)))
    expect(unknown.filter(name => !['genesis', 'frontier'].includes(name))).toEqual([])
  })
})

describe('docs/glossary.md', () => {
  it('defines at most 40 terms, each once, and links the file that owns it', () => {
    const rows = read('docs/glossary.md')
      .split('\n')
      .filter(line => line.startsWith('| **'))
    const terms = rows.map(row => /\*\*(.+?)\*\*/.exec(row)?.[1])
    expect(new Set(terms).size).toBe(rows.length)
    expect(rows.length).toBeLessThanOrEqual(40)
    expect(rows.filter(row => !row.includes(']('))).toEqual([])
  })
})
