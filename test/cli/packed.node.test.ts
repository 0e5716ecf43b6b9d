import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { generatePrivateKey } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { type Ats, createAts } from '../support/ats.ts'
import type { Body } from '../support/body.ts'
import { node20 } from '../support/node-20.ts'
import { type NpmRegistry, startNpmRegistry } from '../support/npm-registry.ts'

// The packed tarballs of the client and of `ats`, installed by npm in an empty folder from a registry on loopback.

const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'packed-'))
const bin = join(folder, 'node_modules/@agent-trading-service/cli/bin/ats.js')

/** The oldest version that the packages support, and in `npm run test:long` the newest too. */
const versions: [name: string, node: string][] = [
  ['Node 20', node20],
  ...(inject('isLong') ? [['Node 24', process.execPath] as [string, string]] : []),
]

let registry: NpmRegistry
beforeAll(async () => {
  registry = await startNpmRegistry()
  const { tarballs, env } = registry
  await run('npm', ['install', tarballs.client, tarballs.cli], { cwd: folder, env })
})
afterAll(async () => {
  await registry.close()
  rmSync(folder, { recursive: true, force: true })
})

describe.each(versions)('on %s', (name, node) => {
  let ats: Ats
  beforeAll(async () => {
    ats = createAts({ ATS_URL: inject('serviceUrl'), ATS_KEY: 'trader' }, { node, bin })
    await ats.importKey('trader', generatePrivateKey())
    await ats.importKey('payer', inject('deployment').accounts.payer.privateKey)
  })
  afterAll(() => ats.remove())

  it('registers, opens, changes and closes from the command line', async () => {
    const { agentId } = await ats.json(['register', '--name', `packed ${name}`, '--payer', 'payer'])
    const agent = ['--agent', agentId]
    const { positionId } = await ats.json(['open', 'NVDA', '250', ...agent])
    await ats.json(['ladder', positionId, '--exits', '-500:10000', ...agent])
    const { transactionHash } = await ats.json(['close', positionId, ...agent])
    expect(transactionHash).toMatch(/^0x[0-9a-f]{64}$/)
    const { valid } = await ats.json(['verify', 'leaderboard', '--rpc', inject('deployment').rpcUrl])
    expect(valid).toBe(true)
  })

  it('says what a rehearsal needs where there is no clone', async () => {
    const rehearsal = run(node, [bin, 'rehearse', '--market', 'gbm', '--', 'true'], { cwd: folder, env: ats.env })
    await expect(rehearsal).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining('[CLONE_REQUIRED]') })
  })

  it('does the same through the stdio server', async () => {
    const args = [bin, 'mcp', '--allow', 'trade', '--payer', 'payer']
    const transport = new StdioClientTransport({ command: node, args, env: ats.env, stderr: 'ignore' })
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

  it('trades with the client package', async () => {
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
    const { stdout } = await run(node, [file], { cwd: folder, env: { ...ats.env, PAYER } })
    expect(stdout).toMatch(/^0x[0-9a-f]{64}\n$/)
  })
})
