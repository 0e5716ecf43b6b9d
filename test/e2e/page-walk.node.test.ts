import axe from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import type { Account } from '../../devnet/accounts.ts'
import { createScene } from '../support/scene.ts'
import { launchBrowser } from './browser.ts'
import { injectWallet, WALLET_NAME } from './test-wallet.ts'
import { closeContext, openPage } from './watched-page.ts'

// A walk over all pages in each state of readiness, in both themes, from a small phone to a desktop.

const WIDTHS = [320, 390, 768, 1440]
const THEMES = ['light', 'dark'] as const
const MINUTES = 60_000

const serviceUrl = inject('serviceUrl')
const deployment = inject('deployment')
const { register, trade, request } = createScene(serviceUrl, deployment)
const owner = deployment.accounts.agents[8] as Account
let browser: Browser
/** Every page, and what a visitor does on it before it is looked at. */
let states: [path: string, action?: (page: Page) => Promise<void>][]

beforeAll(async () => {
  browser = await launchBrowser()
  const agent = await register(8, 'W'.repeat(64), 'frontier') // as long as a name may be
  const idle = await register(7, 'Idle agent', 'genesis')
  const exits = '-500:5000,-1000:10000,1500:10000'
  const open = await trade(agent, 'open', { symbol: 'META', usdcAmount: '300', exits, note: 'w'.repeat(120) })
  const closed = await trade(agent, 'open', { symbol: 'NVDA', usdcAmount: '60', exits: '-900:10000' })
  await trade(agent, 'reduce', { positionId: closed.positionId, exitBps: '10000' })
  const order = await trade(agent, 'order', { type: 'limit', symbol: 'META', usdcAmount: '50', price: '1', exits })
  const of = `/app/agents/${agent.agentId}`
  const connect = async (page: Page) => {
    await page.getByRole('button', { name: `Connect ${WALLET_NAME}` }).click()
    await page.getByText('connected', { exact: true }).waitFor()
  }
  states = [
    ['/'],
    ['/app/vaults'],
    ['/app/vaults/frontier'],
    ['/app/vaults/genesis'],
    ['/app/leaderboard'],
    ['/app/leaderboard?period=day'],
    ['/app/trades'],
    ['/app/trades?symbol=COIN&vault=genesis'],
    [`/app/compare?agents=${agent.agentId},${idle.agentId}`],
    ['/app/compare'],
    [of],
    [`/app/agents/${idle.agentId}`],
    ['/app/agents/999999'],
    [`${of}/positions/${open.positionId}`],
    [`${of}/positions/${closed.positionId}`],
    [`/app/tokens/META?agent=${agent.agentId}`],
    [`/app/intents/${open.digest}`],
    [`/app/intents/${order.digest}`],
    [`/app/transactions/${open.transactionHash}`],
    [`/app/owner?agent=${agent.agentId}`],
    [`/app/owner?agent=${agent.agentId}`, connect],
    ['/app/depositor?vault=frontier', connect],
    ['/app/status'],
    ['/app/nowhere', page => page.keyboard.press('/')],
  ]
})
afterAll(async () => {
  await browser?.close()
})

type Json = unknown
/** Returns a response with some of its fields replaced, wherever they are in it. */
const withFields = (given: Json, fields: Record<string, Json>): Json =>
  Array.isArray(given)
    ? given.map(each => withFields(each, fields))
    : typeof given !== 'object' || given === null
      ? given
      : Object.fromEntries(
          Object.entries(given).map(([name, value]) => [
            name,
            Object.hasOwn(fields, name) ? fields[name] : withFields(value, fields),
          ]),
        )

const refusal = (code: string) => ({ error: 'It does not respond.', code, remedy: 'Try again.', retryable: true })
const isRead = ({ pathname }: URL) =>
  /^\/(vaults|agents|tokens|trades|leaderboard|prices|intents|transactions)\b/.test(pathname)
const isIndexed = ({ pathname }: URL) => /trades|leaderboard|history|stats|candles/.test(pathname)

