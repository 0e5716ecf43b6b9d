import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import type { TypedDataDefinition } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { startDevnet } from '../devnet/index.ts'
import { unlimitedGas, workerVars } from '../devnet/worker-vars.ts'
import { createPayer } from '../packages/client/src/pay.ts'
import { parseConfig } from '../src/config/config.ts'
import { type FloodTarget, floodKinds, floodRequests, openSessions, type UnpaidRegistration } from './flood-requests.ts'
import type { LoadReport, LoadResult } from './load-child.ts'
import { median, quantile, startLoadGenerator } from './load-generator.ts'
import { describeMachine, table, writeSection } from './results-file.ts'
import { type BenchAgent, registerAgents } from './signed-intents.ts'
import { startWorkerd } from './workerd.ts'

// `npm run bench:floods [-- --seconds 12 --addresses 1,8 --clients 32 --per-second 2000 --only reads,quotes --print]`:
// measures honest agents alone and under each kind of flood, alternately, on loopback. Prints a table, and writes its
// section of bench/results.md unless `--print` is given. Takes 15 s for each flood of 12 s.
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '12' },
    addresses: { type: 'string', default: '1,8' },
    clients: { type: 'string', default: '32' },
    'per-second': { type: 'string', default: '2000' },
    only: { type: 'string' },
    print: { type: 'boolean', default: false },
  },
})
const seconds = Number(values.seconds)
const clients = Number(values.clients)
const maxPerSecond = Number(values['per-second'])
/** How long the agents are measured without a flood, before the first one and after each. */
const aloneSeconds = seconds / 4
const addressCounts = values.addresses.split(',').map(Number)
const kinds = floodKinds.filter(kind => values.only === undefined || values.only.split(',').includes(kind))

/** The address of the honest agents; floods come from others. */
const HONEST_ADDRESS = '198.51.100.1'
/** Several, because the p99 of one agent would be its slowest submission. */
const HONEST_AGENTS = 4
const BLOCK_MS = 250
/** How many different requests a flood repeats. */
const REQUESTS = 2_000
const UNPAID_REGISTRATIONS = 50
const MAX_FEE = 5_000_000n
/** Limits count per minute, and each flood uses new addresses, so it starts with fresh limits. */
const ADDRESSES_PER_FLOOD = 100

