import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Layer, layers, restrictedNames, restrictedPackages } from './layers.ts'

// The linter enforces the table in layers.ts: a copy of its configuration is tried on files with deliberate mistakes.

const root = join(import.meta.dirname, '..')
let copy: string

beforeEach(() => {
  copy = mkdtempSync(join(tmpdir(), 'layer-rules-'))
  for (const file of ['biome.json', 'biome.layers.json', '.gitignore']) cpSync(join(root, file), join(copy, file))
})
afterEach(() => rmSync(copy, { recursive: true }))

function write(path: string, lines: string[]): void {
  mkdirSync(dirname(join(copy, path)), { recursive: true })
  writeFileSync(join(copy, path), lines.join('\n'))
}

/** Lints the copy. Returns `path:line` of each error of the rule, sorted. */
function lint(rule: string): string[] {
  const biome = join(root, 'node_modules/.bin/biome')
  const { stdout } = spawnSync(biome, ['lint', '--reporter=json', '--max-diagnostics=none'], {
    cwd: copy,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  })
  const { diagnostics } = JSON.parse(stdout) as {
    diagnostics: { severity: string; category: string; location: { path: string; start: { line: number } } }[]
  }
  return diagnostics
    .filter(({ severity, category }) => severity === 'error' && category === `lint/${rule}`)
    .map(({ location }) => `${location.path}:${location.start.line}`)
    .sort()
}

const all: Layer[] = layers.flat()
const row = (layer: Layer) => layers.findIndex(names => (names as readonly Layer[]).includes(layer))
const isFile = (layer: Layer) => existsSync(join(root, `src/${layer}.ts`))
const fileOf = (layer: Layer) => (isFile(layer) ? `src/${layer}.ts` : `src/${layer}/probe.ts`)
const toSrc = (layer: Layer) => (isFile(layer) ? './' : '../')
const lineNumbers = (layer: Layer, isWrong: boolean[]) =>
  isWrong.flatMap((wrong, index) => (wrong ? [`${fileOf(layer)}:${index + 1}`] : [])).sort()

describe('the linter', () => {
  it('accepts imports of the layers below and rejects all others, in each layer', () => {
    const wrong = all.flatMap(layer => {
      const others = all.filter(other => other !== layer)
      write(
        fileOf(layer),
        others.map(other => `import type { Probe } from '${toSrc(layer)}${fileOf(other).slice('src/'.length)}'`),
      )
      return lineNumbers(
        layer,
        others.map(other => row(other) <= row(layer)),
      )
    })
    expect(wrong.length).toBeGreaterThan(0)
    expect(lint('style/noRestrictedImports')).toEqual(wrong.sort())
  })

  it('rejects a restricted package in each layer that may not import it', () => {
    const packages = [
      'hono',
      'hono/cors',
      '@hono/zod-openapi',
      '@modelcontextprotocol/server',
      '@x402/core/http',
      'zod',
    ]
    const mayImport = (layer: Layer, name: string) =>
      restrictedPackages.every(
        rule =>
          rule.layers.includes(layer) || !rule.packages.some(pattern => name.startsWith(pattern.split('/')[0] ?? '')),
      )
    const wrong = all.flatMap(layer => {
      write(
        fileOf(layer),
        packages.map(name => `import '${name}'`),
      )
      return lineNumbers(
        layer,
        packages.map(name => !mayImport(layer, name)),
      )
    })
    expect(lint('style/noRestrictedImports')).toEqual(wrong.sort())
  })

  it('rejects a restricted name in each layer that may not import it', () => {
    const wrong = all.flatMap(layer => {
      const rules = restrictedNames.flatMap(rule => rule.imports.map(imported => ({ ...rule, imported })))
      write(
        fileOf(layer),
        rules.map(({ name, imported }) => `import { ${imported}, hexToBigInt } from '${name}'`),
      )
      return lineNumbers(
        layer,
        rules.map(rule => !rule.layers.includes(layer)),
      )
    })
    expect(lint('style/noRestrictedImports')).toEqual(wrong.sort())
  })

  it('rejects imports from outside src/, except contracts-abi', () => {
    const outside = ['contracts-abi', 'devnet', 'test/support', 'scripts', 'bench', 'client']
    const wrong = all.flatMap(layer => {
      write(
        fileOf(layer),
        outside.map(folder => `import type { Probe } from '${isFile(layer) ? '../' : '../../'}${folder}/probe.ts'`),
      )
      return lineNumbers(
        layer,
        outside.map(folder => folder !== 'contracts-abi'),
      )
    })
    expect(lint('style/noRestrictedImports')).toEqual(wrong.sort())
  })

  it('applies the rules to nested folders', () => {
    write('src/history/tables/probe.ts', [
      "import type { Allowed } from '../store.ts'",
      "import type { Below } from '../../chain/probe.ts'",
      "import type { Above } from '../../operations/probe.ts'",
    ])
    expect(lint('style/noRestrictedImports')).toEqual(['src/history/tables/probe.ts:3'])
  })

  it('rejects import cycles, of type imports too, in each folder', () => {
    const cyclic = all
      .filter(layer => !isFile(layer))
      .flatMap(layer => {
        write(`src/${layer}/first.ts`, ["import type { Second } from './second.ts'", 'export type First = Second[]'])
        write(`src/${layer}/second.ts`, ["import type { First } from './first.ts'", 'export type Second = First[]'])
        return [`src/${layer}/first.ts:1`, `src/${layer}/second.ts:1`]
      })
    expect(cyclic.length).toBeGreaterThan(0)
    expect(lint('suspicious/noImportCycles')).toEqual(cyclic.sort())
  })

  it('sees every import, because src/ has no import types', () => {
    const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter(path =>
      path.endsWith('.ts'),
    )
    expect(files.filter(path => /\bimport\('/.test(readFileSync(join(root, 'src', path), 'utf8')))).toEqual([])
  })
})
