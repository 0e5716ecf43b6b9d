import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import {
  type Extent,
  FAST_BLOCK_MS,
  fastBlockFiles,
  maxParallel,
  processes,
  releaseFiles,
  scaledFiles,
  slowFiles,
} from './test-projects.ts'

// `npm test`: the contract tests and the projects of service tests, a few processes at a time, because service tests
// mostly wait for blocks. `npm test -- <vitest arguments>` runs only the selected tests. `--block-time 100`,
// which goes with all others, makes the embedded chains produce a block every 100 ms. `--slow` runs what CI adds to
// `npm test`; `--release` runs the rest; `--long` runs the tests of a variable size at full size, or of the files that
// follow it. The output of a parallel process is printed when it exits. The last lines name the failures and count all
// tests.

/** `failures` holds one entry per failed test: its name, and why it failed. */
type Results = { passed: number; failures: string[] }

const root = join(import.meta.dirname, '..')
const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
const forge = join(root, 'contracts/tools/forge.mjs')
const args = process.argv.slice(2)
const paceAt = args.indexOf('--block-time')
if (paceAt >= 0) process.env.TEST_BLOCK_TIME_MS = args.splice(paceAt, 2)[1]
// Compiled code of vitest, wrangler and the scripts, because tests start many processes.
process.env.NODE_COMPILE_CACHE ??= join(root, 'node_modules/.cache/node-compile')
const resultsFolder = mkdtempSync(join(tmpdir(), 'agent-trading-service-test-'))

process.env.SHARED_BUILDS = join(resultsFolder, 'builds')

/** Runs all processes of an extent. */
function testAll(extent: keyof typeof processes): Promise<Results> {
  const files = { fast: [], slow: slowFiles, release: releaseFiles, long: scaledFiles() }[extent]
  const onFastBlocks = () => testService('selected', fastBlockFiles, { TEST_BLOCK_TIME_MS: FAST_BLOCK_MS })
  return inParallel(
    maxParallel[extent],
    [
      ...processes[extent].map(projects => () => testProjects(extent, projects, files)),
      ...(extent === 'slow' ? [onFastBlocks] : []),
    ],
    extent === 'fast' ? 2 : undefined,
  )
}

/**
 * Builds the client's types and what the Worker serves, once and before any service starts: a later build would change
 * what a running one serves.
 */
async function buildPages(): Promise<void> {
  for (const script of ['generate-client.ts', 'build-web.ts', 'build-reference.ts']) {
    const { code, output } = await run([join(root, 'scripts', script)], {})
    if (code !== 0) throw new Error(`scripts/${script} failed:\n${output}`)
  }
}

/** Runs the tests of projects in a process of their own, each with a chain of its own. */
const testProjects = (extent: Extent, projects: string[], files: string[]): Promise<Results> =>
  projects.includes('contracts')
    ? testContracts(extent)
    : testService(extent, [...projects.map(name => `--project=${name}`), '--passWithNoTests', ...files])

/**
 * Runs all tasks to their end, some at a time, and only `atFirst` of them until one has ended. A task that throws
 * counts as one failed test.
 */
async function inParallel(limit: number, tasks: (() => Promise<Results>)[], atFirst = limit): Promise<Results> {
  const results: Results[] = []
  const first = Promise.withResolvers<void>()
  async function work(_: unknown, worker: number) {
    if (worker >= atFirst) await first.promise
    for (let task = tasks.shift(); task !== undefined; task = tasks.shift()) {
      results.push(await task().catch((error: unknown) => ({ passed: 0, failures: [String(error)] })))
      first.resolve()
    }
  }
  await Promise.all(Array.from({ length: limit }, work))
  return sumOf(results)
}

const sumOf = (results: Results[]): Results => ({
  passed: results.reduce((total, { passed }) => total + passed, 0),
  failures: results.flatMap(({ failures }) => failures),
})

/** Runs the Solidity tests. A profile of contracts/foundry.toml says how many random inputs and calls they make. */
async function testContracts(extent: Extent): Promise<Results> {
  const env = { FOUNDRY_PROFILE: extent === 'long' ? 'long' : 'fast' }
  const { code, output } = await run([forge, 'test', '--threads', '1', '--color', 'never'], env)
  const passed = /(\d+) tests passed/.exec(output)?.[1] ?? '0'
  // forge prints a failure in its suite and again in a summary.
  const failures = [...new Set(output.match(/^\[FAIL.*$/gm))]
  return withExitCode('forge test', code, { passed: Number(passed), failures })
}

async function testService(extent: Extent, selection: string[], env: Record<string, string> = {}): Promise<Results> {
  await pagesAreBuilt
  const resultFile = join(mkdtempSync(join(resultsFolder, 'vitest-')), 'result.json')
  const { code } = await run(
    [vitest, 'run', '--reporter=default', '--reporter=json', `--outputFile.json=${resultFile}`, ...selection],
    {
      TEST_EXTENT: extent,
      CI: '1',
      WRANGLER_SEND_METRICS: 'false',
      CLOUDFLARE_CF_FETCH_ENABLED: 'false',
      ...env,
    },
  )
  return withExitCode(`vitest ${selection.join(' ')}`, code, resultsOf(resultFile))
}

/** Counts an exit code without a failed test, such as that of an unhandled error, as one failed test. */
const withExitCode = (command: string, code: number, results: Results): Results =>
  code !== 0 && results.failures.length === 0
    ? { ...results, failures: [`${command} exited with ${code}; its output is above.`] }
    : results

/** Reads vitest's JSON report. A file that could not be loaded has no tests and counts as one failed test. */
function resultsOf(resultFile: string): Results {
  const { numPassedTests, testResults } = JSON.parse(readFileSync(resultFile, 'utf8')) as {
    numPassedTests: number
    testResults: {
      name: string
      status: string
      message: string
      assertionResults: { status: string; fullName: string; failureMessages: string[] }[]
    }[]
  }
  const failures = testResults.flatMap(({ name, status, message, assertionResults }) => {
    const file = relative(root, name)
    if (status === 'failed' && assertionResults.length === 0) return [`${file} could not be loaded: ${message}`]
    return assertionResults
      .filter(test => test.status === 'failed')
      .map(test => `${file} > ${test.fullName}\n${test.failureMessages.join('\n')}`)
  })
  return { passed: numPassedTests, failures }
}

/**
 * Runs a Node script. Returns its exit code and its output, which is printed at the end, or at once if it runs alone.
 */
function run(scriptAndArgs: string[], env: Record<string, string> = {}) {
  const isAlone = args.length > 0 && !['--slow', '--release', '--long'].includes(args.join(' '))
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

const pagesAreBuilt = buildPages()

function testWhatIsAsked(): Promise<Results> {
  const [option, ...files] = args
  if (option === undefined) return testAll('fast')
  if (option !== '--slow' && option !== '--release' && option !== '--long') return testService('selected', args)
  if (files.length > 0) return testService(option === '--long' ? 'long' : 'selected', files)
  return testAll(option === '--slow' ? 'slow' : option === '--release' ? 'release' : 'long')
}

let results: Results
try {
  results = await testWhatIsAsked()
} finally {
  rmSync(resultsFolder, { recursive: true, force: true })
}
const { passed, failures } = results
for (const failure of failures) console.log(`\nFAILED ${failure}`)
console.log(`\n${passed} passed, ${failures.length} failed`)
process.exitCode = failures.length > 0 || passed === 0 ? 1 : 0
