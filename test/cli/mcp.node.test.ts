import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { formatUnits } from 'viem'
import { generatePrivateKey } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest'
import { storePending } from '../../packages/cli/src/trading/pending.ts'
import { startProxy } from '../client/proxy.ts'
import { ATS, type Ats, createAts } from '../support/ats.ts'
import type { Body } from '../support/body.ts'

// The local MCP server, driven over stdio by the official client.

const url = inject('serviceUrl')
const canary = generatePrivateKey()
const payerKey = inject('deployment').accounts.payer.privateKey
let ats: Ats
let frames = ''

beforeAll(async () => {
  ats = createAts({ ATS_URL: url })
  await ats.importKey('trader', canary)
  await ats.importKey('payer', payerKey)
})
afterAll(() => {
  expect(frames).toContain('transactionHash')
  for (const key of [canary, payerKey]) expect(frames).not.toContain(key.slice(2))
  ats.remove()
})

type Answer = { action: 'accept' | 'decline' | 'cancel'; content?: Record<string, boolean> }
const opened: Client[] = []
afterEach(async () => {
  for (const client of opened.splice(0)) await client.close()
})

/** Starts `ats mcp` and connects to it. `answer` is what the user says when asked; without it, the client cannot ask. */
async function start(
  args: string[],
  { answer, mode = 'legacy' }: { answer?: (message: string) => Answer; mode?: Mode } = {},
) {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [ATS, 'mcp', ...args],
    env: ats.env,
    stderr: 'pipe',
  })
  transport.stderr?.on('data', data => (frames += data))
  const client = new Client(
    { name: 'test', version: '1' },
    { capabilities: answer ? { elicitation: {} } : {}, versionNegotiation: { mode } },
  )
  const asked: string[] = []
  if (answer)
    client.setRequestHandler('elicitation/create', ({ params }) => {
      asked.push(params.message)
      return answer(params.message)
    })
  await client.connect(transport)
  const receive = transport.onmessage
  transport.onmessage = message => {
    frames += JSON.stringify(message)
    receive?.(message)
  }
  opened.push(client)
  const call = async (name: string, input: Record<string, unknown>): Promise<{ isError: boolean; body: Body }> => {
    const { isError = false, content } = (await client.callTool({ name, arguments: input })) as Body
    return { isError, body: JSON.parse(content[0].text) }
  }
  return { client, call, asked }
}
type Mode = 'legacy' | { pin: '2026-07-28' }

const yes = (): Answer => ({ action: 'accept', content: { sign: true } })
const SIGNING = ['trade', 'close', 'set_ladder', 'register', 'stop', 'resume']

it('is read-only unless started with --allow trade', async () => {
  const { client, call } = await start([])
  const { tools } = await client.listTools()
  const names = tools.map(({ name }) => name)
  expect(names).toContain('svc_list_vaults')
  expect(names).not.toContain('svc_submit_trade_intent')
  expect(names.filter(name => SIGNING.includes(name))).toEqual([])
  expect(await call('trade', { symbol: 'NVDA', usdcAmount: '10', agentId: '1' })).toMatchObject({
    isError: true,
    body: { code: 'READ_ONLY' },
  })
  expect((await call('svc_list_vaults', {})).body.vaults[0].slug).toBe('genesis')
})

describe.each<[string, Mode]>([
  ['2025-11-25', 'legacy'],
  ['2026-07-28', { pin: '2026-07-28' }],
])('over revision %s', (version, mode) => {
  it('registers, opens, changes, closes and stops, and asks before each signature', async () => {
    const { client, call, asked } = await start(['--allow', 'trade', '--key', 'trader', '--payer', 'payer'], {
      answer: yes,
      mode,
    })
    expect(client.getNegotiatedProtocolVersion()).toBe(version)
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(expect.arrayContaining(SIGNING))
    const { agentId } = (await call('register', { vault: 'genesis', name: `local ${version}` })).body
    expect(agentId).toMatch(/^\d+$/)
    const bought = await call('trade', { symbol: 'NVDA', usdcAmount: '250' })
    expect(bought).toMatchObject({ isError: false, body: { agentId, transactionHash: expect.stringMatching(/^0x/) } })
    const { positionId } = bought.body
    await call('trade', { positionId, usdcAmount: '50' })
    await call('set_ladder', { positionId, exits: [{ triggerBps: -500, exitBps: 10_000 }] })
    const { position } = (await call('svc_get_agent_position', { agentId, positionId })).body
    expect(position).toMatchObject({ usdcCostBasis: '300000000', pendingRules: [{ triggerBps: -500 }] })
    await call('close', { positionId, exitBps: 5000 })
    expect((await call('close', { positionId })).isError).toBe(false)
    expect((await call('stop', { action: 'flatten' })).body.mandate).toMatchObject({ mode: 'reduceOnly' })
    expect(asked).toHaveLength(7)
    expect(asked[1]).toContain(`Buy NVDA for 250 USDC as a new position of agent ${agentId}`)
    expect(asked[1]).toMatch(/Checks: (\d+) of \1 pass/)
  })
})

