import { existsSync, readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { writeGenerated } from './generated-file.ts'
import { type Layer, layers, restrictedNames, restrictedPackages } from './layers.ts'

// `npm run layers`: writes biome.layers.json, the import rules of src/, from the table in layers.ts.
// biome.json extends it. --check only compares.

const root = join(import.meta.dirname, '..')
const src = join(root, 'src')

type Pattern = { group: string[]; message: string }

/** The files of a layer that share a depth, and the prefix that leads from them to src/. */
type Place = { glob: string; toSrc: string }

const isFile = (layer: Layer) => existsSync(join(src, `${layer}.ts`))

function placesOf(layer: Layer): Place[] {
  if (isFile(layer)) return [{ glob: `src/${layer}.ts`, toSrc: './' }]
  if (!existsSync(join(src, layer))) throw new Error(`layers.ts names ${layer}, but src/ has no such folder or file.`)
  const folders = readdirSync(join(src, layer), { withFileTypes: true, recursive: true })
    .filter(entry => entry.isDirectory())
    .map(entry => relative(src, join(entry.parentPath, entry.name)))
  return [layer, ...folders.sort()].map(folder => ({
    glob: `src/${folder}/*.ts`,
    toSrc: '../'.repeat(folder.split('/').length),
  }))
}

function patternsOf(layer: Layer, { toSrc }: Place): Pattern[] {
  const below = layers.slice(layers.findIndex(row => (row as readonly Layer[]).includes(layer)) + 1).flat()
  const outside = toSrc === './' ? '../' : `${toSrc}../`
  return [
    {
      group: [
        ...new Set([`${toSrc}**`, `${outside}**`]),
        ...below.map(other => `!${toSrc}${other}${isFile(other) ? '.ts' : '/**'}`),
        `!${outside}contracts-abi/**`,
      ],
      message: `${layer} may import only contracts-abi and the layers below it: ${below.join(', ') || 'there are none'}.`,
    },
    ...restrictedPackages
      .filter(rule => !rule.layers.includes(layer))
      .map(rule => ({ group: rule.packages, message: `Only ${rule.layers.join(', ')} may import this package.` })),
  ]
}

function pathsOf(layer: Layer) {
  return Object.fromEntries(
    restrictedNames
      .filter(rule => !rule.layers.includes(layer))
      .map(({ name, imports, layers }) => [
        name,
        { importNames: imports, message: `Only ${layers.join(', ')} may import this.` },
      ]),
  )
}

const listed = new Set<string>(layers.flat())
const unlisted = readdirSync(src).filter(name => !listed.has(name.replace(/\.ts$/, '')))
if (unlisted.length > 0) throw new Error(`Add ${unlisted.join(', ')} of src/ to a layer in scripts/layers.ts.`)

const overrides = layers.flat().flatMap(layer =>
  placesOf(layer).map(place => ({
    includes: [place.glob],
    linter: {
      rules: {
        style: {
          noRestrictedImports: {
            level: 'error',
            options: { paths: pathsOf(layer), patterns: patternsOf(layer, place) },
          },
        },
      },
    },
  })),
)
const configuration = {
  linter: { rules: { suspicious: { noImportCycles: { level: 'error', options: { ignoreTypes: false } } } } },
  overrides,
}
writeGenerated(join(root, 'biome.layers.json'), `${JSON.stringify(configuration, null, 2)}\n`, 'layers')
