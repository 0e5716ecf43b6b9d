import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Browser } from 'playwright-core'
import { freePort } from '../devnet/anvil.ts'
import { startDevnet } from '../devnet/index.ts'
import { startWorker } from '../devnet/worker.ts'
import { workerVars } from '../devnet/worker-vars.ts'
import { launchBrowser } from '../test/e2e/browser.ts'
import { createScene } from '../test/support/scene.ts'
import { describeMachine, table, writeSection } from './results-file.ts'

// `npm run bench:pages`: measures the sizes of the pages' files, and how long a browser without a cache takes to show
// content.
const RUNS = 7
const MAX_SCRIPT_KB = 80
const MAX_FIRST_CONTENT_MS = 1_000

const machine = describeMachine()
const port = await freePort()
const devnet = await startDevnet({ baseUrl: `http://127.0.0.1:${port}` })
const worker = await startWorker({ port, vars: workerVars(devnet.deployment) })
let browser: Browser | undefined
try {
  const { register, trade } = createScene(worker.url, devnet.deployment)
  const agent = await register(0, 'Measured agent', 'frontier')
  await trade(agent, 'open', { symbol: 'NVDA', usdcAmount: '250', exits: '-800:10000,1500:10000' })
  browser = await launchBrowser()
  const paths = { 'start page': '/', vaults: '/app/vaults', agent: `/app/agents/${agent.agentId}` }
  const rows: string[][] = []
  for (const [name, path] of Object.entries(paths)) {
    const times = []
    for (let run = 0; run < RUNS; run++) times.push(await measure(browser, worker.url + path))
    const [first, whole] = [median(times.map(({ first }) => first)), median(times.map(({ whole }) => whole))]
    rows.push([name, `${first} ms`, `${whole} ms`, first <= MAX_FIRST_CONTENT_MS ? 'met' : 'missed'])
  }
  const kb = scriptKb()
  writeSection(
    'pages',
    [
      '## Pages',
      `\`npm run bench:pages\`: medians of ${RUNS} loads, each in a new browser context without a cache, on the embedded chain. First content is the browser's first contentful paint; all data is shown once no placeholder is left.`,
      `Machine: ${machine}.`,
      table(
        ['file', 'gzip'],
        [
          ...sizes(),
          [
            '**all scripts**',
            `**${kb.toFixed(1)} kB** (at most ${MAX_SCRIPT_KB}: ${kb <= MAX_SCRIPT_KB ? 'met' : 'missed'})`,
          ],
        ],
      ),
      table(['page', 'first content', 'all data', `first content within ${MAX_FIRST_CONTENT_MS} ms`], rows),
    ].join('\n\n'),
  )
} finally {
  await browser?.close()
  await worker.stop()
  await devnet.stop()
}

async function measure(browser: Browser, url: string): Promise<{ first: number; whole: number }> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
  const page = await context.newPage()
  const started = performance.now()
  await page.goto(url, { waitUntil: 'commit' })
  await page.locator('main h1').waitFor()
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
  const whole = Math.round(performance.now() - started)
  const first = await page.evaluate<number>(`performance.getEntriesByName('first-contentful-paint')[0].startTime`)
  await context.close()
  return { first: Math.round(first), whole }
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** The built files, without the hash in their names. */
function sizes(): string[][] {
  const folder = join(import.meta.dirname, '../public/app')
  return globSync('**/*.{js,css,html,woff2}', { cwd: folder })
    .sort()
    .map(file => [
      file.replace(/-[\w-]{8}\./, '.').replace('assets/', ''),
      `${(gzipBytes(join(folder, file)) / 1_000).toFixed(1)} kB`,
    ])
}

function scriptKb(): number {
  const folder = join(import.meta.dirname, '../public/app')
  return globSync('**/*.js', { cwd: folder }).reduce((sum, file) => sum + gzipBytes(join(folder, file)), 0) / 1_000
}

function gzipBytes(file: string): number {
  return gzipSync(readFileSync(file), { level: 9 }).length
}
