import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { basename, join } from 'node:path'
import { parse } from 'smol-toml'
import { build } from 'vite'
import { exitWith } from '../devnet/environment.ts'
import type { ReleaseSettings } from './release-settings.ts'
import { runCommand } from './run-wrangler.ts'

// `npm run build`: writes what `npm run serve` runs into dist/service, an npm package: the Worker as a deploy bundles
// it, its pages, the settings of wrangler.toml, the script that serves them, and `ats`. They need only miniflare.

const root = join(import.meta.dirname, '..')
const CONFIG = join(root, 'wrangler.toml')
const out = join(root, 'dist/service')
const EVERY_MINUTE = '* * * * *'

await main().catch(exitWith)

async function main(): Promise<void> {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  await bundleWorker()
  await bundleProgram('scripts/serve.ts', 'serve.js')
  await bundleProgram('packages/cli/src/ats.ts', 'ats.js')
  cpSync(join(root, 'public'), join(out, 'public'), { recursive: true })
  writeFileSync(join(out, 'settings.json'), JSON.stringify(await readSettings()))
  writeFileSync(join(out, 'package.json'), JSON.stringify(packageFile(), undefined, 2))
  for (const file of ['LICENSE', 'docs/licences.md', 'wrangler.toml'])
    cpSync(join(root, file), join(out, basename(file)))
  writeFileSync(join(out, 'sbom.cdx.json'), await readSbom())
  console.log(`release  ${out}`)
}

/** Bundles the Worker, with its pages, as a deploy does. */
async function bundleWorker(): Promise<void> {
  const { code, output } = await runCommand(
    'wrangler',
    ['deploy', '--dry-run', '--outdir', join(out, 'worker'), '--config', CONFIG],
    true,
  )
  if (code !== 0) throw new Error(`The Worker cannot be built.\n${output.trim()}`)
  for (const name of ['index.js.map', 'README.md']) rmSync(join(out, 'worker', name))
  const front = readFileSync(join(root, 'scripts/front-worker.ts'), 'utf8')
  writeFileSync(join(out, 'front-worker.js'), stripTypeScriptTypes(front))
}

/** Bundles a program with all that it imports but miniflare, which has a binary. */
async function bundleProgram(source: string, file: string): Promise<void> {
  await build({
    configFile: false,
    logLevel: 'warn',
    publicDir: false,
    ssr: {
      noExternal: true,
      external: ['miniflare'],
      resolve: { conditions: ['@agent-trading-service/source', 'node', 'import', 'module', 'default'] },
    },
    build: {
      ssr: join(root, source),
      outDir: out,
      emptyOutDir: false,
      rollupOptions: {
        output: {
          entryFileNames: file,
          chunkFileNames: 'modules/[name]-[hash].js',
          banner: ({ isEntry }) => (isEntry ? '#!/usr/bin/env node' : ''),
        },
      },
    },
  })
}

/** Returns what the script needs of wrangler.toml. */
async function readSettings(): Promise<ReleaseSettings> {
  const { unstable_getMiniflareWorkerOptions } = await import('wrangler')
  const {
    cronTriggers,
    rootPath: _,
    modulesRules: __,
    versionMetadata: ___, // the version of a Worker at Cloudflare; the doctor tells by it how a service is hosted
    ...worker
  } = unstable_getMiniflareWorkerOptions(CONFIG).workerOptions as ReleaseSettings['worker'] & Record<string, unknown>
  if (`${cronTriggers}` !== EVERY_MINUTE) throw new Error(`Only the cron trigger ${EVERY_MINUTE} can be served.`)
  const { env } = parse(readFileSync(CONFIG, 'utf8')) as { env: Record<string, { vars?: Record<string, string> }> }
  const environments = Object.entries(env).map(([name, { vars = {} }]) => [name, vars] as const)
  return { worker, environments: Object.fromEntries(environments) }
}

/** Returns the software bill of materials of the service (CycloneDX). */
async function readSbom(): Promise<string> {
  const format = ['--sbom-format', 'cyclonedx', '--sbom-type', 'application']
  const { code, output } = await runCommand('npm', ['sbom', '--omit', 'dev', ...format], true)
  if (code !== 0) throw new Error(`The bill of materials cannot be written.\n${output.trim()}`)
  return output
}

function packageFile(): object {
  const { name, version, description, license, engines, devDependencies } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  )
  return {
    ...{ name, version, description, license, type: 'module', engines },
    bin: { [name]: './serve.js', ats: './ats.js' },
    dependencies: { miniflare: devDependencies.miniflare },
  }
}
