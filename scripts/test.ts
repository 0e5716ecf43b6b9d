import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { startDevnet } from '../devnet/index.ts'

// `npm test [-- vitest's arguments]`: the contracts' tests, and the service's against fresh embedded chains. Most of a
// test is waiting for blocks, so groups run beside each other, each on a chain of its own and printed when it is whole.
// With arguments only the tests that they select run, on one chain. The last line counts all.
const root = join(import.meta.dirname, '..')
const args = process.argv.slice(2)
const state = mkdtempSync(join(tmpdir(), 'agent-trading-service-test-'))

type Counts = { passed: number; failed: number }

/** Runs a command in the project's folder; answers its exit code and what it printed, which is shown as it comes or at the end. */
function run(command: string, commandArgs: string[], env: Record<string, string> = {}) {
  const isAlone = args.length > 0
  return new Promise<{ code: number; output: string }>((resolve, reject) => {
    const child = spawn(command, commandArgs, {
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

async function testContracts(): Promise<Counts> {
  const { code, output } = await run(process.execPath, ['contracts/tools/forge.mjs', 'test', '--color', 'never'])
  const [, passed = '0', failed = '0'] = /(\d+) tests passed, (\d+) failed/.exec(output) ?? []
  const counts = { passed: Number(passed), failed: Number(failed) }
  return code !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts
}

async function testService(chainId: number, selection: string[]): Promise<Counts> {
  const folder = mkdtempSync(join(state, 'service-'))
  const deploymentFile = join(folder, 'deployment.json')
  const resultFile = join(folder, 'vitest.json')
  const devnet = await startDevnet({ chainId, deploymentFile })
  try {
    const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
    const { code } = await run(
      process.execPath,
      [vitest, 'run', '--reporter=default', '--reporter=json', `--outputFile.json=${resultFile}`, ...selection],
      {
        TEST_DEPLOYMENT: deploymentFile,
        CI: '1',
        WRANGLER_SEND_METRICS: 'false',
        CLOUDFLARE_CF_FETCH_ENABLED: 'false',
      },
    )
    const counts = countOf(resultFile)
    return code !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts
  } finally {
    await devnet.stop()
  }
}

/** A file that failed to load holds no test, and is a failure all the same. */
function countOf(resultFile: string): Counts {
  const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(resultFile, 'utf8')) as {
    numPassedTests: number
    numFailedTests: number
    testResults: { status: string; assertionResults: unknown[] }[]
  }
  const broken = testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
  )
  return { passed: numPassedTests, failed: numFailedTests + broken.length }
}

const chainId = Number(process.env.CHAIN_ID || 31337)
const projects = (...names: string[]) => names.map(name => `--project=${name}`)

async function testEverything(): Promise<Counts[]> {
  const groups = [
    testService(chainId, projects('worker')),
    testService(chainId, projects('keeper')),
    testContracts().then(async contracts => [
      contracts,
      await testService(chainId, projects('lane', 'node', 'history')),
    ]),
    // The same contracts and the same Worker under the id of a known chain: nothing may depend on the embedded one.
    testService(421614, ['test/integration/trading.test.ts']),
  ]
  // A group that breaks does not leave the others running behind it.
  const results = await Promise.allSettled(groups)
  return results.flatMap(result => {
    if (result.status === 'fulfilled') return result.value
    console.error(result.reason)
    return { passed: 0, failed: 1 }
  })
}

let counts: Counts[]
try {
  counts = args.length === 0 ? await testEverything() : [await testService(chainId, args)]
} finally {
  rmSync(state, { recursive: true, force: true })
}
const sum = (key: keyof Counts) => counts.reduce((total, count) => total + count[key], 0)
console.log(`\n${sum('passed')} passed, ${sum('failed')} failed`)
process.exitCode = sum('failed') > 0 || sum('passed') === 0 ? 1 : 0
