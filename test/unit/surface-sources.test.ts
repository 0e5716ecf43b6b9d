import { describe, expect, it } from 'vitest'
import { operations } from '../../src/operations/index.ts'
import type { Operation } from '../../src/operations/operation.ts'

// The two surfaces derive everything from the operations, and the integration tests run over both.

const sources = import.meta.glob('../../src/{http,mcp}/*.ts', { query: '?raw', import: 'default', eager: true })
const tests = import.meta.glob('../integration/*.test.ts', { query: '?raw', import: 'default', eager: true })
const all: readonly Operation[] = operations

/** What only an operation's definition may contain: its id, its path, and the names of its tool and its resource. */
const namesOf = (operation: Operation): string[] => [
  operation.id,
  operation.path,
  ...(operation.kind === 'json' && operation.tool ? [operation.tool.name] : []),
  ...(operation.kind === 'json' && operation.resource ? [operation.resource.uri] : []),
]

/** Tells whether a source contains a name, and not just as a part of a longer one. */
function mentions(source: string, name: string): boolean {
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`(?<![\\w/])${escaped}(?![\\w/])`).test(source)
}

describe.each(Object.entries(sources))('%s', (_, source) => {
  it('names no operation', () => {
    const named = all.flatMap(namesOf).filter(name => name !== '/' && mentions(source, name))
    expect(named).toEqual([])
    expect(source).not.toMatch(/\bsvc_\w+/)
  })
})

it('the check finds a named operation', () => {
  const source = "if (operation.id === 'registerAgent') cache(path === '/vaults/{id}')"
  expect(all.flatMap(namesOf).filter(name => name !== '/' && mentions(source, name))).toEqual([
    '/vaults/{id}',
    'registerAgent',
  ])
})

describe.each(Object.entries(tests))('%s', (_, source) => {
  it('calls operations over both surfaces, or says at its top why not', () => {
    const usesOneSurface = /\bcallOver(Http|Mcp)\b/.test(source) || /\brequest\b.*support\/surfaces/.test(source)
    const usesBoth = /import \{[^}]*\bcall\b[^}]*\} from '\.\.\/support\/surfaces\.ts'/.test(source)
    const [before = ''] = source.split(/^(?:describe|it|test)\b/m)
    if (usesOneSurface && !usesBoth) expect(before).toMatch(/^\/\/ (HTTP|MCP) only: /m)
  })
})
