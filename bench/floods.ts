import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import type { TypedDataDefinition } from 'viem'
import { startDevnet } from '../devnet/index.ts'
import { unlimitedGas, workerVars } from '../devnet/worker-vars.ts'
import { type FloodTarget, floodKinds, floodRequests, openSessions } from './flood-requests.ts'
import type { LoadReport } from './load-child.ts'
import { quantile, startLoadGenerator } from './load-generator.ts'
import { describeMachine, table, writeSection } from './results-file.ts'
import { type BenchAgent, registerAgents } from './signed-intents.ts'
import { startWorkerd } from './workerd.ts'

// `npm run bench:floods [-- --seconds 20 --requests 20000 --addresses 1,8 --only reads --print]`: measures an honest agent alone
// and under each kind of flood, on loopback. Every flood ends after `--seconds` or `--requests`. Prints a table, and writes its
// section of bench/results.md unless `--print` is given.
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    requests: { type: 'string', default: '20000' },
    addresses: { type: 'string', default: '1,8' },
    clients: { type: 'string', default: '32' },
    only: { type: 'string' },
    print: { type: 'boolean', default: false },
  },
})
const seconds = Number(values.seconds)
const maxRequests = Number(values.requests)
const clients = Number(values.clients)
const addressCounts = values.addresses.split(',').map(Number)
const kinds = floodKinds.filter(kind => values.only === undefined || kind === values.only)

/** The address of the honest agent; floods come from others. */
const HONEST_ADDRESS = '198.51.100.1'
const BLOCK_MS = 250

const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${text}`)
const ms = (value: number) => `${value.toFixed(0)} ms`

const machine = describeMachine()
say(machine)
const storage = mkdtempSync(join(tmpdir(), 'agent-trading-service-floods-'))
const devnet = await startDevnet({ mineEveryMs: BLOCK_MS })
const flooder = startLoadGenerator()
const vars = { ...workerVars(devnet.deployment), ...unlimitedGas, X402_ENABLED: 'false', KEEPER_ENABLED: 'false' }
const workerd = await startWorkerd({ vars, persistTo: storage })
try {
  const [agent] = (await registerAgents(devnet, 1)) as [BenchAgent]
  const target: FloodTarget = { agentId: `${agent.agentId}`, vault: devnet.deployment.vaults.genesis ?? '' }
  const positionId = await open(agent)
  await measureAgent(agent, positionId, undefined, 2) // warms up
  const alone = await measureAgent(agent, positionId, undefined, seconds)
  say(`alone: ${figure(alone.results)}`)
  const rows: string[][] = []
  for (const kind of kinds) {
    for (const addresses of addressCounts) {
      const sessions = kind === 'MCP batches' ? await openSessions(workerd.url, addresses) : []
      const requests = floodRequests(kind, { target, addresses, sessions, count: maxRequests })
      const flood = flooder.run({ origin: workerd.url, requests, clients, keepBodies: false, maxSeconds: seconds })
      const under = await measureAgent(agent, positionId, flood, seconds)
      const ratio = quantile(under.results, 0.99) / quantile(alone.results, 0.99)
      const row = [kind, `${addresses}`, floodFigure(under.flood), figure(under.results), `${ratio.toFixed(2)} times`]
      rows.push([...row, under.failed === 0 ? '' : `${under.failed} failed`])
      say(row.join(', '))
    }
  }
  const section = [
    '## Floods',
    `\`npm run bench:floods\`: an honest agent fetches a quote, signs it and posts it, in a loop, alone and next to a flood of at most ${maxRequests} requests in ${seconds} s from ${clients} parallel clients. The flood comes from as many client addresses as the table says, the agent from one of its own; a block every ${BLOCK_MS / 1000} s. Alone: ${figure(alone.results)}.`,
    `Machine: ${machine}.`,
    table(
      ['flood', 'addresses', 'requests of the flood', 'quote and submission of the agent', 'p99 relative to alone', ''],
      rows,
    ),
  ].join('\n\n')
  console.log(`\n${section}`)
  if (!values.print) writeSection('floods', section)
} finally {
  flooder.stop()
  await workerd.stop()
  await devnet.stop()
  rmSync(storage, { recursive: true, force: true, maxRetries: 5 })
}

type Sample = { ms: number; status: number; at: number; body: string }

async function call(path: string, body?: object) {
  const response = await fetch(`${workerd.url}${path}`, {
    headers: { 'content-type': 'application/json', 'cf-connecting-ip': HONEST_ADDRESS },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

/** Fetches a quote, signs it and posts it. */
async function submit({ account }: BenchAgent, path: string, query: string) {
  const quote = await call(`${path}/quote?${query}`)
  if (quote.status !== 200) return quote
  const typedData = quote.body.typedData as TypedDataDefinition
  const { EIP712Domain: _, ...types } = typedData.types
  const signature = await account.signTypedData({ ...typedData, types } as TypedDataDefinition)
  return call(path, { ...(quote.body.body as object), signature })
}

async function open(agent: BenchAgent): Promise<string> {
  const { status, body } = await submit(agent, `/agents/${agent.agentId}/trade-intents`, 'symbol=NVDA&usdcAmount=10')
  if (status !== 201) throw new Error(`The position was not opened: ${JSON.stringify(body)}`)
  return `${body.positionId}`
}

/** Lets the agent add to its position in a loop, until the flood ends or, without one, for the given time. */
async function measureAgent(
  agent: BenchAgent,
  positionId: string,
  flood: Promise<LoadReport> | undefined,
  forSeconds: number,
) {
  const results: Sample[] = []
  let failed = 0
  let isOver = false
  const ended = flood?.then(report => {
    isOver = true
    return report
  })
  const began = performance.now()
  const isDue = () => performance.now() - began < forSeconds * 1_000 && !isOver
  do {
    const at = performance.now()
    const { status } = await submit(
      agent,
      `/agents/${agent.agentId}/add-intents`,
      `positionId=${positionId}&usdcAmount=1`,
    )
    results.push({ ms: performance.now() - at, status, at: at - began, body: '' })
    if (status !== 201) failed++
  } while (isDue())
  return { results, failed, flood: await ended }
}

function figure(results: readonly Sample[]): string {
  return `p50 ${ms(quantile(results, 0.5))}, p99 ${ms(quantile(results, 0.99))} of ${results.length}`
}

function floodFigure(report: LoadReport | undefined): string {
  const sent = (report?.results ?? []).filter(result => result !== undefined && result !== null)
  const refused = sent.filter(({ status }) => status === 429).length
  const broken = sent.filter(({ status }) => status === 0 || status >= 500).length
  return `${sent.length} in ${report?.seconds.toFixed(0)} s, ${refused} refused with 429${broken > 0 ? `, ${broken} with 5xx or broken` : ''}`
}
