import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { type NpmRegistry, startNpmRegistry } from '../support/npm-registry.ts'
import { clientOf, deployment, newAccount, serviceUrl } from './support.ts'

// Runs docs/for-agents.md and the first trade of docs/cli.md as they are written: every command in bash, every program
// as a file of an empty folder. npm installs from a registry on loopback. Only the URL, the path of the clone, and ids
// are replaced. packages/python runs the section for Python.

const root = join(import.meta.dirname, '../..')
const guide = readFileSync(join(root, 'docs/for-agents.md'), 'utf8')
const scratch = mkdtempSync(join(tmpdir(), 'for-agents-'))
const clone = join(scratch, 'clone')
/** What the way with the command line begins with; it runs once. */
const INSTALL = 'npm install -g @agent-trading-service/cli\n'
/** Key files are made to be slow to decrypt, and each command of `ats` decrypts one. */
const timeout = 300_000
const isLong = inject('isLong')
let registry: NpmRegistry

beforeAll(async () => {
  registry = await startNpmRegistry()
  mkdirSync(join(clone, '.devnet'), { recursive: true })
  writeFileSync(join(clone, '.devnet/deployment.json'), JSON.stringify(deployment))
  expect(guide.split(INSTALL).length - 1).toBe(1)
  await run(scratch, INSTALL)
}, timeout)
afterAll(async () => {
  await registry.close()
  rmSync(scratch, { recursive: true, force: true })
})

/** Returns a section's commands as a script: a block with a file name above it becomes that file. */
function scriptOf(heading: string, text = guide): string {
  const section = text.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const blocks = [...section.matchAll(/(?:`([\w.-]+)`:\n\n)?```(\w+)\n([\s\S]*?)```/g)]
  expect(blocks.length, heading).toBeGreaterThan(0)
  return blocks
    .map(([, file, language, code]) => (file ? `cat > ${file} <<'END'\n${code}END\n` : language === 'sh' ? code : ''))
    .join('\n')
    .replace(INSTALL, '')
    .replace('http://127.0.0.1:8787', serviceUrl)
    .replace('~/agent-trading-service', clone)
}

/** Runs a script in an empty folder, which is also its home, and stops at the first command that fails. */
async function run(folder: string, script: string): Promise<string> {
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: folder,
    env: environment(folder),
  })
  return stdout
}
const environment = (folder: string) => ({
  ...registry.env,
  HOME: folder,
})
const emptyFolder = () => mkdtempSync(join(scratch, 'empty-'))
const TRANSACTION = /^transactionHash +0x[0-9a-f]{64}$/gm
const deploymentScript = () => scriptOf('A deployment to try')

it('a TypeScript developer installs the client, registers and trades', { timeout }, async () => {
  const stdout = await run(emptyFolder(), deploymentScript() + scriptOf('A TypeScript developer'))
  expect(stdout).toMatch(/^agent \d+ opened position (\d+)\nclosed position \1\n$/m)
})

if (isLong)
  it('a model trades through the local server, after a first trade by hand', { timeout }, async () => {
    const folder = emptyFolder()
    const [prepare = '', rest = ''] = scriptOf('A model').split('export ATS_AGENT=1\n')
    const [first = '', server = ''] = rest.split('ats mcp')
    const registered = await run(folder, `${deploymentScript()}${prepare}`)
    const agentId = /^agentId +(\d+)$/m.exec(registered)?.[1] ?? ''
    // Variables of the shell, without the commands that the first script ran.
    const variables = `${deploymentScript()}${prepare.match(/^export .*$/gm)?.join('\n')}\nexport ATS_AGENT=${agentId}\n`
    await run(folder, variables + first)
    const reads = clientOf(newAccount())
    const { positions } = await reads.listPositions({ agentId })
    expect(positions).toMatchObject([{ symbol: 'NVDA' }])

    const transport = new StdioClientTransport({
      command: 'bash',
      args: ['-euo', 'pipefail', '-c', `${variables}exec ats mcp${server}`],
      cwd: folder,
      env: environment(folder),
      stderr: 'ignore',
    })
    const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } })
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { sign: true } }))
    await client.connect(transport)
    const positionId = positions[0]?.positionId
    expect(await client.callTool({ name: 'close', arguments: { positionId } })).toMatchObject({
      structuredContent: { positionId },
    })
    await client.close()
    expect((await reads.listPositions({ agentId })).positions).toEqual([])
  })

it('the first trade and the orders of the command line are as docs/cli.md shows them', { timeout }, async () => {
  const folder = emptyFolder()
  const page = readFileSync(join(root, 'docs/cli.md'), 'utf8')
  const script = scriptOf('A first trade', page)
  const [prepare = '', rest = ''] = script.split('export ATS_AGENT=1\n')
  const start = `${deploymentScript()}export ATS_PASSWORD=secret\n`
  const registered = await run(folder, start + prepare)
  const agentId = /^agentId +(\d+)$/m.exec(registered)?.[1]
  const variables = `${start}${prepare.match(/^export .*$/gm)?.join('\n')}\nexport ATS_AGENT=${agentId}\n`
  const printed = await run(folder, `${variables}${rest}`)
  expect(printed).toMatch(/^equity +[\d.]+ USDC$/m)
  // Opened, reduced and closed.
  expect(printed.match(TRANSACTION)).toHaveLength(3)

  const newest = `$(ats orders -o json | node -p "JSON.parse(require('fs').readFileSync(0)).orders[0].orderId.slice(0, 10)")`
  const orders = scriptOf('Orders', page).replace('0x4d2f31ab', newest)
  const placed = await run(folder, `${variables}ats open NVDA 250\n${orders}`)
  // A purchase, five orders and a cancellation.
  expect(placed.match(TRANSACTION)).toHaveLength(7)
})
