import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { freePort } from '../../devnet/anvil.ts'
import { startWorker, type Worker } from '../../devnet/worker.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { variables } from '../../scripts/variables.ts'

// What README shows is run as it stands, and its table names what the Worker reads.

const root = join(import.meta.dirname, '../..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const blockAfter = (heading: string, language: string) => {
  const section = readme.split(`## ${heading}\n`)[1] ?? ''
  return new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(section)?.[1] ?? ''
}
const run = promisify(execFile)
const deployment = inject('deployment')
let worker: Worker
let scratch: string
let env: NodeJS.ProcessEnv

beforeAll(async () => {
  const port = await freePort()
  worker = await startWorker({ port, vars: workerVars({ ...deployment, baseUrl: `http://127.0.0.1:${port}` }) })
  scratch = mkdtempSync(join(root, '.devnet-readme-'))
  env = { ...process.env, BASE: worker.url, PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}` }
})
afterAll(async () => {
  await worker?.stop()
  rmSync(scratch, { recursive: true, force: true })
})

it('trades with curl, listens, then trades with MCP, as the README shows', async () => {
  // The README's reader has the devnet's payer in .devnet/deployment.json; here it is named.
  const script = blockAfter('A first trade with curl', 'sh').replace(
    '--name first',
    `--name first --payer ${deployment.accounts.payer.privateKey}`,
  )
  const shown = `set -euo pipefail\n${script}\necho; echo "KEY=$KEY"; echo "AGENT=$AGENT"`
  const { stdout } = await run('bash', ['-c', shown], { cwd: root, env })
  expect(stdout.match(/"transactionHash":"0x[0-9a-f]{64}"/g)).toHaveLength(2)
  expect(stdout).toContain('"symbol":"NVDA"')

  const [, KEY] = /KEY=(0x[0-9a-f]{64})/.exec(stdout) ?? []
  const [, AGENT] = /AGENT=(\d+)/.exec(stdout) ?? []
  const listening = blockAfter('Event streams', 'sh').replace('curl -sN', 'curl -sN --max-time 3')
  const { stdout: events } = await run('bash', ['-c', `${listening}|| [ $? = 28 ]`.replace(/ +#.*\n/, '')], {
    cwd: root,
    env: { ...env, KEY, AGENT },
  })
  expect(events.match(/"type":"\w+"/g)).toEqual(['"type":"PositionClosed"', '"type":"PositionReduced"'])

  const file = join(scratch, 'trade.mjs')
  writeFileSync(file, blockAfter('The same with MCP', 'ts'))
  const { stdout: answer } = await run(process.execPath, [file], { cwd: root, env: { ...env, KEY, AGENT } })
  expect(answer).toMatch(/transactionHash: '0x[0-9a-f]{64}'/)
})

it('names every variable that the Worker reads, and no other', () => {
  const files = ['src/config.ts', 'src/executor/assemble-lane.ts', 'src/context.ts']
  const source = files.map(file => readFileSync(join(root, file), 'utf8')).join('\n')
  const known = new Set(variables.map(({ name }) => name))
  const read = new Set(
    source.match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\bCONTRACTS\b|\bTOKENS\b|\bVAULTS\b|\bDEPLOYMENTS\b/g),
  )
  expect([...known].filter(name => !read.has(name))).toEqual([])
  const notVariables = new Set([
    'CANONICAL_MULTICALL3',
    'SERVICE_NAME',
    'LOCAL_HOSTS',
    'REQUIRED_ELSEWHERE',
    'SUBMISSION_UNKNOWN',
  ])
  const isBinding = (name: string) => /^(EXECUTOR_LANE|EVENT_STREAMS|HISTORY_INDEXER|PAYMENT_LEDGER|MCP_)/.test(name)
  const isRefusal = (name: string) => source.includes(`refuse('${name}'`)
  const unnamed = [...read].filter(name => !known.has(name) && !notVariables.has(name) && !isBinding(name))
  expect(unnamed.filter(name => !isRefusal(name))).toEqual([])
})
