import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { signingTypes } from '../../packages/protocol/src/typed-data.ts'
import { parsePayment } from '../../src/payments/parse-payment.ts'

const root = join(import.meta.dirname, '../..')
const read = (file: string) => readFileSync(join(root, file), 'utf8')
const documents = globSync(['*.md', 'docs/**/*.md', 'contracts/*.md', 'packages/*/README.md'], { cwd: root })
const scripts = Object.keys(JSON.parse(read('package.json')).scripts)
const tests = globSync(['test/**/*.test.ts', 'devnet/*.test.ts', 'scripts/*.test.ts', 'packages/python/tests/*.py'], {
  cwd: root,
})
const contractTests = globSync('contracts/test/**/*', { cwd: root })

/** Returns the anchors of a page's headings, as GitHub writes them. */
const anchorsOf = (text: string) =>
  [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-'),
  )

describe.each(documents)('%s', file => {
  it('links only to files and headings that exist', () => {
    const links = [...read(file).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)]
    const broken = links.filter(([, link = '', anchor]) => {
      const target = link === '' ? file : join(dirname(file), link)
      if (!existsSync(join(root, target))) return true
      return anchor !== undefined && !anchorsOf(read(target)).includes(anchor)
    })
    expect(broken.map(([link]) => link)).toEqual([])
  })

  it('names only files of this repository', () => {
    const text = read(file)
    const folders = /`((?:src|test|scripts|devnet|bench|contracts|migrations|packages|web|ops)\/[\w./-]+)`/g
    // Prose may leave out the folder that it is about.
    const files = /`(\w[\w-]*(?:\/[\w.-]+)+\.(?:ts|tsx|sol|sql|toml|md|py|sh))`/g
    const named = [...text.matchAll(folders), ...text.matchAll(files)].map(([, path]) => path ?? '')
    const missing = named.filter(
      path =>
        !path.includes('NNNN') &&
        !['', 'src', 'packages', 'contracts'].some(folder => existsSync(join(root, folder, path))) &&
        !existsSync(join(root, 'packages/protocol/src', path.replace(/^protocol\//, ''))) &&
        !tests.some(test => test.startsWith(`${path}.`)),
    )
    expect(missing).toEqual([])
  })

  it('names only npm scripts that exist', () => {
    const named = [...read(file).matchAll(/npm run (?:-s )?([\w:]+)/g)].map(([, name]) => name ?? '')
    expect(named.filter(name => !scripts.includes(name))).toEqual([])
  })
})

describe.each(['docs/limits.md', ...globSync('docs/decisions/*.md', { cwd: root })])('%s', file => {
  it('names for every rule a test that exists', () => {
    const rules = read(file)
      .split(/^(?=- |#|\|)/m)
      .filter(part => part.startsWith('- '))
    const missing = rules.filter(rule => {
      const [, named = ''] = /Tests:\s(.*)\.\s*$/s.exec(rule) ?? []
      const names = [...named.matchAll(/(contracts\s+)?`([\w.-]+)`/g)]
      const exists = ([, contract, name]: RegExpMatchArray) =>
        contract === undefined
          ? tests.some(test => basename(test).startsWith(`${name}.`))
          : contractTests.some(test => basename(test).startsWith(`${name}`))
      return names.length === 0 || !names.every(exists)
    })
    expect(missing).toEqual([])
  })
})

describe('docs/guides/payment.md', () => {
  it('docs/guides/payment.md shows a payment header that the service accepts', () => {
    const [, json = ''] = /```json\n([\s\S]*?)```/.exec(read('docs/guides/payment.md')) ?? []
    const header = JSON.parse(json)
    const now = BigInt(header.payload.authorization.validBefore) - 60n
    expect(parsePayment(header, header.accepted, now).kind).toBe('valid')
  })
})

describe('docs/decisions/dependencies.md', () => {
  it('docs/decisions/dependencies.md gives a reason for each library of the Worker, with its version', () => {
    const rows = [...read('docs/decisions/dependencies.md').matchAll(/^\| (`[^|]+`) \| ([\d., ]+) \|/gm)]
    const named = rows.flatMap(([, names = '', versions = '']) => {
      const inOrder = versions.split(', ')
      return names.split(', ').map((name, index) => [name.replaceAll('`', ''), inOrder[index] ?? inOrder[0]])
    })
    expect(Object.fromEntries(named)).toEqual(JSON.parse(read('package.json')).dependencies)
  })
})

describe('docs/security.md', () => {
  it('docs/security.md names only what the contracts and the configuration of a deployment have', () => {
    const files = globSync(
      [
        ...[
          'contracts/src/**/*.sol',
          'scripts/deploy-config.ts',
          'src/{resources,errors}/*.ts',
          'src/config/variables.ts',
        ],
        'ops/prometheus/alerts.yml',
      ],
      { cwd: root },
    )
    const words = new Set(files.flatMap(file => [basename(file, '.sol'), ...(read(file).match(/\w+/g) ?? [])]))
    const names = [...read('docs/security.md').matchAll(/`([A-Za-z]\w+(?:\.[A-Za-z]\w+)?)[`(]/g)]
    const unknown = names.map(([, name]) => name ?? '').filter(name => !name.split('.').every(word => words.has(word)))
    expect(unknown.filter(name => !['genesis', 'frontier'].includes(name))).toEqual([])
  })
})

describe('docs/compatibility.md', () => {
  it('docs/compatibility.md names for each client and wallet a test that exists', () => {
    const sources = new Map<string, string>()
    for (const file of tests) {
      const name = basename(file).split('.')[0] ?? ''
      sources.set(name, `${sources.get(name) ?? ''}${read(file)}`)
    }
    const lines = read('docs/compatibility.md').split('\n')
    const rows = lines.filter(
      line =>
        line.startsWith('| ') &&
        !/^\| (wallet|client|what)\b[^|]*\| supported/.test(line) &&
        !/^\| run \||npm run (clients|libraries)/.test(line),
    )
    const missing = rows.filter(row => {
      const [, name = '', title = ''] = /`([\w-]+)`: (.+) \|$/.exec(row) ?? []
      // A title that continues its `describe` repeats the first words.
      const source = sources.get(name)?.replaceAll("\\'", "'")
      return (
        !source || !title || ![title, title.split(' ').slice(3).join(' ')].some(text => text && source.includes(text))
      )
    })
    expect(rows.length).toBeGreaterThan(20)
    expect(missing).toEqual([])
  })

  it('docs/compatibility.md names for each language, generator, framework and SSE library a run of that version', () => {
    const source = read('scripts/clients.ts')
    const rows = [
      ...read('docs/compatibility.md').matchAll(/^\| .* \| (.+) \| .* \| .* \| `npm run clients -- (.+)` \|$/gm),
    ]
    expect(rows.length).toBeGreaterThan(20)
    for (const [row, version = '', name = ''] of rows) {
      expect(source, row).toMatch(new RegExp(`'${name}'`))
      expect(source, row).toContain(version.split(' ').at(-1))
    }
  })
})

it.each(['go/main.go', 'rust/main.rs', 'java/Agent.java'])('examples/%s is an agent of at most 120 lines', path => {
  const lines = read(`examples/${path}`).trimEnd().split('\n')
  expect(lines.length).toBeLessThanOrEqual(120)
  expect(lines.filter(line => line.length > 120)).toEqual([])
})

it('docs/guides/signing.md has every signed type, with its fields in signing order', () => {
  const guide = read('docs/guides/signing.md')
  for (const [type, fields] of Object.entries(signingTypes))
    expect(guide).toContain(`\`${type}(${fields.map(({ name, type }) => `${type} ${name}`).join(',')})\``)
})

describe('docs/glossary.md', () => {
  it('docs/glossary.md defines at most 45 terms, each once, and links the file that owns it', () => {
    const rows = read('docs/glossary.md')
      .split('\n')
      .filter(line => line.startsWith('| **'))
    const terms = rows.map(row => /\*\*(.+?)\*\*/.exec(row)?.[1])
    expect(new Set(terms).size).toBe(rows.length)
    expect(rows.length).toBeLessThanOrEqual(45)
    expect(rows.filter(row => !row.includes(']('))).toEqual([])
  })
})
