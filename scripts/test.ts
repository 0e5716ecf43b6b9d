import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { groups, scaledFiles, slowFiles } from './test-groups.ts'

// `npm test`: the contract tests and the groups of service tests, in parallel, because service tests mostly wait for blocks.
// `npm test -- <vitest arguments>` runs only the selected tests. `--slow` runs what `npm run test:full` adds to `npm test`.
// The output of a parallel process is printed when it exits; the last line counts all tests.

type Counts = { passed: number; failed: number }
/** Which files run, and the size of tests with a variable size; see test-groups.ts. */
type Extent = 'fast' | 'full' | 'selected'

const root = join(import.meta.dirname, '..')
const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
const forge = join(root, 'contracts/tools/forge.mjs')
const args = process.argv.slice(2)
const resultsFolder = mkdtempSync(join(tmpdir(), 'agent-trading-service-test-'))

const testAll = () => inParallel(groups.map(group => () => testGroup('fast', group)))

const testSlow = () => inParallel(groups.map(group => () => testGroup('full', group, [...slowFiles, ...scaledFiles])))

const testSelected = () => inParallel([() => testService('selected', args)])

/** Runs the projects of a group one after another, each in its own process, so that only one of their chains runs. */
async function testGroup(extent: Extent, projects: string[], files: string[] = []): Promise<Counts> {
  const total = { passed: 0, failed: 0 }
  for (const project of projects) {
    const { passed, failed } =
      project === 'contracts'
        ? await testContracts(extent)
        : await testService(extent, [`--project=${project}`, '--passWithNoTests', ...files])
    total.passed += passed
    total.failed += failed
  }
  return total
}

/** Runs all tasks to their end. A task that throws counts as one failed test. */
async function inParallel(tasks: (() => Promise<Counts>)[]): Promise<Counts[]> {
  const results = await Promise.allSettled(tasks.map(task => task()))
  return results.map(result => {
    if (result.status === 'fulfilled') return result.value
    console.error(result.reason)
    return { passed: 0, failed: 1 }
  })
}

/**
 * Runs the Solidity tests. To the full extent, runs the invariants alone, over as many calls as the profile `ci` of
 * contracts/foundry.toml says.
 */
const testContracts = (extent: Extent) =>
  extent === 'full' ? testSolidity(['--match-path', 'test/invariants/*'], { FOUNDRY_PROFILE: 'ci' }) : testSolidity([])

async function testSolidity(selection: string[], env: Record<string, string> = {}): Promise<Counts> {
  const { code, output } = await run([forge, 'test', '--color', 'never', ...selection], env)
  const [, passed = '0', failed = '0'] = /(\d+) tests passed, (\d+) failed/.exec(output) ?? []
  return withExitCode(code, { passed: Number(passed), failed: Number(failed) })
}

async function testService(extent: Extent, selection: string[]): Promise<Counts> {
  const resultFile = join(mkdtempSync(join(resultsFolder, 'vitest-')), 'result.json')
  const { code } = await run(
    [vitest, 'run', '--reporter=default', '--reporter=json', `--outputFile.json=${resultFile}`, ...selection],
    {
      TEST_EXTENT: extent,
      CI: '1',
      WRANGLER_SEND_METRICS: 'false',
      CLOUDFLARE_CF_FETCH_ENABLED: 'false',
    },
  )
  return withExitCode(code, countsOf(resultFile))
}

/** Counts an exit code without a failed test, such as that of an unhandled error, as one failed test. */
const withExitCode = (code: number, counts: Counts): Counts =>
  code !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts

/** Reads vitest's JSON report. A file that could not be loaded has no tests and counts as one failed test. */
function countsOf(resultFile: string): Counts {
  const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(resultFile, 'utf8')) as {
    numPassedTests: number
    numFailedTests: number
    testResults: { status: string; assertionResults: unknown[] }[]
  }
  const notLoaded = testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
  )
  return { passed: numPassedTests, failed: numFailedTests + notLoaded.length }
}

/** Runs a Node script. Returns its exit code and its output, which is printed at the end, or at once if it runs alone. */
function run(scriptAndArgs: string[], env: Record<string, string> = {}) {
  const isAlone = args.length > 0
  return new Promise<{ code: number; output: string }>((resolve, reject) => {
    const child = spawn(process.execPath, scriptAndArgs, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        if (isAlone) process.stdout.write(text)
        output += text
      })
    child.once('error', reject)
    child.once('close', code => {
      if (!isAlone) process.stdout.write(output)
      resolve({ code: code ?? 1, output })
    })
  })
}

let counts: Counts[]
try {
  counts = await (args.length === 0 ? testAll() : args[0] === '--slow' ? testSlow() : testSelected())
} finally {
  rmSync(resultsFolder, { recursive: true, force: true })
}
const sum = (key: keyof Counts) => counts.reduce((total, count) => total + count[key], 0)
console.log(`\n${sum('passed')} passed, ${sum('failed')} failed`)
process.exitCode = sum('failed') > 0 || sum('passed') === 0 ? 1 : 0