/** What each state of readiness does to the responses that pages read. */
const readiness: Record<string, { details: Record<string, Json>; reads?: Record<string, Json>; refused?: string }> = {
  'the node stopped': { details: {}, refused: 'CHAIN_UNREACHABLE' },
  'prices are stale': {
    details: { stale: ['META'] },
    reads: { stale: true, priceStale: true, staleSymbols: ['META'] },
  },
  'a lane is paused': { details: {} },
  'the market is closed': {
    details: { market: 'closed', nextOpen: '4102444800' },
    reads: { stale: true, market: { session: 'closed', nextOpen: '4102444800' } },
  },
  'the index is behind': { details: { lagBlocks: 900, lagSeconds: 1_800 }, reads: { lagBlocks: 900 } },
  'migrations are pending': { details: { pendingMigrations: ['0009_more'] }, refused: 'HISTORY_UNAVAILABLE' },
}

/** Serves pages as in a state of readiness: most of it cannot be had of a service that other tests use. */
async function serveAs(page: Page, what: string): Promise<void> {
  const { details, reads = {}, refused } = readiness[what] ?? { details: {} }
  const ready = await request('/health/ready')
  if (what === 'a lane is paused')
    for (const lane of ready.executor.lanes) Object.assign(lane, { paused: true, pausedFor: 'GAS_PRICE_TOO_HIGH' })
  const report = withFields({ ...ready, problems: [what] }, details)
  const isDown = refused === 'CHAIN_UNREACHABLE'
  const response = isDown ? { ...refusal('NOT_READY'), details: {} } : report
  await page.route('**/health/ready', route => route.fulfill({ status: isDown ? 503 : 200, json: response }))
  await page.route(isRead, async route => {
    if (isDown || (refused && isIndexed(new URL(route.request().url()))))
      return route.fulfill({ status: 502, json: refusal(refused ?? '') })
    const response = await route.fetch()
    await route.fulfill({ response, json: withFields(await response.json(), reads) })
  })
}

type Violation = { id: string; impact: string; nodes: { target: string[] }[] }

async function problemsAt(page: Page): Promise<string[]> {
  const violations = await page.evaluate<Violation[]>(
    `new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))
      .then(() => axe.run(document, { resultTypes: ['violations'] })).then(({ violations }) => violations)`,
  )
  const isWide = await page.evaluate<boolean>('document.documentElement.scrollWidth > window.innerWidth')
  return [
    ...(isWide ? ['scrolls sideways'] : []),
    ...violations
      .filter(({ impact }) => impact !== 'minor')
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`),
  ]
}

it.each(Object.keys(readiness))(
  'while %s, every page works without an exception, a sideways scroll or a barrier, in both themes at every width',
  async what => {
    const found: string[] = []
    let views = 0
    for (const [path, action] of states) {
      const { page, problems } = await openPage(browser)
      await injectWallet(page, owner, deployment)
      await serveAs(page, what)
      await page.goto(serviceUrl + path)
      await page.locator('main h1').waitFor()
      if (what !== 'the node stopped') await action?.(page)
      await page.locator('.skeleton').first().waitFor({ state: 'detached' })
      await page.evaluate("document.querySelectorAll('details').forEach(each => (each.open = true))")
      await page.evaluate(axe.source)
      for (const colorScheme of THEMES)
        for (const width of WIDTHS) {
          await page.emulateMedia({ colorScheme })
          await page.setViewportSize({ width, height: 900 })
          found.push(...(await problemsAt(page)).map(problem => `${path}, ${colorScheme}, ${width} px: ${problem}`))
          views++
        }
      // The walk asks for more than a visitor may.
      found.push(
        ...problems.filter(problem => !/status of (429|50[23])/.test(problem)).map(problem => `${path}: ${problem}`),
      )
      await closeContext(page)
    }
    expect(found).toEqual([])
    expect(views).toBe(24 * WIDTHS.length * THEMES.length)
  },
  15 * MINUTES,
)
