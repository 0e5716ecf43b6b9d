import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, inject, it } from 'vitest'
import { launchBrowser } from './browser.ts'
import { openPage } from './watched-page.ts'

const script = join(import.meta.dirname, '../../scripts/demo.ts')

/** Runs the demo, which waits before the price falls and before it ends; looks at the agent's page meanwhile. */
async function watchDemo(chainId: number, look: (page: string, fall: () => void) => Promise<void>): Promise<string> {
  const demo = spawn(process.execPath, [script, '--watch'], {
    env: { ...process.env, CHAIN_ID: `${chainId}` },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  const page = Promise.withResolvers<string>()
  const closed = once(demo, 'close').then(([code]) => {
    page.reject(new Error(`The demo exited with code ${code} before the price fell.`))
    return code
  })
  createInterface({ input: demo.stdout }).on('line', line => {
    lines.push(line)
    const [, url] = /watch it at (\S+)/.exec(line) ?? []
    if (url !== undefined) page.resolve(url)
  })
  const pressEnter = () => demo.stdin.write('\n')
  try {
    await look(await page.promise, pressEnter)
    pressEnter()
    expect(await closed).toBe(0)
    return lines.join('\n')
  } finally {
    demo.kill()
  }
}

/** Opens the page of the demo's agent, and sees its stop-loss fire without a reload. */
async function seeTheStopLoss(url: string, fall: () => void): Promise<void> {
  const browser = await launchBrowser()
  try {
    const { page, problems } = await openPage(browser)
    let loads = 0
    page.on('load', () => loads++)
    await page.goto(url)
    await page.getByRole('heading', { level: 1, name: 'demo agent' }).waitFor()
    await page.getByText('Stop-loss waits for the price to fall').waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    fall()
    await page.getByText('No open position.').waitFor()
    const fired = page.getByRole('row').filter({ hasText: 'Stop-loss fired' })
    await fired.waitFor()
    expect(await fired.innerText()).toContain('NVDA')
    expect(loads).toBe(1)
    expect(problems).toEqual([])
  } finally {
    await browser.close()
  }
}

// `npm run test:long` runs it on the embedded chain's own id.
it.each([inject('isLong') ? 31337 : 46630])(
  'the demo agent proves itself on paper, is promoted and is stopped out while its page is open, on chain %d',
  async chainId => {
    const printed = await watchDemo(chainId, seeTheStopLoss)
    const inOrder = [
      `chain id ${chainId}`,
      'paid over x402',
      'CHALLENGE track: allocation 10000 USDC, capitalMode Simulated',
      'position 1, capitalMode Simulated',
      'not yet promoted: TooFewTrades',
      'not yet promoted: FirstLossMissing: shares worth 0 of 6000 USDC',
      'the vault is as before: 1000000 USDC, of which 1000000 USDC idle',
      'the price of the promotion is 6000 USDC at risk',
      'the owner signs LockFirstLoss for shares worth',
      'promotionReadiness: 4 of 4 trades',
      'eligible true',
      'a stranger promotes the agent, in block',
      'FUNDED track: allocation 50000 USDC, capitalMode Real',
      'position 2, capitalMode Real',
      'the vault now holds',
      'the keeper fires the stop-loss',
      "the owner's locked shares paid",
      'tools at',
      'AAPL: ',
      'every step as expected.',
    ]
    expect(inOrder.filter(text => !printed.includes(text))).toEqual([])
    expect(inOrder.toSorted((a, b) => printed.indexOf(a) - printed.indexOf(b))).toEqual(inOrder)
  },
)
