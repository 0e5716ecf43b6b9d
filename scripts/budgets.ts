import { execFile, execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { bundleModules } from './bundle-modules.ts'

// `npm run budgets`: measures the bundle size with its WebAssembly, and the CPU time of a start-up relative to an empty
// app with the same libraries; `wrangler check startup` profiles both. Also the size of the largest page's scripts, and
// the lines of each folder, and the width of comments. With `--lines`, only the last two. Exits with code 1 above a
// budget.
// 685 measured without the names of functions.
const BUNDLE_KIB = 692
const STARTUP_RATIO = 1.5
// 92.2 measured: the desks render the terms of each message themselves, and each part of a page contains its own fault.
const PAGE_SCRIPT_KB = 93
const RUNS = 3
/** The width of a line that is a comment, in characters. */
const COMMENT_WIDTH = 120
const WIDE_COMMENT = new RegExp(`^(?=.{${COMMENT_WIDTH + 1}})\\s*(//|/\\*|\\*)`)
/** Lines per folder, without documents and data. Whoever raises a row says why in the same commit. */
const LINES: Record<string, number> = {
  src: 873,
  'src/chain': 5_006,
  'src/config': 949,
  'src/crypto': 373,
  'src/doctor': 859,
  'src/errors': 1_419,
  'src/executor': 5_390,
  'src/generated': 140,
  'src/history': 5_480,
  'src/http': 1_477,
  'src/intake-switches': 113,
  'src/intents': 2_328,
  'src/keeper': 2_821,
  'src/limits': 541,
  'src/live': 2_834,
  'src/mcp': 2_540,
  'src/metrics': 581,
  'src/operations': 7_120,
  'src/payments': 1_499,
  'src/price-providers': 591,
  'src/readiness': 510,
  'src/requests': 208,
  'src/resources': 3_739,
  'src/rpc': 2_331,
  'src/scheduled': 481,
  'src/webhooks': 1_018,
  'packages/protocol': 6_709,
  'packages/client': 3_467,
  'packages/cli': 11_358,
  'packages/python': 6_523,
  web: 14_103,
  reference: 2_731,
  'contracts/src': 12_955,
  'contracts/test': 22_507,
  devnet: 5_489,
  bench: 4_237,
  lab: 1_705,
  rehearsal: 5_012,
  test: 63_874,
  scripts: 6_932,
}

const root = join(import.meta.dirname, '..')
const wrangler = join(dirname(createRequire(import.meta.url).resolve('wrangler/package.json')), 'bin/wrangler.js')
const scratch = mkdtempSync(join(tmpdir(), 'agent-trading-service-budgets-'))
const run = (args: string[]) =>
  promisify(execFile)(process.execPath, [wrangler, ...args], {
    cwd: root,
    env: { ...process.env, CI: '1', WRANGLER_SEND_METRICS: 'false' },
    maxBuffer: 1 << 26,
  })

/**
 * Returns whether every folder is within its row, and no comment too wide. Prints the rows as they would be if each
 * were at the measured figure.
 */
function checkLines(): boolean {
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
    .toString()
    .split('\0')
    .filter(file => /\.\w+$/.test(file) && !/\.(md|json|wasm)$/.test(file) && existsSync(join(root, file)))
  const measured = new Map(Object.keys(LINES).map(folder => [folder, 0]))
  const wide: string[] = []
  for (const file of files) {
    const folder = folderOf(file)
    if (folder === undefined) continue
    const lines = readFileSync(join(root, file), 'utf8').split('\n')
    measured.set(folder, (measured.get(folder) ?? 0) + lines.length - 1)
    if (/\.(ts|tsx|mjs)$/.test(file) && !file.includes('/generated/'))
      wide.push(...lines.flatMap((line, index) => (WIDE_COMMENT.test(line) ? [`${file}:${index + 1}`] : [])))
  }
  const rows = [...measured].map(([folder, lines]) => ({ folder, lines, budget: LINES[folder] ?? 0 }))
  for (const { folder, lines, budget } of rows) {
    const key = /\W/.test(folder) ? `'${folder}'` : folder
    const row = `  ${key}: ${lines.toLocaleString('en').replaceAll(',', '_')},`
    console.log(lines > budget ? `${row} // above its budget of ${budget}` : row)
  }
  const service = rows.filter(({ folder }) => /^src|^packages\/protocol$/.test(folder))
  console.log(`src and packages/protocol: ${service.reduce((sum, { lines }) => sum + lines, 0)} lines`)
  for (const place of wide) console.log(`${place} is a comment of more than ${COMMENT_WIDTH} characters`)
  return wide.length === 0 && rows.every(({ lines, budget }) => lines <= budget)
}

/** Returns the row in which a file counts: a folder of `src`, a package, or one of the other folders with a row. */
const folderOf = (file: string): string | undefined =>
  /^src\/[^/]+(?=\/)|^src(?=\/)/.exec(file)?.[0] ?? Object.keys(LINES).find(folder => file.startsWith(`${folder}/`))

async function bundleKib(): Promise<number> {
  await run(['deploy', '--dry-run', '--minify', '--outdir', scratch])
  const modules = bundleModules(join(scratch, 'index.js')).map(
    ({ contents }) => gzipSync(contents, { level: 9 }).length,
  )
  return modules.reduce((sum, bytes) => sum + bytes, 0) / 1024
}

/**
 * Returns the size of the scripts of the largest page: the entry with one of the chunks that it imports later, each
 * with all that they import. The dry run of `bundleKib` builds them if they are stale.
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

async function checkSizes(): Promise<boolean> {
  const size = await bundleKib()
  const pageScripts = pageScriptKb()
  const [ours, empty] = [await startupMs('wrangler.toml'), await startupMs('bench/empty-app/wrangler.toml')]
  const ratio = ours / empty
  console.log(`bundle    ${size.toFixed(0)} KiB gzip, minified (budget ${BUNDLE_KIB})`)
  console.log(
    `start-up  ${ratio.toFixed(2)} times an empty app with the same libraries (budget ${STARTUP_RATIO}): ${ours.toFixed(0)} ms and ${empty.toFixed(0)} ms of CPU, minimum of ${RUNS} runs`,
  )
  console.log(`pages     ${pageScripts.toFixed(1)} kB of script on the largest page, gzip (budget ${PAGE_SCRIPT_KB})`)
  return size <= BUNDLE_KIB && pageScripts <= PAGE_SCRIPT_KB && ratio <= STARTUP_RATIO
}

try {
  const isWithin = process.argv.includes('--lines') ? checkLines() : await checkSizes()
  if (!isWithin) process.exitCode = 1
} finally {
  rmSync(scratch, { recursive: true, force: true })
}
