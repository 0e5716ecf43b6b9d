import axe from 'axe-core'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import type { Account } from '../../devnet/accounts.ts'
import { createScene } from '../support/scene.ts'
import { launchBrowser } from './browser.ts'
import { screensOf } from './screens.ts'
import { injectWallet, WALLET_NAME } from './test-wallet.ts'
import { openPage } from './watched-page.ts'

// axe on every page.

const serviceUrl = inject('serviceUrl')
const deployment = inject('deployment')
const { register, trade } = createScene(serviceUrl, deployment)
const today = Math.floor(Date.now() / 86_400_000) * 86_400
const HISTORY = {
  checkSeconds: 300,
  days: [
    { day: `${today - 86_400}`, checks: 288, ready: 288, versions: ['1.0.0'] },
    { day: `${today}`, checks: 100, ready: 90, versions: ['1.0.0'] },
  ],
}
let browser: Browser
let paths: string[]

beforeAll(async () => {
  browser = await launchBrowser()
  const agent = await register(9, 'Accessible agent with a name that is longer than most', 'frontier')
  const exits = '-500:5000,-1000:10000,1500:10000'
  const open = await trade(agent, 'open', { symbol: 'META', usdcAmount: '300', exits })
  const page = `/app/agents/${agent.agentId}`
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

it.each(screensOf(inject('isLong')))(
  'every page is accessible in the %s theme at %d px with forced colors %s',
  async (colorScheme, width, forcedColors) => {
    const { page, problems } = await openPage(browser, { colorScheme, forcedColors, viewport: { width, height: 900 } })
    await injectWallet(page, deployment.accounts.agents[9] as Account, deployment)
    await page.route('**/health/history', route => route.fulfill({ json: HISTORY }))
    const found: string[] = []
    async function check(what: string) {
      await page.evaluate(axe.source)
      const { violations } = await page.evaluate<{ violations: Violation[] }>(
        `axe.run(document, { resultTypes: ['violations'] })`,
      )
      for (const { id, impact, nodes } of violations)
        if (impact !== 'minor') found.push(`${what} ${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`)
    }
    for (const path of paths) {
      await page.goto(serviceUrl + path)
      await page.locator('main h1').waitFor()
      await page.locator('.skeleton').first().waitFor({ state: 'detached' })
      const isWide = await page.evaluate<boolean>('document.documentElement.scrollWidth > window.innerWidth')
      if (isWide) found.push(`${path} scrolls sideways`)
      const connect = page.getByRole('button', { name: `Connect ${WALLET_NAME}` })
      if (path.startsWith('/app/owner')) await connect.click()
      if (path.startsWith('/app/owner')) await page.getByText('connected', { exact: true }).waitFor()
      await check(path)
    }
    await page.keyboard.press('/')
    await page.getByRole('dialog').getByRole('combobox').fill('accessible')
    await page.getByRole('option').first().waitFor()
    await check('the search')
    expect(found).toEqual([])
    expect(problems).toEqual([])
    await page.context().close()
  },
)
