import { parseArgs } from 'node:util'
import type { Browser } from 'playwright-core'
import { freePort } from '../devnet/anvil.ts'
import { startDevnet } from '../devnet/index.ts'
import { startWorker } from '../devnet/worker.ts'
import { unlimitedGas, workerVars } from '../devnet/worker-vars.ts'
import { launchBrowser } from '../test/e2e/browser.ts'
import { createPositionOpener } from './bulk-positions.ts'
import { median } from './load-generator.ts'
import { describeMachine } from './results-file.ts'
import { type BenchAgent, registerAgents } from './signed-intents.ts'

// `npm run bench:pages [-- --agents 500 --trades 500 --visits 3]`: how long each page takes in a new browser context
// until nothing on it is being read any more, and how many elements it has. Exits with code 1 above a limit. On a busy
// machine, compare the requests, the rounds (requests that wait for each other), and the CPU time of the page instead.
const { values } = parseArgs({
  options: {
    agents: { type: 'string', default: '500' },
    trades: { type: 'string', default: '500' },
    visits: { type: 'string', default: '3' },
  },
})
const MAX_MS = 1_500
const MAX_ELEMENTS = 1_500
const AGENTS_PER_BATCH = 50
const SYMBOLS = ['NVDA', 'AAPL', 'MSFT', 'AMZN', 'GOOGL', 'META', 'TSLA']

const port = await freePort()
const devnet = await startDevnet({ baseUrl: `http://127.0.0.1:${port}` })
const worker = await startWorker({ port, vars: { ...workerVars(devnet.deployment), ...unlimitedGas } })
let browser: Browser | undefined
try {
  const agents: BenchAgent[] = []
  while (agents.length < Number(values.agents))
    agents.push(...(await registerAgents(devnet, Math.min(AGENTS_PER_BATCH, Number(values.agents) - agents.length))))
  const trades = Array.from({ length: Number(values.trades) }, (_, index) => ({
    agent: agents[index % agents.length] as BenchAgent,
    symbol: SYMBOLS[Math.floor(index / agents.length)] ?? 'NVDA',
    stopLossBps: -2_000,
  }))
  await createPositionOpener(devnet)(trades)
  await untilIndexed(Number(await devnet.client.getBlockNumber()))
  browser = await launchBrowser()
  console.log(describeMachine())
  for (const path of pathsOf(agents)) await measure(browser, path)
} finally {
  await browser?.close()
  await worker.stop()
  await devnet.stop()
}

/** Reads the list of trades until the index has reached a block. */
async function untilIndexed(block: number): Promise<void> {
  for (;;) {
    const response = await fetch(`${worker.url}/trades?limit=1`)
    const { asOf, lagBlocks } = (await response.json()) as { asOf?: { blockNumber: string }; lagBlocks?: number }
    if (lagBlocks === 0 && Number(asOf?.blockNumber) >= block) return
    await new Promise(resolve => setTimeout(resolve, 500))
  }
}

function pathsOf(agents: readonly BenchAgent[]): string[] {
  const [agent, ...others] = agents.map(({ agentId }) => `${agentId}`)
  return [
    '/',
    '/app/vaults',
    '/app/vaults/genesis',
    '/app/leaderboard?period=all',
    '/app/trades',
    `/app/compare?agents=${[agent, ...others.slice(0, 4)].join()}`,
    `/app/agents/${agent}`,
    `/app/agents/${agent}/positions/1`,
    '/app/tokens/NVDA',
    `/app/owner?agent=${agent}`,
    '/app/depositor',
    '/app/status',
  ]
}

async function measure(browser: Browser, path: string): Promise<void> {
  const times: number[] = []
  let [elements, cpuMs] = [0, 0]
  let requests: Span[] = []
  for (let visit = 0; visit < Number(values.visits); visit++) {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
    const page = await context.newPage()
    const debug = await context.newCDPSession(page)
    await debug.send('Performance.enable')
    requests = []
    page.on('request', request => {
      const span: Span = { start: performance.now(), end: Number.POSITIVE_INFINITY }
      requests.push(span)
      request.response().then(
        () => {
          span.end = performance.now()
        },
        () => {},
      )
    })
    const startedAt = performance.now()
    await page.goto(worker.url + path, { waitUntil: 'commit' })
    await page.locator('main h1').waitFor()
    await page.locator('.skeleton').first().waitFor({ state: 'detached' })
    times.push(performance.now() - startedAt)
    const { metrics } = await debug.send('Performance.getMetrics')
    cpuMs = 1_000 * (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0)
    elements = await page.evaluate<number>('document.querySelectorAll("*").length')
    await context.close()
  }
  const time = median(times)
  const isWithin = time <= MAX_MS && elements <= MAX_ELEMENTS
  if (!isWithin) process.exitCode = 1
  console.log(
    `${path.padEnd(44)} ${time.toFixed(0).padStart(6)} ms ${`${elements}`.padStart(6)} elements ${`${requests.length}`.padStart(4)} requests in ${roundsOf(requests)} rounds ${cpuMs.toFixed(0).padStart(6)} ms CPU${isWithin ? '' : '  above a limit'}`,
  )
}

/** When a request was made and when its response began, in milliseconds. */
type Span = { start: number; end: number }

/** Returns how many requests one after another a page waits for. */
function roundsOf(requests: readonly Span[]): number {
  const rounds: number[] = []
  for (const { start } of requests)
    rounds.push(1 + Math.max(0, ...rounds.filter((_, index) => (requests[index]?.end ?? start) < start)))
  return Math.max(0, ...rounds)
}
