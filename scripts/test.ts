import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { groups, scaledFiles, slowFiles } from './test-groups.ts'

// `npm test`: the contract tests and the groups of service tests, in parallel, because service tests mostly wait for blocks.
// `npm test -- <vitest arguments>` runs only the selected tests. `--slow` runs what `npm run test:full` adds to `npm test`.
// The output of a parallel process is printed when it exits. The last lines name the failures and count all tests.

/** `failures` holds one entry per failed test: its name, and why it failed. */
type Results = { passed: number; failures: string[] }
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

/** Builds what the Worker serves at /docs, before any test reads it. */
async function buildReference(): Promise<void> {
  const { code, output } = await run([join(root, 'scripts/build-reference.ts')], {})
  if (code !== 0) throw new Error(`The API reference could not be built:\n${output}`)
}

/** Runs the projects of a group one after another, each in its own process, so that only one of their chains runs. */
async function testGroup(extent: Extent, projects: string[], files: string[] = []): Promise<Results> {
  const results: Results[] = []
  for (const project of projects)
    results.push(
      project === 'contracts'
        ? await testContracts(extent)
        : await testService(extent, [`--project=${project}`, '--passWithNoTests', ...files]),
    )
  return sumOf(results)
}

/** Runs all tasks to their end. A task that throws counts as one failed test. */
async function inParallel(tasks: (() => Promise<Results>)[]): Promise<Results> {
  const settled = await Promise.allSettled(tasks.map(task => task()))
  return sumOf(
    settled.map(result =>
      result.status === 'fulfilled' ? result.value : { passed: 0, failures: [String(result.reason)] },
    ),
  )
}

const sumOf = (results: Results[]): Results => ({
  passed: results.reduce((total, { passed }) => total + passed, 0),
  failures: results.flatMap(({ failures }) => failures),
})

/**
 * Runs the Solidity tests. To the full extent, runs the invariants alone, over as many calls as the profile `ci` of
 * contracts/foundry.toml says.
 */
const testContracts = (extent: Extent) =>
  extent === 'full' ? testSolidity(['--match-path', 'test/invariants/*'], { FOUNDRY_PROFILE: 'ci' }) : testSolidity([])

async function testSolidity(selection: string[], env: Record<string, string> = {}): Promise<Results> {
  const { code, output } = await run([forge, 'test', '--color', 'never', ...selection], env)
  const passed = /(\d+) tests passed/.exec(output)?.[1] ?? '0'
  // forge prints a failure in its suite and again in a summary.
  const failures = [...new Set(output.match(/^\[FAIL.*$/gm))]
  return withExitCode('forge test', code, { passed: Number(passed), failures })
}

async function testService(extent: Extent, selection: string[]): Promise<Results> {
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

let results: Results
try {
  await buildReference()
  results = await (args.length === 0 ? testAll() : args[0] === '--slow' ? testSlow() : testSelected())
} finally {
  rmSync(resultsFolder, { recursive: true, force: true })
}
const { passed, failures } = results
for (const failure of failures) console.log(`\nFAILED ${failure}`)
console.log(`\n${passed} passed, ${failures.length} failed`)
process.exitCode = failures.length > 0 || passed === 0 ? 1 : 0
