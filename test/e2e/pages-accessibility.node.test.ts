import axe from 'axe-core'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { createScene } from '../support/scene.ts'
import { launchBrowser } from './browser.ts'
import { screensOf } from './screens.ts'
import { openPage } from './watched-page.ts'

// axe on every page.

const serviceUrl = inject('serviceUrl')
const { register, trade } = createScene(serviceUrl, inject('deployment'))
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
  'every page is accessible in the %s theme at %d px',
  async (colorScheme, width) => {
    const { page, problems } = await openPage(browser, { colorScheme, viewport: { width, height: 900 } })
    const found: string[] = []
    for (const path of paths) {
      await page.goto(serviceUrl + path)
      await page.locator('main h1').waitFor()
      await page.locator('.skeleton').first().waitFor({ state: 'detached' })
      const isWide = await page.evaluate<boolean>('document.documentElement.scrollWidth > window.innerWidth')
      if (isWide) found.push(`${path} scrolls sideways`)
      await page.evaluate(axe.source)
      const { violations } = await page.evaluate<{ violations: Violation[] }>(
        `axe.run(document, { resultTypes: ['violations'] })`,
      )
      for (const { id, impact, nodes } of violations)
        if (impact !== 'minor') found.push(`${path} ${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`)
    }
    expect(found).toEqual([])
    expect(problems).toEqual([])
    await page.context().close()
  },
)
