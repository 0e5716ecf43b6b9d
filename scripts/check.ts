import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { environments } from './environments.ts'

// `npm run check`: every check that is not a test. Runs all of them and lists the failures.
const root = join(import.meta.dirname, '..')
const bin = (name: string) => join(root, 'node_modules/.bin', name)
const node = process.execPath

const BUDGETS = 'bundle size and start-up time'
const CLIENT = 'client package'
type Step = [name: string, command: string, args: string[]]

/** Two chains of steps run next to each other: the first is mostly `tsc`, the second is everything else. */
const chains: Step[][] = [
  [
    ['Worker types', bin('wrangler'), ['types', '--include-runtime']],
    ['types of the API', node, ['scripts/generate-client.ts']],
    ['types', bin('tsc'), ['-p', '.']],
    ['types of the API reference', bin('tsc'), ['-p', 'reference/browser']],
    ['types of the pages', bin('tsc'), ['-p', 'web']],
    ['unused code', bin('knip'), ['--no-progress']],
    [CLIENT, node, ['scripts/check-client.ts']],
  ],
  [
    ['format and lint', bin('biome'), ['ci', '--error-on-warnings', '--colors=off', '--max-diagnostics=20']],
    ['generated files are fresh', node, ['scripts/generate-abis.ts', '--check']],
    ['migrations are fresh', node, ['scripts/generate-migrations.ts', '--check']],
    ['skills are fresh', node, ['scripts/generate-skills.ts', '--check']],
    ['WebAssembly of Keccak is fresh', node, ['scripts/generate-keccak.ts', '--check']],
    ['docs/configuration.md and .dev.vars.example are fresh', node, ['scripts/generate-variables.ts', '--check']],
    ['environments are fresh', node, ['scripts/generate-environments.ts', '--check']],
    ['list of licences is fresh', node, ['scripts/generate-licences.ts', '--check']],
    ['lines per folder', node, ['scripts/budgets.ts', '--lines']],
    ['versions agree', node, ['scripts/set-version.ts', '--check']],
    ['Solidity format', node, ['contracts/tools/forge.mjs', 'fmt', '--check']],
    ['Solidity lint', node, ['contracts/tools/forge.mjs', 'lint', 'src', '--deny', 'warnings']],
    // The environments differ only in what the step above compares.
    ...environments
      .slice(-1)
      .map(({ name }): Step => [`${name} deploys (dry run)`, bin('wrangler'), ['deploy', '--dry-run', '--env', name]]),
  ],
]
/** Measures CPU time, so nothing else runs next to it. */
const last: Step = [BUDGETS, node, ['scripts/budgets.ts']]

function run(command: string, args: string[]): Promise<{ ok: boolean; output: string }> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, CI: '1', WRANGLER_SEND_METRICS: 'false', NO_COLOR: '1' }
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], env })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', data => (output += data))
    child.once('error', reject)
    child.once('exit', code => resolve({ ok: code === 0, output }))
  })
}

type LockEntry = { version?: string; optionalDependencies?: Record<string, string> }

/**
 * Returns the optional packages that package-lock.json requires but does not contain. npm leaves them out when its
 * registry lacks a platform's package, and `npm ci` then rejects the lockfile on that platform.
 */
function missingFromLock(): string[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockEntry>
  }
  const missing: string[] = []
  for (const [path, { optionalDependencies = {} }] of Object.entries(packages))
    for (const name of Object.keys(optionalDependencies)) {
      // Node resolves a package from the nearest node_modules upwards.
      const parents = path
        .split('/node_modules/')
        .map((_, index, all) => all.slice(0, all.length - index).join('/node_modules/'))
      const places = [
        ...parents.filter(Boolean).map(parent => `${parent}/node_modules/${name}`),
        `node_modules/${name}`,
      ]
      if (!places.some(place => place in packages)) missing.push(`${name} of ${path || 'the project'}`)
    }
  return missing
}

let failures = 0
function report(name: string, ok: boolean, output: string, seconds?: number) {
  console.log(`${ok ? 'ok    ' : 'FAILED'}  ${name}${seconds === undefined ? '' : ` (${seconds.toFixed(1)} s)`}`)
  if (ok && name !== BUDGETS && name !== CLIENT) return
  if (!ok) failures++
  console.log(output.trim().slice(-6_000).replace(/^/gm, '        '))
}

async function runSteps(steps: Step[]): Promise<void> {
  for (const [name, command, args] of steps) {
    const startedAt = performance.now()
    const { ok, output } = await run(command, args)
    report(name, ok, output, (performance.now() - startedAt) / 1000)
  }
}

await Promise.all(chains.map(runSteps))
await runSteps([last])
const missing = missingFromLock()
report('lockfile is complete for every platform', missing.length === 0, missing.join('\n'))
process.exitCode = failures === 0 ? 0 : 1
