import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'

/**
 * The seven layers of `src/`, highest first, by folder and top-level file. A file imports its own folder and lower
 * layers, and of its own layer what `arrows` names.
 */
const layers = [
  ['index', 'scheduled', 'http', 'mcp'],
  ['operations'],
  ['intents', 'readiness', 'context', 'call'],
  ['executor', 'keeper', 'payments', 'history', 'live', 'webhooks', 'price-providers', 'intake-switches'],
  ['resources', 'doctor', 'chain', 'rpc'],
  ['limits', 'requests', 'clock', 'alarm', 'log', 'metrics', 'concurrency', 'config', 'crypto', 'errors', 'generated'],
  ['protocol'],
]

/** What else a folder imports from its own layer. The order has no cycle. */
const arrows: Record<string, string[]> = {
  index: ['scheduled', 'http', 'mcp'],
  intents: ['context', 'call'],
  readiness: ['context'],
  context: ['call'],
  webhooks: ['live'],
  live: ['keeper', 'executor', 'history'],
  history: ['keeper', 'executor'],
  keeper: ['executor', 'price-providers'],
  executor: ['price-providers'],
  payments: ['executor'],
  'intake-switches': ['executor'],
  resources: ['chain'],
  doctor: ['chain', 'rpc'],
  chain: ['rpc'],
  limits: ['requests', 'config', 'errors', 'concurrency'],
  requests: ['concurrency'],
  log: ['metrics', 'errors'],
  metrics: ['concurrency'],
  config: ['crypto'],
}

/** Packages that only some folders may import. */
const restricted: [packages: RegExp, folders: string[]][] = [
  [/^(hono|@hono)(\/|$)/, ['http']],
  [/^@modelcontextprotocol\//, ['mcp']],
  [/^@x402\//, ['payments']],
  [/^zod(\/|$)/, ['http', 'mcp', 'operations', 'resources', 'payments', 'config']],
]

const root = join(import.meta.dirname, '../..')
const PROTOCOL = '@agent-trading-service/protocol/'
const row = (folder: string) => layers.findIndex(folders => folders.includes(folder))
const folderOf = (path: string) =>
  path.startsWith('packages/protocol/') ? 'protocol' : (/^src\/([^/.]+)/.exec(path)?.[1] ?? undefined)

/** Every import of `src/` and of the packages: the importing file, and the imported file or package. */
const allImports = globSync(['src/**/*.ts', 'packages/*/src/**/*.ts'], { cwd: root }).flatMap(file =>
  [
    ...readFileSync(join(root, file), 'utf8').matchAll(
      /^(?:import|export|\}) [^'\n]*'([^']+)'|\bimport\('([^']+)'\)/gm,
    ),
  ].map(([, statement, call]) => {
    const target = statement ?? call ?? ''
    if (target.startsWith(PROTOCOL))
      return { file, target: `packages/protocol/src/${target.slice(PROTOCOL.length)}.ts` }
    return { file, target: target.startsWith('.') ? normalize(join(dirname(file), target)) : target }
  }),
)
const imports = allImports.filter(({ file }) => folderOf(file) !== undefined)

describe('a file of src/', () => {
  it('a file of src/ imports only its own folder, what the arrows name, and lower layers', () => {
    const upward = imports.filter(({ file, target }) => {
      const [from, to] = [folderOf(file), folderOf(target)]
      if (from === undefined || to === undefined || from === to) return false
      return row(to) <= row(from) && !arrows[from]?.includes(to)
    })
    expect(upward).toEqual([])
  })

  it('a file of src/ is imported by no rule of the protocol', () => {
    const impure = imports.filter(({ file, target }) => folderOf(file) === 'protocol' && target.startsWith('src/'))
    expect(impure).toEqual([])
  })

  it('a file of src/ is imported by no package but the commands of `ats` that read a deployment', () => {
    const foreign = allImports.filter(
      ({ file, target }) =>
        target.startsWith('src/') && !file.startsWith('src/') && !file.startsWith('packages/cli/src/operator/'),
    )
    expect(foreign).toEqual([])
  })

  it('a file of src/ belongs to a layer', () => {
    expect(imports.filter(({ file }) => row(folderOf(file) ?? '') === -1)).toEqual([])
  })

  it('a file of src/ imports a restricted package only where it belongs', () => {
    const misplaced = imports.filter(({ file, target }) =>
      restricted.some(([packages, folders]) => packages.test(target) && !folders.includes(folderOf(file) ?? '')),
    )
    expect(misplaced).toEqual([])
  })

  it('a file of src/ is in no import cycle', () => {
    const graph = Map.groupBy(imports, ({ file }) => file)
    const done = new Set<string>()
    const cycle = (file: string, path: string[]): string[] | undefined => {
      if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
      if (done.has(file)) return undefined
      for (const { target } of graph.get(file) ?? []) {
        const found = cycle(target, [...path, file])
        if (found) return found
      }
      done.add(file)
      return undefined
    }
    for (const file of graph.keys()) expect(cycle(file, [])).toBeUndefined()
  })
})
