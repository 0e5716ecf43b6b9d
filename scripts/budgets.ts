import { execFile } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { bundleModules } from './bundle-modules.ts'

// `npm run budgets`: measures the bundle size with its WebAssembly, and the CPU time of a start-up relative to an empty app with the same
// libraries; `wrangler check startup` profiles both. Also the size of the largest page's scripts. Exits with code 1 above a budget.
const BUNDLE_KIB = 700
const STARTUP_RATIO = 1.5
// 91.2 measured: the desks render the terms of each message themselves, and each part of a page contains its own fault.
const PAGE_SCRIPT_KB = 92
const RUNS = 3

const root = join(import.meta.dirname, '..')
const wrangler = join(dirname(createRequire(import.meta.url).resolve('wrangler/package.json')), 'bin/wrangler.js')
const scratch = mkdtempSync(join(tmpdir(), 'agent-trading-service-budgets-'))
const run = (args: string[]) =>
  promisify(execFile)(process.execPath, [wrangler, ...args], {
    cwd: root,
    env: { ...process.env, CI: '1', WRANGLER_SEND_METRICS: 'false' },
    maxBuffer: 1 << 26,
  })

async function bundleKib(): Promise<number> {
  await run(['deploy', '--dry-run', '--minify', '--outdir', scratch])
  const modules = bundleModules(join(scratch, 'index.js')).map(
    ({ contents }) => gzipSync(contents, { level: 9 }).length,
  )
  return modules.reduce((sum, bytes) => sum + bytes, 0) / 1024
}

/**
 * Returns the size of the scripts of the largest page: the entry with one of the chunks that it imports later, each with all that
 * they import. The dry run of `bundleKib` builds them if they are stale.
 */
function pageScriptKb(): number {
  const folder = join(root, 'public/app')
  const files = new Map(
    globSync('assets/*.js', { cwd: folder }).map(file => [basename(file), readFileSync(join(folder, file), 'utf8')]),
  )
  const entry = [...files.keys()].find(name => name.startsWith('index-')) ?? ''
  const importsOf = (name: string, pattern: RegExp) =>
    [...(files.get(name)?.matchAll(pattern) ?? [])].flatMap(([, imported = '']) =>
      files.has(imported) ? imported : [],
    )
  const withImports = (name: string, pattern: RegExp, seen = new Set<string>()): Set<string> => {
    if (seen.has(name)) return seen
    seen.add(name)
    for (const imported of importsOf(name, pattern)) withImports(imported, pattern, seen)
    return seen
  }
  const always = withImports(entry, STATIC_IMPORT)
  const pages = importsOf(entry, LATER_IMPORT).map(page => withImports(page, ANY_IMPORT, new Set(always)))
  const sizeOf = (names: Iterable<string>) =>
    [...names].reduce((sum, name) => sum + gzipSync(files.get(name) ?? '', { level: 9 }).length, 0)
  return Math.max(...pages.map(sizeOf)) / 1_000
}

const STATIC_IMPORT = /(?:from|import)\s*["'`]\.\/([\w-]+\.js)["'`]/g
const LATER_IMPORT = /import\(\s*["'`]\.\/([\w-]+\.js)["'`]/g
const ANY_IMPORT = /(?:from|import)\s*\(?\s*["'`]\.\/([\w-]+\.js)["'`]/g

type Profile = { nodes: { id: number; callFrame: { functionName: string } }[]; samples: number[]; timeDeltas: number[] }

/** Returns the CPU time of a start-up in milliseconds, without idle time: the minimum of several runs. */
async function startupMs(config: string): Promise<number> {
  const runs: number[] = []
  for (let index = 0; index < RUNS; index++) {
    const outfile = join(scratch, 'startup.cpuprofile')
    await run(['check', 'startup', '--config', config, '--args=--minify', '--outfile', outfile])
    const { nodes, samples, timeDeltas }: Profile = JSON.parse(readFileSync(outfile, 'utf8'))
    const idle = new Set(nodes.filter(({ callFrame }) => callFrame.functionName === '(idle)').map(({ id }) => id))
    const active = samples.reduce((sum, id, at) => sum + (idle.has(id) ? 0 : (timeDeltas[at] ?? 0)), 0)
    runs.push(active / 1000)
  }
  return Math.min(...runs)
}

try {
  const size = await bundleKib()
  const pageScripts = pageScriptKb()
  const [ours, empty] = [await startupMs('wrangler.toml'), await startupMs('bench/empty-app/wrangler.toml')]
  const ratio = ours / empty
  console.log(`bundle    ${size.toFixed(0)} KiB gzip, minified (budget ${BUNDLE_KIB})`)
  console.log(
    `start-up  ${ratio.toFixed(2)} times an empty app with the same libraries (budget ${STARTUP_RATIO}): ${ours.toFixed(0)} ms and ${empty.toFixed(0)} ms of CPU, minimum of ${RUNS} runs`,
  )
  console.log(`pages     ${pageScripts.toFixed(1)} kB of script on the largest page, gzip (budget ${PAGE_SCRIPT_KB})`)
  if (size > BUNDLE_KIB || pageScripts > PAGE_SCRIPT_KB || ratio > STARTUP_RATIO) process.exitCode = 1
} finally {
  rmSync(scratch, { recursive: true, force: true })
}
