import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { generateApi } from 'swagger-typescript-api'
import { generatePrivateKey } from 'viem/accounts'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../../devnet/anvil.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { startWorker, type Worker } from '../../devnet/worker.ts'
import { workerVars } from '../../devnet/worker-vars.ts'

// Third-party tools accept the OpenAPI document of a running Worker: a linter and a client generator.

const root = join(import.meta.dirname, '../..')
// Inside the project, so that generated code finds the project's dependencies.
const folder = join(root, 'dist/openapi-test')
const file = join(folder, 'openapi.json')
let devnet: Devnet
let worker: Worker

beforeAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const port = await freePort()
  // A chain of its own, because two services that use the same keys on one chain stop each other.
  devnet = await startDevnet({ baseUrl: 'https://api-31337.agents.example' })
  // Payments have their own client and tests.
  const vars = { ...workerVars(devnet.deployment), X402_ENABLED: 'false', SUBMISSION_TIMEOUT_MS: '15000' }
  worker = await startWorker({ port, vars })
  const response = await fetch(`${worker.url}/docs/swagger.json`)
  writeFileSync(file, await response.text())
})
afterAll(async () => {
  await worker?.stop()
  await devnet?.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Runs the command of an installed package and returns its exit code and output. */
const run = (name: string, bin: string, args: string[]) =>
  new Promise<{ code: number; output: string; errors: string }>(resolve => {
    const script = join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), bin)
    const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', NO_COLOR: '1' }
    execFile(process.execPath, [script, ...args], { cwd: folder, env, maxBuffer: 2 ** 26 }, (error, output, errors) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), output, errors }),
    )
  })

const tsconfig = (files: string[]) =>
  JSON.stringify({
    compilerOptions: {
      target: 'es2024',
      lib: ['es2024', 'dom', 'dom.iterable'],
      types: ['node'],
      strict: true,
      skipLibCheck: true,
      module: 'esnext',
      moduleResolution: 'bundler',
      outDir: 'out',
      rootDir: '.',
    },
    files,
  })

it("passes Redocly's recommended rules", async () => {
  const args = ['lint', '--extends', 'recommended', '--format', 'json', file]
  const { code, output } = await run('@redocly/cli', 'bin/cli.js', args)
  const { problems, totals } = JSON.parse(output.slice(output.indexOf('{')))
  expect({ code, errors: totals.errors }).toEqual({ code: 0, errors: 0 })
  // The specification has both /agents/by-owner/{owner} and /agents/{agentId}/…. The pattern of the id tells them
  // apart, but this rule ignores patterns.
  const warnings = problems.filter(({ ruleId }: { ruleId: string }) => ruleId !== 'no-ambiguous-paths')
  expect(warnings).toEqual([])
})

it("generates types in which a quote's body is the body to post", async () => {
  // A development dependency of the client, which generates its types from the same document.
  const packageFile = join(root, 'packages/client/package.json')
  const generator = join(dirname(createRequire(packageFile).resolve('openapi-typescript/package.json')), 'bin/cli.js')
  const [types, program] = [join(folder, 'schema.d.ts'), join(folder, 'types.ts')]
  await promisify(execFile)(process.execPath, [generator, file, '-o', types])
  copyFileSync(join(import.meta.dirname, 'client-program/types.ts.txt'), program)
  writeFileSync(join(folder, 'tsconfig.types.json'), tsconfig(['schema.d.ts', 'types.ts']))
  const compiled = await run('typescript', 'bin/tsc', ['-p', 'tsconfig.types.json', '--noEmit'])
  expect(compiled).toEqual({ code: 0, output: '', errors: '' })
})

it('generates a client that type-checks and trades', async () => {
  await generateApi({ fileName: 'api.ts', input: file, output: folder, httpClientType: 'fetch', silent: true })
  copyFileSync(join(import.meta.dirname, 'client-program/trade.ts.txt'), join(folder, 'trade.ts'))
  writeFileSync(join(folder, 'tsconfig.json'), tsconfig(['api.ts', 'trade.ts']))
  const compiled = await run('typescript', 'bin/tsc', ['-p', 'tsconfig.json'])
  expect(compiled).toEqual({ code: 0, output: '', errors: '' })

  const { output, errors } = await new Promise<{ output: string; errors: string }>(resolve => {
    const args = [join(folder, 'out/trade.js'), worker.url, generatePrivateKey()]
    execFile(process.execPath, args, { cwd: folder }, (_, output, errors) => resolve({ output, errors }))
  })
  expect({ output, errors }).toMatchObject({ output: expect.stringContaining('agentId') })
  expect(JSON.parse(output)).toEqual({
    agentId: expect.stringMatching(/^\d+$/),
    status: 'success',
    cost: '120000000',
    ended: 'Closed',
    refusal: 'AGENT_NOT_FOUND',
  })
})
