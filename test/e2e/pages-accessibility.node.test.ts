import axe from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import type { Account } from '../../devnet/accounts.ts'
import { createScene } from '../support/scene.ts'
import { launchBrowser } from './browser.ts'
import { screensOf } from './screens.ts'
import { injectWallet, WALLET_NAME } from './test-wallet.ts'
import { closeContext, openPage } from './watched-page.ts'

// axe on every page and in every state of it that a visitor meets.

const serviceUrl = inject('serviceUrl')
const deployment = inject('deployment')
const { register, trade, request, sign } = createScene(serviceUrl, deployment)
const today = Math.floor(Date.now() / 86_400_000) * 86_400
const HISTORY = {
  checkSeconds: 300,
  days: [
    { day: `${today - 86_400}`, checks: 288, ready: 288, versions: ['1.0.0'] },
    { day: `${today}`, checks: 100, ready: 90, versions: ['1.0.0'] },
  ],
  incidents: [
    { startedAt: `${today}`, endedAt: `${today + 3_000}`, version: '1.0.0', problems: ['no token has a fresh price'] },
  ],
}
let browser: Browser
let paths: string[]
let agentPath: string

beforeAll(async () => {
  browser = await launchBrowser()
  const agent = await register(9, 'Accessible agent with a name that is longer than most', 'frontier')
  const exits = '-500:5000,-1000:10000,1500:10000'
  const note = `A long reason, without a single chance to break the line: ${'w'.repeat(60)}`
  const open = await trade(agent, 'open', { symbol: 'META', usdcAmount: '300', exits, note })
  await trade(agent, 'order', { type: 'trailingStop', positionId: open.positionId, trailPercent: '8' })
  const past = await trade(agent, 'order', { type: 'limit', symbol: 'META', usdcAmount: '50', price: '1', exits })
  const orders = `/agents/${agent.agentId}/orders`
  const { typedData, body } = await request(`${orders}/quote?type=cancel&orderId=${past.orderId}`)
  await request(`${orders}/${past.orderId}/cancel`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, signature: await sign(agent, typedData) }),
  })
  const page = `/app/agents/${agent.agentId}`
  agentPath = page
  paths = [
    '/',
    '/app/vaults',
    '/app/vaults/frontier',
    '/app/leaderboard',
    '/app/trades?vault=frontier',
    `/app/compare?agents=${agent.agentId}`,
    page,
    `${page}/positions/${open.positionId}`,
    `/app/tokens/META?agent=${agent.agentId}`,
    `/app/intents/${open.digest}`,
    `/app/transactions/${open.transactionHash}`,
    `/app/owner?agent=${agent.agentId}`,
    '/app/depositor',
    '/app/status',
    '/app/nowhere',
  ]
})
afterAll(async () => {
  await browser?.close()
})

type Violation = { id: string; impact: string; nodes: { target: string[] }[] }

/**
 * Returns what is wrong with a page as it is now: what axe finds, minor findings aside, and whether it scrolls
 * sideways.
 */
async function problemsOf(page: Page, what: string): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<{ violations: Violation[] }>(
    `axe.run(document, { resultTypes: ['violations'] })`,
  )
  const isWide = await page.evaluate<boolean>('document.documentElement.scrollWidth > window.innerWidth')
  return [
    ...(isWide ? [`${what} scrolls sideways`] : []),
    ...violations
      .filter(({ impact }) => impact !== 'minor')
      .map(({ id, nodes }) => `${what} ${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`),
  ]
}

async function openAll(page: Page): Promise<void> {
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
  // From the last to the first: one that is open is no longer counted.
  const closed = await page.locator('details:not([open]) > summary').all()
  for (const summary of closed.reverse()) await summary.click()
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
}

it.each(screensOf(inject('isLong')))(
  'every page is accessible in the %s theme at %d px with forced colors %s',
  async (colorScheme, width, forcedColors) => {
    const { page, problems } = await openPage(browser, { colorScheme, forcedColors, viewport: { width, height: 900 } })
    await injectWallet(page, deployment.accounts.agents[9] as Account, deployment)
    await page.route('**/health/history', route => route.fulfill({ json: HISTORY }))
    const found: string[] = []
    for (const path of paths) {
      await page.goto(serviceUrl + path)
      await page.locator('main h1').waitFor()
      const connect = page.getByRole('button', { name: `Connect ${WALLET_NAME}` })
      if (path.startsWith('/app/owner')) await connect.click()
      if (path.startsWith('/app/owner')) await page.getByText('connected', { exact: true }).waitFor()
      await openAll(page)
      found.push(...(await problemsOf(page, path)))
    }
    await page.keyboard.press('/')
    await page.getByRole('dialog').getByRole('combobox').fill('accessible')
    await page.getByRole('option').first().waitFor()
    found.push(...(await problemsOf(page, 'the search')))
    expect(found).toEqual([])
    expect(problems).toEqual([])
    await closeContext(page)
  },
)

const WIDTHS = [320, 390, 768, 900, 1024, 1100, 1440]

