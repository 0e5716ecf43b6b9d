import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { generatePrivateKey } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { type Ats, createAts } from '../support/ats.ts'
import type { Body } from '../support/body.ts'

// The packed tarballs of the client and of `ats`, in an empty folder. It has the dependencies that the packages declare, and
// no others; they are links into the repository's, so that the test needs no registry.

const root = join(import.meta.dirname, '../..')
const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'packed-'))
const modules = join(folder, 'node_modules')
const bin = join(modules, '@agent-trading-service/cli/bin/ats.js')
const packages = ['client', 'cli']

/** Node 20, if this machine has one; the project itself runs on Node 24. */
const node20 = (process.env.PATH ?? '')
  .split(':')
  .map(path => join(path, 'node'))
  .find(path => versionOf(path)?.startsWith('v20.'))

function versionOf(node: string): string | undefined {
  try {
    return execFileSync(node, ['--version']).toString()
  } catch {
    return undefined
  }
}

beforeAll(async () => {
  const npm = join(dirname(process.execPath), process.platform === 'win32' ? 'npm.cmd' : 'npm')
  const env = { ...process.env, PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}` }
  const dependencies = new Set<string>()
  for (const name of packages) {
    const source = join(root, 'packages', name)
    const { stdout } = await run(versionOf(npm) ? npm : 'npm', ['pack', '--json', '--pack-destination', folder], {
      cwd: source,
      env,
    })
    const [{ filename }] = JSON.parse(stdout.slice(stdout.lastIndexOf('\n[') + 1))
    const target = join(modules, '@agent-trading-service', name)
    mkdirSync(target, { recursive: true })
    await run('tar', ['-xzf', join(folder, filename), '-C', target, '--strip-components=1'])
    const manifest = JSON.parse(readFileSync(join(target, 'package.json'), 'utf8'))
    for (const each of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })) dependencies.add(each)
  }
  for (const each of dependencies) {
    const link = join(modules, each)
    mkdirSync(dirname(link), { recursive: true })
    if (!each.startsWith('@agent-trading-service/')) symlinkSync(join(root, 'node_modules', each), link)
  }
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const versions: [name: string, node: string | undefined][] = [
  ['Node 20', node20],
  ['Node 24', process.execPath],
]

describe.each(versions)('on %s', (name, node) => {
  let ats: Ats
  beforeAll(async () => {
    ats = createAts({ ATS_URL: inject('serviceUrl'), ATS_KEY: 'trader' }, { node: node ?? '', bin })
    if (node === undefined) return
    await ats.importKey('trader', generatePrivateKey())
    await ats.importKey('payer', inject('deployment').accounts.payer.privateKey)
  })
  afterAll(() => ats.remove())

  it.skipIf(node === undefined)('registers, opens, changes and closes from the command line', async () => {
    const { agentId } = await ats.json(['register', '--name', `packed ${name}`, '--payer', 'payer'])
    const agent = ['--agent', agentId]
    const { positionId } = await ats.json(['open', 'NVDA', '250', ...agent])
    await ats.json(['ladder', positionId, '--exits', '-500:10000', ...agent])
    const { transactionHash } = await ats.json(['close', positionId, ...agent])
    expect(transactionHash).toMatch(/^0x[0-9a-f]{64}$/)
  })

  it.skipIf(node === undefined)('does the same through the stdio server', async () => {
    const args = [bin, 'mcp', '--allow', 'trade', '--payer', 'payer']
    const transport = new StdioClientTransport({ command: node ?? '', args, env: ats.env, stderr: 'ignore' })
    const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } })
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { sign: true } }))
    await client.connect(transport)
    const call = async (tool: string, input: Record<string, unknown>): Promise<Body> => {
      const { isError, content } = (await client.callTool({ name: tool, arguments: input })) as Body
      expect({ isError: isError ?? false, text: content[0].text }).toMatchObject({ isError: false })
      return JSON.parse(content[0].text)
    }
    await call('register', { vault: 'genesis', name: `packed server ${name}` })
    const { positionId } = await call('trade', { symbol: 'NVDA', usdcAmount: '250' })
    await call('set_ladder', { positionId, exits: [{ triggerBps: -500, exitBps: 10_000 }] })
    expect((await call('close', { positionId })).transactionHash).toMatch(/^0x/)
    await client.close()
  })

  it.skipIf(node === undefined)('trades with the client package', async () => {
    const program = `
      import { createClient } from '@agent-trading-service/client'
      import { createPayer } from '@agent-trading-service/client/pay'
      import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
      const account = privateKeyToAccount(generatePrivateKey())
      const client = createClient({ baseUrl: process.env.ATS_URL, account })
      const { registrationFee, x402 } = await client.getRegistrationQuote()
      const payer = createPayer({
        account: privateKeyToAccount(process.env.PAYER),
        chainId: Number(x402.network.split(':')[1]),
        asset: registrationFee.tokenAddress,
        maxAmount: BigInt(registrationFee.amount),
      })
      const metadataURI = 'https://agents.example/agent.json'
      const { agentId } = await client.register({ vault: 'genesis', name: 'packed client', metadataURI, payer })
      const agent = client.agent(agentId)
      const exits = [{ triggerBps: -800, exitBps: 10000 }]
      const { positionId } = await agent.open({ symbol: 'NVDA', usdcAmount: '250', exits })
      await agent.setLadder({ positionId, exits: [{ triggerBps: -500, exitBps: 10000 }] })
      console.log((await agent.close({ positionId })).transactionHash)`
    const file = join(folder, 'trade.mjs')
    writeFileSync(file, program)
    const PAYER = inject('deployment').accounts.payer.privateKey
    const { stdout } = await run(node ?? '', [file], { cwd: folder, env: { ...ats.env, PAYER } })
    expect(stdout).toMatch(/^0x[0-9a-f]{64}\n$/)
  })
})
