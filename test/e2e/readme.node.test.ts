import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'

// Runs the README's examples as they are.

const root = join(import.meta.dirname, '../..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const blockAfter = (heading: string, language: string) => {
  const section = readme.split(`## ${heading}\n`)[1] ?? ''
  return new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(section)?.[1] ?? ''
}
const run = promisify(execFile)
const deployment = inject('deployment')
let scratch: string
let env: NodeJS.ProcessEnv

beforeAll(() => {
  scratch = mkdtempSync(join(root, '.devnet-readme-'))
  env = {
    ...process.env,
    BASE: inject('serviceUrl'),
    PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}`,
    ATS_HOME: scratch,
    ATS_PASSWORD: 'for the test',
    ATS_URL: inject('serviceUrl'),
    ATS_KEY: 'first',
  }
})
afterAll(() => {
  rmSync(scratch, { recursive: true, force: true })
})

it('runs the examples: a trade with curl, an event stream and a trade with MCP', async () => {
  // The README's command finds the payer in .devnet/deployment.json, which this chain does not write.
  const script = blockAfter('A first trade with curl', 'sh').replace(
    `require("./.devnet/deployment.json").accounts.payer.privateKey`,
    `"${deployment.accounts.payer.privateKey}"`,
  )
  const shown = `set -euo pipefail\n${script}\necho; echo "AGENT=$AGENT"`
  const { stdout } = await run('bash', ['-c', shown], { cwd: root, env })
  expect(stdout.match(/"transactionHash":"0x[0-9a-f]{64}"/g)).toHaveLength(2)
  expect(stdout).toContain('"symbol":"NVDA"')

  const [, AGENT = ''] = /AGENT=(\d+)/.exec(stdout) ?? []
  const listening = spawn('bash', ['-c', blockAfter('Event streams', 'sh').replace('curl -sN', 'exec curl -sN')], {
    cwd: root,
    env: { ...env, AGENT },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const types: string[] = []
  for await (const line of createInterface(listening.stdout)) {
    types.push(...(line.match(/"type":"\w+"/g) ?? []))
    if (types.length === 2) break
  }
  listening.kill()
  expect(types).toEqual(['"type":"PositionClosed"', '"type":"PositionReduced"'])

  const file = join(scratch, 'trade.mjs')
  writeFileSync(file, blockAfter('The same with MCP', 'ts'))
  const { stdout: answer } = await run(process.execPath, [file], { cwd: root, env: { ...env, AGENT } })
  expect(answer).toMatch(/transactionHash: '0x[0-9a-f]{64}'/)

  const [, promotion = ''] = /`(npx ats promote [^`]*)`/.exec(readme) ?? []
  const early = run('bash', ['-c', promotion], { cwd: root, env: { ...env, AGENT } })
  await expect(early).rejects.toThrow(/cannot be promoted yet: TooFewTrades: 3 of 4 trades so far/)
})
