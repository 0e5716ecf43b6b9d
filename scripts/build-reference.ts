import { globSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { buildIfChanged, writeOutput } from './build-output.ts'

// `npm run reference`: builds the API reference into public/docs: a page for each operation and guide, the errors (as
// HTML and Markdown), the script, the styles and the recorded examples. Wrangler runs it before it serves or deploys
// the Worker. Without a change of its sources it does nothing.

const root = join(import.meta.dirname, '..')
const target = join(root, 'public/docs')
const SOURCES = [
  'src/**/*.{ts,json}',
  'packages/protocol/src/*.ts',
  'reference/**/*',
  'docs/**/*.md',
  'packages/*/README.md',
  'examples/*',
  'scripts/build-reference.ts',
]
const MAX_SCRIPT_BYTES = 20_000
const FONTS = ['inter', 'jetbrains-mono']

const fontFile = (name: string): string =>
  createRequire(import.meta.url).resolve(`@fontsource-variable/${name}/files/${name}-latin-wght-normal.woff2`)

/** Bundles the scripts of the pages. */
async function bundle(): Promise<Map<string, string>> {
  const { build } = await import('vite')
  const result = await build({
    root: join(root, 'reference/browser'),
    configFile: false,
    logLevel: 'error',
    build: {
      write: false,
      target: 'es2023',
      modulePreload: false,
      rollupOptions: {
        input: { reference: join(root, 'reference/browser/main.ts'), theme: join(root, 'reference/browser/theme.ts') },
        output: { entryFileNames: '[name].js' },
      },
    },
  })
  const outputs = [result].flat().flatMap(part => ('output' in part ? part.output : []))
  return new Map(outputs.flatMap(file => (file.type === 'chunk' ? [[file.fileName, file.code]] : [])))
}

await buildIfChanged({ name: 'reference', sources: SOURCES, output: 'public/docs/index.html' }, async () => {
  const { readServiceDescription, RECORDED_EXAMPLES } = await import('../reference/build/service-description.ts')
  const { pages } = await import('../reference/build/pages.ts')
  const [description, scripts] = await Promise.all([readServiceDescription(), bundle()])
  const files = new Map<string, string | Buffer>([...pages(description), ...scripts])
  files.set('examples.json', JSON.stringify(JSON.parse(readFileSync(RECORDED_EXAMPLES, 'utf8'))))
  for (const name of ['reference.css', 'icon.svg']) files.set(name, readFileSync(join(root, 'reference', name), 'utf8'))
  for (const name of FONTS) files.set(`${name}.woff2`, readFileSync(fontFile(name)))
  const size = [...scripts.values()].reduce((sum, code) => sum + gzipSync(code).length, 0)
  if (size > MAX_SCRIPT_BYTES)
    throw new Error(`The scripts of the reference have ${size} bytes gzip; the maximum is ${MAX_SCRIPT_BYTES}.`)
  for (const [name, content] of files) writeOutput(join(target, name), content)
  for (const name of globSync('**/*.*', { cwd: target }))
    if (!files.has(name)) rmSync(join(target, name), { force: true })
  console.log(`reference  ${files.size} files, ${size} bytes of script (gzip)`)
})