const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${text}`)
const ms = (value: number) => `${value.toFixed(0)} ms`
const percent = (share: number) => `${(100 * share).toFixed(0)} %`

type Position = { agent: BenchAgent; positionId: string }

const machine = describeMachine()
say(machine)
const storage = mkdtempSync(join(tmpdir(), 'agent-trading-service-floods-'))
const devnet = await startDevnet({ blockMs: BLOCK_MS })
const flooder = startLoadGenerator({ isNice: true })
const vars = { ...workerVars(devnet.deployment), ...unlimitedGas, KEEPER_ENABLED: 'false' }
const workerd = await startWorkerd({ vars, persistTo: storage })
try {
  const agents = await registerAgents(devnet, HONEST_AGENTS)
  const positions = await Promise.all(agents.map(async agent => ({ agent, positionId: await open(agent) })))
  const target: Omit<FloodTarget, 'block'> = {
    agentId: `${agents[0]?.agentId}`,
    vault: devnet.deployment.vaults.genesis ?? '',
    unpaid: await Promise.all(Array.from({ length: UNPAID_REGISTRATIONS }, unpaidRegistration)),
  }
  await measure(positions, undefined, 2) // warms up
  const alone = [await measure(positions, undefined, aloneSeconds)]
  say(`alone: ${figure(alone[0]?.results ?? [])}`)
  const floods: { kind: string; addresses: number; under: Measured }[] = []
  for (const kind of kinds) {
    for (const addresses of addressCounts) {
      const firstAddress = floods.length * ADDRESSES_PER_FLOOD
      const senders = { firstAddress, addresses }
      const sessions = kind === 'MCP batches' ? await openSessions(workerd.url, senders) : []
      const block = Number(await devnet.client.getBlockNumber({ cacheTime: 0 }))
      const requests = floodRequests(kind, { target: { ...target, block }, ...senders, sessions, count: REQUESTS })
      const load = {
        origin: workerd.url,
        requests,
        clients,
        maxPerSecond,
        keepBodies: false,
        maxSeconds: seconds,
        repeats: true,
      }
      const under = await measure(positions, flooder.run(load), seconds)
      floods.push({ kind, addresses, under })
      const after = await measure(positions, undefined, aloneSeconds)
      alone.push(after)
      say(
        `${kind} of ${addresses}: ${floodFigure(under.flood)}; ${figure(under.results)}; CPU ${percent(under.cpu)}; alone again: ${figure(after.results)}`,
      )
    }
  }
  const p99Alone = median(alone.map(({ results }) => quantile(results, 0.99)))
  const p50Alone = median(alone.map(({ results }) => quantile(results, 0.5)))
  const rows = floods.map(({ kind, addresses, under }) => [
    kind,
    `${addresses}`,
    floodFigure(under.flood),
    figure(under.results),
    `${(quantile(under.results, 0.99) / p99Alone).toFixed(2)} times`,
    `${under.failed}`,
    percent(under.cpu),
  ])
  const section = [
    '## Floods',
    `\`npm run bench:floods\`: ${HONEST_AGENTS} honest agents fetch a quote, sign it and post it, each in a loop, alone and next to a flood of at most ${maxPerSecond} requests a second from ${clients} parallel clients for ${seconds} s. That is ${maxPerSecond / (parseConfig({}).requestBudgets.address / 60)} times as many reads as the budget of one address pays for. The table lists how many client addresses the flood uses; the agents share another address. There is a block every ${BLOCK_MS / 1000} s. Service, chain, agents and flood share the cores of this machine, and the service has one thread. The flood's process has a low priority, because real floods come from other machines. Its clients wait for each response, and the service delays refusals while agents trade.`,
    `Alone for ${aloneSeconds} s, before the first flood and after each: p50 ${ms(p50Alone)}, p99 ${ms(p99Alone)} (medians of ${alone.length} periods); ${percent(median(alone.map(({ cpu }) => cpu)))} CPU.`,
    `Machine: ${machine}.`,
    table(
      [
        'flood',
        'addresses',
        'requests of the flood',
        'quote and submission',
        'p99 relative to alone',
        'failed submissions',
        'CPU of the service',
      ],
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

async function call(path: string, body?: object) {
  const response = await fetch(`${workerd.url}${path}`, {
    headers: { 'content-type': 'application/json', 'cf-connecting-ip': HONEST_ADDRESS },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

/** Fetches a quote and signs its body. */
async function sign(account: PrivateKeyAccount, path: string) {
  const quote = await call(path)
  if (quote.status !== 200) return { ...quote, signed: undefined }
  const typedData = quote.body.typedData as TypedDataDefinition
  const { EIP712Domain: _, ...types } = typedData.types
  const signature = await account.signTypedData({ ...typedData, types } as TypedDataDefinition)
  return { ...quote, signed: { ...(quote.body.body as object), signature } }
}

/** Fetches a quote, signs it and posts it. */
async function submit({ account }: BenchAgent, path: string, query: string) {
  const quote = await sign(account, `${path}/quote?${query}`)
  return quote.signed === undefined ? quote : call(path, quote.signed)
}

async function open(agent: BenchAgent): Promise<string> {
  const { status, body } = await submit(agent, `/agents/${agent.agentId}/trade-intents`, 'symbol=NVDA&usdcAmount=10')
  if (status !== 201) throw new Error(`The position was not opened: ${JSON.stringify(body)}`)
  return `${body.positionId}`
}

async function unpaidRegistration(): Promise<UnpaidRegistration> {
  const account = privateKeyToAccount(generatePrivateKey())
  const terms = {
    signer: account.address,
    vault: 'genesis',
    name: 'flood',
    metadataURI: 'https://agents.example/flood.json',
  }
  const quote = await sign(account, `/agents/register/quote?${new URLSearchParams(terms)}`)
  if (quote.signed === undefined) throw new Error(`There is no quote: ${JSON.stringify(quote.body)}`)
  const { requirements } = quote.body.x402 as { requirements: never }
  const { chainId, contracts } = devnet.deployment
  const payer = createPayer({ account, chainId, asset: contracts.USDC, maxAmount: MAX_FEE })
  const headers = await payer.pay({ x402Version: 2, resource: { url: '' }, accepts: [requirements] })
  return { body: quote.signed, payment: headers['PAYMENT-SIGNATURE'] ?? '' }
}

/** `cpu` is the service's CPU time per second. */
type Measured = { results: LoadResult[]; failed: number; flood: LoadReport | undefined; cpu: number }

/** Lets each agent add to its position in a loop, until the flood ends or, without a flood, for the given time. */
async function measure(
  positions: readonly Position[],
  flood: Promise<LoadReport> | undefined,
  forSeconds: number,
): Promise<Measured> {
  const results: LoadResult[] = []
  const began = performance.now()
  const usedBefore = workerd.cpuSeconds()
  const loop = async ({ agent, positionId }: Position) => {
    while (performance.now() - began < forSeconds * 1_000) {
      const at = performance.now()
      const path = `/agents/${agent.agentId}/add-intents`
      const { status } = await submit(agent, path, `positionId=${positionId}&usdcAmount=1`)
      results.push({ ms: performance.now() - at, status, at: at - began, body: '' })
    }
  }
  await Promise.all(positions.map(loop))
  const report = await flood
  return {
    results,
    failed: results.filter(({ status }) => status !== 201).length,
    flood: report,
    cpu: (workerd.cpuSeconds() - usedBefore) / ((performance.now() - began) / 1_000),
  }
}

function figure(results: readonly LoadResult[]): string {
  return `p50 ${ms(quantile(results, 0.5))}, p99 ${ms(quantile(results, 0.99))} of ${results.length}`
}

function floodFigure(report: LoadReport | undefined): string {
  if (report === undefined) return 'none'
  const countOf = (is: (status: number) => boolean) => report.results.filter(({ status }) => is(status)).length
  const limited = countOf(status => status === 429)
  const failed = countOf(status => status >= 500)
  const broken = countOf(status => status === 0)
  return [
    `${report.results.length} in ${report.seconds.toFixed(0)} s`,
    `${limited} refused with 429`,
    ...(failed > 0 ? [`${failed} with 5xx`] : []),
    ...(broken > 0 ? [`${broken} connections closed`] : []),
  ].join(', ')
}