describe('with an agent', () => {
  let agentId: string
  const allowed = () => ['--allow', 'trade', '--key', 'trader', '--agent', agentId]
  const nonce = async () => (await ats.json(['mandate', '--agent', agentId])).intentNonce
  beforeAll(async () => {
    const args = ['register', '--name', 'second', '--key', 'trader', '--payer', 'payer']
    agentId = (await ats.json(args)).agentId
  })

  it.each<[string, ((message: string) => Answer) | undefined, string]>([
    ['the user declines', () => ({ action: 'decline' }), 'DECLINED'],
    ['the user cancels', () => ({ action: 'cancel' }), 'DECLINED'],
    ['the form says no', () => ({ action: 'accept', content: { sign: false } }), 'DECLINED'],
    ['the client cannot ask', undefined, 'CANNOT_ASK'],
  ])('with an agent signs nothing if %s', async (_, answer, code) => {
    const before = await nonce()
    const { call } = await start(allowed(), answer && { answer })
    const refused = await call('trade', { symbol: 'NVDA', usdcAmount: '10' })
    expect(refused).toMatchObject({ isError: true, body: { code } })
    expect(await nonce()).toBe(before)
  })

  it('with an agent does not ask with --yes, and enforces the limits file, which no tool can write', async () => {
    const path = join(ats.home, 'limits.json')
    const { spentInLast24HoursUsdc: spent } = await ats.json(['limits'])
    const perDayUsdc = formatUnits(BigInt(spent) + 30_000_000n, 6)
    const limits = JSON.stringify({ perTradeUsdc: '20', perDayUsdc, symbols: ['NVDA'] })
    writeFileSync(path, limits, { mode: 0o600 })
    const { client, call } = await start([...allowed(), '--yes'])
    const within = await call('trade', { symbol: 'NVDA', usdcAmount: '20' })
    expect(within.isError).toBe(false)
    const beyond = [
      ['perTradeUsdc', { symbol: 'NVDA', usdcAmount: '20.01' }],
      ['perDayUsdc', { symbol: 'NVDA', usdcAmount: '15' }],
      ['symbols', { symbol: 'AAPL', usdcAmount: '5' }],
    ] as const
    for (const [limit, input] of beyond)
      expect(await call('trade', input)).toMatchObject({
        isError: true,
        body: { code: 'BEYOND_LOCAL_LIMITS', details: { limit } },
      })
    expect((await call('close', { positionId: within.body.positionId })).isError).toBe(false)
    const { tools } = await client.listTools()
    expect(tools.filter(({ name }) => /limit/i.test(name))).toEqual([])
    expect(readFileSync(path, 'utf8')).toBe(limits)
    writeFileSync(path, '{}')
  })

  it('with an agent resumes what is pending before it signs another message of the same kind', async () => {
    const digest = `0x${'5'.repeat(64)}` as const
    const service = await startProxy(url)
    const headers = { 'content-type': 'application/json' }
    service.set({ onRequest: () => ({ status: 200, headers, body: { transactionHash: '0xabc' } }) })
    const path = `/agents/${agentId}/trade-intents`
    storePending(ats.home, service.url, { kind: 'intent', method: 'POST', path, body: {}, digest })
    const pins = JSON.parse(readFileSync(join(ats.home, 'deployments.json'), 'utf8'))
    writeFileSync(join(ats.home, 'deployments.json'), JSON.stringify({ ...pins, [service.url]: pins[url] }))
    const { call } = await start([...allowed(), '--yes'])
    expect(await call('trade', { symbol: 'NVDA', usdcAmount: '5' })).toMatchObject({
      isError: true,
      body: { code: 'PENDING_MESSAGE', remedy: expect.stringContaining('`resume`') },
    })
    expect((await call('resume', {})).body.messages).toMatchObject([{ digest, outcome: 'executed' }])
    const bought = await call('trade', { symbol: 'NVDA', usdcAmount: '5' })
    expect((await call('close', { positionId: bought.body.positionId })).isError).toBe(false)
    await service.stop()
  })

  it('with an agent names the field that is wrong, and the check that fails', async () => {
    const { call } = await start([...allowed(), '--yes'])
    const misspelled = await call('trade', { symbol: 'NVDA', usdcAmount: 250 })
    expect(misspelled.body).toMatchObject({ code: 'INVALID_REQUEST', error: expect.stringContaining('usdcAmount') })
    const tooMuch = await call('trade', { symbol: 'NVDA', usdcAmount: '99999999' })
    expect(tooMuch.body).toMatchObject({ error: expect.stringContaining('The check'), code: expect.any(String) })
  })

  it('with an agent prints a message without the key if it crashes with the key in memory', async () => {
    const crash = 'data:text/javascript,process.on("SIGUSR2",()=>{throw new Error("crashed")})'
    const child = spawn(process.execPath, ['--import', crash, ATS, 'mcp', ...allowed(), '--yes'], { env: ats.env })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
        if (text.includes('signs with 0x')) child.kill('SIGUSR2')
      })
    const code = await new Promise(resolve => child.on('close', resolve))
    expect([code, output]).toEqual([1, expect.stringContaining('ats: crashed')])
    expect(output).not.toContain('    at ')
    frames += output
  })

  it('with an agent does not start without the password of its key', async () => {
    const { code, stdout, stderr } = await ats.run(['mcp', ...allowed()], { env: { ATS_PASSWORD: '' } })
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
    expect(stderr).toContain('PASSWORD_MISSING')
  })
})