it('every page fits into its window from a small phone to a desktop, and cuts neither tables nor amounts', async () => {
  const { page, problems } = await openPage(browser)
  const found: string[] = []
  for (const path of paths) {
    await page.goto(serviceUrl + path)
    await page.locator('main h1').waitFor()
    await page.evaluate("document.querySelectorAll('details').forEach(each => (each.open = true))")
    await page.locator('.skeleton').first().waitFor({ state: 'detached' })
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 })
      const cut = await page.evaluate<
        string[]
      >(`new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(() => {
        const isCut = element => element.scrollWidth > element.clientWidth &&
          (element.matches('.figures dd, .bar') || getComputedStyle(element).overflowX !== 'visible')
        const nameOf = element => element.getAttribute('aria-label') ?? element.textContent
        resolve([document.documentElement, ...document.querySelectorAll('.scroll, .num, .figures dd, .bar')]
          .filter(element => (element === document.documentElement ? element.scrollWidth > innerWidth : isCut(element)))
          .map(element => (element === document.documentElement ? 'the page' : nameOf(element))))
      })))`)
      found.push(...cut.map(what => `${path} at ${width} px: ${what}`))
    }
  }
  expect(found).toEqual([])
  expect(problems).toEqual([])
  await closeContext(page)
})

it.each(screensOf(inject('isLong')))(
  "the owner's desk is accessible while it is used, in the %s theme at %d px with forced colors %s",
  async (colorScheme, width, forcedColors) => {
    const { page, problems } = await openPage(browser, { colorScheme, forcedColors, viewport: { width, height: 900 } })
    const owner = deployment.accounts.agents[9] as Account
    const wallet = await injectWallet(page, owner, deployment)
    await page.route('**/agents/offered-to/*', async route => {
      const { agentId, agent } = await request(agentPath.replace('/app', ''))
      await route.fulfill({ json: { ...(await (await route.fetch()).json()), offers: [{ agentId, agent }] } })
    })
    const found: string[] = []
    const region = (name: string) => page.getByRole('region', { name, exact: true }).first()
    await page.goto(`${serviceUrl}/app/owner?agent=${agentPath.split('/').at(-1)}`)
    await page.getByRole('button', { name: `Connect ${WALLET_NAME}` }).click()
    await region('Accept an offer').getByRole('link').first().waitFor()
    await region('First-loss capital').waitFor()
    const webhooks = region('Webhooks')
    await webhooks.getByRole('button', { name: 'Sign to list them' }).click()
    await webhooks.getByLabel('URL of a new webhook').fill('http://127.0.0.1:9/events')
    await webhooks.getByRole('button', { name: 'Create' }).click()
    await webhooks.getByText('The secret is shown this once.').waitFor()
    const order = region('Place an order')
    await order.getByLabel('Kind of order').selectOption('trailingStop')
    await order.getByLabel('Distance below the peak, %').fill('100')
    const stop = region('Stop buying')
    await stop.getByRole('button', { name: 'Review' }).click()
    await openAll(page)
    found.push(...(await problemsOf(page, 'the review, and the form of an order')))
    await order.getByLabel('Distance below the peak, %').fill('8')
    await order.getByRole('button', { name: 'Review' }).click()
    await order.getByText('You are about to sign').waitFor()
    wallet.failing.set('eth_signTypedData_v4', 'The wallet is locked.')
    await stop.getByRole('button', { name: 'Sign in the wallet' }).click()
    await stop.getByRole('alert').waitFor()
    found.push(...(await problemsOf(page, 'the failure of a wallet, and the review of an order')))
    await stop.getByRole('button', { name: 'Sign in the wallet' }).click()
    await stop.getByText('Done.').waitFor()
    await region('Past messages').getByText('Buying stopped').first().waitFor()
    found.push(...(await problemsOf(page, 'the receipt')))
    await webhooks.getByRole('button', { name: 'Delete' }).click()
    await webhooks.getByText('No webhook yet.').waitFor()
    expect(found).toEqual([])
    expect(problems).toEqual([])
    await closeContext(page)
  },
)

it.each(screensOf(inject('isLong')))(
  'failures are shown accessibly in the %s theme at %d px with forced colors %s',
  async (colorScheme, width, forcedColors) => {
    const { page } = await openPage(browser, { colorScheme, forcedColors, viewport: { width, height: 900 } })
    const found: string[] = []
    await page.goto(`${serviceUrl}/app/agents/999999`)
    await page.getByText('The service does not know this agent.').waitFor()
    found.push(...(await problemsOf(page, 'an unknown agent')))
    const error = {
      error: 'The node does not respond.',
      code: 'RPC_UNAVAILABLE',
      remedy: 'Try again.',
      retryable: true,
    }
    await page.route('**/risk-state', route => route.fulfill({ status: 502, json: error }))
    await page.goto(serviceUrl + agentPath)
    await page.getByText('Could not read the risk state.').waitFor()
    found.push(...(await problemsOf(page, 'a read that fails')))
    await page.goto(`${serviceUrl}/app/vaults/frontier`)
    await page.getByText('Live', { exact: true }).waitFor()
    await page.context().setOffline(true)
    await page.getByRole('alert').first().waitFor()
    found.push(...(await problemsOf(page, 'a lost connection')))
    expect(found).toEqual([])
    await closeContext(page)
  },
)
