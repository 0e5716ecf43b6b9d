import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { createScene, type SceneAgent } from '../support/scene.ts'
import { launchBrowser } from './browser.ts'
import { injectWallet, WALLET_NAME } from './test-wallet.ts'
import { closeContext, openPage, setVisibility } from './watched-page.ts'

// What visitors do on the pages besides reading them.

/** A browser that asks for permission and shows notifications, and records both. */
const recordNotifications = `
  window.asked = 0
  window.notified = []
  window.Notification = class {
    static permission = 'default'
    static async requestPermission() {
      window.asked++
      return (this.permission = 'granted')
    }
    constructor(title) {
      window.notified.push(title)
    }
  }`

describe('visitors of the pages', () => {
  const serviceUrl = inject('serviceUrl')
  const deployment = inject('deployment')
  const { chain, register, trade } = createScene(serviceUrl, deployment)
  let browser: Browser
  let agent: SceneAgent

  beforeAll(async () => {
    browser = await launchBrowser()
    agent = await register(0, 'Alerting agent', 'frontier')
  })
  afterAll(async () => {
    await browser?.close()
  })

  it('visitors copy addresses, hashes and commands', async () => {
    const { page, problems } = await openPage(browser, { permissions: ['clipboard-read', 'clipboard-write'] })
    const copied = () => page.evaluate<string>('navigator.clipboard.readText()')
    await page.goto(`${serviceUrl}/app/agents/${agent.agentId}`)
    const owner = agent.account.address
    const identity = page.getByRole('region', { name: 'Identity' })
    await identity
      .getByRole('button', { name: `Copy address ${owner.slice(0, 6)}` })
      .first()
      .click()
    await identity.getByText('Copied', { exact: true }).waitFor()
    expect(await copied()).toBe(owner)
    await page.goto(serviceUrl)
    await page.getByRole('button', { name: 'Copy the requests' }).click()
    await expect.poll(copied).toContain(`curl -s ${serviceUrl}/vaults\n`)
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('visitors who asked for it are alerted to a stop that fires while the tab is hidden', async () => {
    const { page, problems } = await openPage(browser)
    await page.addInitScript({ content: recordNotifications })
    await page.goto(`${serviceUrl}/app/agents/${agent.agentId}`)
    await page.getByText('Live', { exact: true }).waitFor()
    expect(await page.evaluate('window.asked')).toBe(0)
    await page.getByRole('button', { name: 'Alert me to stops' }).click()
    await page.getByText('in the title and as a notification').waitFor()
    await trade(agent, 'open', { symbol: 'COIN', usdcAmount: '200', exits: '-500:10000' })
    await page.getByRole('link', { name: /COIN/ }).first().waitFor()
    const title = await page.title()
    await page.evaluate(setVisibility('hidden'))
    await chain.setPrice('COIN', '306')
    const alert = `Stop-loss fired: COIN of agent ${agent.agentId}`
    await expect.poll(() => page.title()).toBe(`● ${alert}`)
    expect(await page.evaluate('window.notified')).toEqual([alert])
    await page.evaluate(setVisibility('visible'))
    expect(await page.title()).toBe(title)
    await page.reload()
    await page.getByText('in the title of this tab').waitFor() // the permission of this test's browser is per load
    expect(await page.evaluate('window.asked')).toBe(0)
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('visitors choose a wallet by its icon, and on a phone without one open the page in the browser of a wallet', async () => {
    const path = '/app/owner?agent=1'
    const { page, problems } = await openPage(browser)
    await injectWallet(page, deployment.accounts.depositor, deployment)
    await page.goto(serviceUrl + path)
    const icon = page.getByRole('button', { name: `Connect ${WALLET_NAME}` }).locator('img')
    await expect
      .poll(() => icon.evaluate(image => (image as unknown as { naturalWidth: number }).naturalWidth))
      .toBeGreaterThan(0)
    await closeContext(page)

    const phone = await openPage(browser, { viewport: { width: 360, height: 800 }, hasTouch: true, isMobile: true })
    await phone.page.goto(serviceUrl + path)
    const link = await phone.page.getByRole('link', { name: 'MetaMask' }).getAttribute('href')
    expect(link).toBe(`https://metamask.app.link/dapp/${new URL(serviceUrl).host}${path}`)
    await phone.page.addInitScript({
      content: `window.ethereum = { request: async () => ['${agent.account.address}'] }`,
    })
    await phone.page.reload()
    await phone.page.getByRole('button', { name: 'Connect the wallet of this browser' }).click()
    await phone.page.getByText('connected', { exact: true }).waitFor()
    expect([...problems, ...phone.problems]).toEqual([])
    await closeContext(phone.page)
  })

  it('visitors find an agent by a word of its name from every page, with the keyboard or the pointer', async () => {
    const { page, problems } = await openPage(browser)
    const heading = page.getByRole('heading', { level: 1, name: 'Alerting agent' })
    await page.goto(`${serviceUrl}/app/status`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.keyboard.press('/')
    const dialog = page.getByRole('dialog', { name: 'Search' })
    await dialog.getByRole('combobox').fill('AGENT')
    await dialog.getByRole('option', { name: /^Alerting agent/ }).waitFor()
    await dialog.getByRole('combobox').fill('alerting-ag')
    await expect.poll(() => dialog.getByRole('option').count()).toBe(1)
    await page.keyboard.press('Enter')
    await heading.waitFor()
    await dialog.waitFor({ state: 'hidden' })
    await page.getByRole('button', { name: 'Search' }).click()
    await dialog.getByRole('combobox').fill('nobody at all')
    await dialog.getByText('No agent has a name with such a word.').waitFor()
    await page.keyboard.press('Escape')
    await page.goto(serviceUrl)
    await page.getByRole('main').getByRole('combobox').fill('alert')
    await page.getByRole('option', { name: /^Alerting agent/ }).click()
    await heading.waitFor()
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('visitors type at once in the search, which finds what they typed last and nothing that they typed before', async () => {
    const { page, problems } = await openPage(browser)
    const other = await register(1, '2024 Momentum', 'frontier')
    const heading = (name: string) => page.getByRole('heading', { level: 1, name })
    await page.goto(`${serviceUrl}/app/status`)
    await heading('Status').waitFor()
    await page.keyboard.press('/')
    await page.getByRole('dialog', { name: 'Search' }).waitFor()
    await page.keyboard.type('alerting')
    await page.getByRole('option', { name: /^Alerting agent/ }).waitFor()
    await page.keyboard.press('Control+A')
    await page.keyboard.type('Momentum')
    await page.keyboard.press('Enter') // before the look-up of this name has begun
    await heading('2024 Momentum').waitFor()
    expect(page.url()).toBe(`${serviceUrl}/app/agents/${other.agentId}`)
    await page.keyboard.press('/')
    await page.keyboard.type('2024')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Search' }).waitFor({ state: 'hidden' })
    await heading('2024 Momentum').waitFor()
    await page.route('**/agents/by-name/**', route => route.abort())
    await page.keyboard.press('/')
    await page.keyboard.type('nobody at all')
    await page.keyboard.press('Enter')
    await page.getByText('The search could not be read.').waitFor()
    expect(await page.getByText('No agent has this name').count()).toBe(0)
    expect(problems.filter(problem => !/Failed to load/.test(problem))).toEqual([])
    await closeContext(page)
  })

  it('visitors open a page whose script failed or is of an older version, and read why if it fails again', async () => {
    const { page } = await openPage(browser)
    let requests = 0
    const fail = (times: number) =>
      page.route('**/assets/compare-*.js', route =>
        ++requests <= times ? route.fulfill({ status: 404 }) : route.continue(),
      )
    await fail(1)
    await page.goto(`${serviceUrl}/app/agents/${agent.agentId}`)
    await page.getByRole('link', { name: 'Compare', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Compare agents' }).waitFor()
    await page.unrouteAll()
    await page.route('**/assets/owner-*.js', route => route.fulfill({ status: 404 }))
    await page.getByRole('link', { name: 'Owner', exact: true }).click()
    const failure = page.getByRole('alert').filter({ hasText: 'The script of this page could not be loaded.' })
    await failure.waitFor()
    await page.unrouteAll()
    await failure.getByRole('button', { name: 'Reload' }).click()
    await page.getByRole('heading', { level: 1, name: "Owner's desk" }).waitFor()
    await page.context().setOffline(true)
    await page.getByRole('link', { name: 'Status', exact: true }).click()
    await failure.waitFor()
    await page.context().setOffline(false)
    await failure.getByRole('button', { name: 'Reload' }).click()
    await page.getByRole('heading', { level: 1, name: 'Status' }).waitFor()
    await page.getByText(/^Trading is possible/).waitFor()
    await page.context().setOffline(true)
    await page.getByText('The status could not be read; this is the last one.').waitFor()
    expect(await page.getByRole('main').innerText()).not.toContain(serviceUrl)
    await page.context().setOffline(false)
    await page.route('**/assets/index-*.js', route => route.abort())
    await page.reload()
    await page.getByText('The script of these pages could not be loaded.').waitFor()
    await closeContext(page)
  })

  it('visitors have the focus on the heading of each page they go to, and find their place when they go back', async () => {
    const { page, problems } = await openPage(browser, { viewport: { width: 1000, height: 500 } })
    const { positionId, transactionHash } = await trade(agent, 'open', {
      symbol: 'NVDA',
      usdcAmount: '60',
      exits: '-900:10000',
    })
    const focus = () => page.evaluate<string>('document.activeElement.tagName')
    const offset = () => page.evaluate<number>('Math.round(window.scrollY)')
    const link = (href: string) => page.getByRole('main').locator(`a[href="${href}"]`)
    const agentPath = `/app/agents/${agent.agentId}`
    await page.goto(`${serviceUrl}/app/trades`)
    async function follow(href: string, name: string | RegExp) {
      await link(href).last().scrollIntoViewIfNeeded()
      const from = await offset()
      await link(href).last().click()
      await page.getByRole('heading', { level: 1, name }).waitFor()
      await page.locator('.skeleton').first().waitFor({ state: 'detached' })
      await expect.poll(focus, { message: href }).toBe('H1')
      return from
    }
    await follow(agentPath, 'Alerting agent')
    expect(await offset()).toBe(0)
    const left = await follow(`${agentPath}/positions/${positionId}`, 'NVDA')
    expect(left).toBeGreaterThan(0)
    expect(await offset()).toBe(0)
    await follow(`/app/transactions/${transactionHash}`, /./)
    await page.goBack()
    await page.getByRole('heading', { level: 1, name: 'NVDA' }).waitFor()
    await page.goBack()
    await page.getByRole('heading', { level: 1, name: 'Alerting agent' }).waitFor()
    await expect.poll(offset).toBe(left)
    for (const [name, heading] of [
      ['Vaults', 'Vaults'],
      ['Depositor', "Depositor's desk"],
      ['Owner', "Owner's desk"],
    ] as const) {
      await page.getByRole('navigation').getByRole('link', { name, exact: true }).click()
      await page.getByRole('heading', { level: 1, name: heading }).waitFor()
      await expect.poll(focus, { message: name }).toBe('H1')
    }
    await page.goto(`${serviceUrl}/app/vaults`)
    await follow('/app/vaults/frontier', 'Frontier')
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('visitors who use the keyboard keep the focus near a button that goes away', async () => {
    const { page, problems } = await openPage(browser)
    await injectWallet(page, deployment.accounts.depositor, deployment)
    const press = async (name: string | RegExp) => {
      await page.getByRole('button', { name }).first().focus()
      await page.keyboard.press('Enter')
    }
    const focus = () => page.evaluate<string>('document.activeElement.innerText.split(/\\n/)[0]')
    await page.goto(`${serviceUrl}/app/depositor?vault=frontier`)
    await page.locator('.skeleton').first().waitFor({ state: 'detached' })
    await press(`Connect ${WALLET_NAME}`)
    await page.getByText('connected', { exact: true }).waitFor()
    await expect.poll(focus).toBe('Wallet')
    await press('Disconnect')
    await page.getByRole('button', { name: `Connect ${WALLET_NAME}` }).waitFor()
    await expect.poll(focus).toBe('Wallet')
    await page.goto(`${serviceUrl}/app/compare?agents=${agent.agentId}`)
    await page.locator('.skeleton').first().waitFor({ state: 'detached' })
    await press(/^Remove/)
    await page.getByText('Which agents?').waitFor()
    await expect.poll(focus).not.toBe('Skip to the content')
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('visitors on a phone find the deposit first, and jump to the parts of a long page', async () => {
    const phone = { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true }
    const { page, problems } = await openPage(browser, phone)
    await page.goto(`${serviceUrl}/app/depositor?vault=frontier`)
    const topOf = async (name: string) => (await page.getByRole('region', { name, exact: true }).boundingBox())?.y ?? 0
    await page.getByRole('region', { name: 'Deposit', exact: true }).waitFor()
    expect(await topOf('Deposit')).toBeLessThan(await topOf('Your holdings'))
    await page.goto(`${serviceUrl}/app/agents/${agent.agentId}`)
    await page.locator('.skeleton').first().waitFor({ state: 'detached' })
    await page.getByRole('navigation', { name: 'On this page' }).getByRole('link', { name: 'Trades' }).tap()
    await expect.poll(async () => Math.floor((await topOf('Trades')) / 200)).toBe(0)
    await page.goBack()
    await expect.poll(() => page.evaluate('window.scrollY')).toBe(0)
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('visitors see the equity of each ranked agent as a line, read once its row is in view', async () => {
    const { page, problems } = await openPage(browser)
    const intervals: (string | null)[] = []
    // The agents of this chain are minutes old, and a line has a point for each hour.
    await page.route('**/equity-history?*', async route => {
      intervals.push(new URL(route.request().url()).searchParams.get('interval'))
      const history = (await (await route.fetch()).json()) as { points: { timestamp: string }[] }
      const points = history.points.flatMap(point =>
        [2, 1, 0].map(hours => ({ ...point, timestamp: `${Number(point.timestamp) - hours * 3_600}` })),
      )
      await route.fulfill({ json: { ...history, points } })
    })
    await page.goto(`${serviceUrl}/app/leaderboard?period=day`)
    await page.getByRole('columnheader', { name: 'Equity, 24 hours' }).waitFor()
    await page.locator('.row-line').first().locator('svg').waitFor()
    expect(new Set(intervals)).toEqual(new Set(['1h']))
    const isWide = await page.locator('.scroll').evaluate(table => table.scrollWidth > table.clientWidth)
    expect(isWide).toBe(false)
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('visitors see on which of the last ninety days trading was possible, and what was not checked', async () => {
    const { page, problems } = await openPage(browser)
    const today = Math.floor(Date.now() / 86_400_000) * 86_400
    const day = (ago: number, ready: number, version: string) => ({
      day: `${today - ago * 86_400}`,
      checks: 288,
      ready,
      versions: [version],
    })
    const days = [day(3, 288, '1.0.0'), day(1, 0, '1.1.0'), day(0, 144, '1.1.0')]
    const incidents = [
      {
        startedAt: `${today - 86_400}`,
        endedAt: `${today - 82_800}`,
        version: '1.0.0',
        problems: ['the node cannot be reached'],
      },
      {
        startedAt: `${today - 300}`,
        endedAt: null,
        version: '1.1.0',
        problems: ['no token has a fresh price', 'no vault has idle USDC'],
      },
    ]
    await page.route('**/health/history', route => route.fulfill({ json: { checkSeconds: 300, days, incidents } }))
    await page.goto(`${serviceUrl}/app/status`)
    const history = page.getByRole('region', { name: 'Last 90 days' })
    await history.getByRole('img', { name: 'Trading was possible at 50.00 % of the checks of 3 days.' }).waitFor()
    const states = await history.locator('rect').evaluateAll(all => all.map(rect => rect.getAttribute('class')))
    expect(states).toHaveLength(90)
    expect(states.slice(-4)).toEqual(['good', 'unknown', 'bad', 'mixed'])
    expect(await history.innerText()).toContain('1.1.0 since')
    const rows = await history.getByRole('table', { name: 'Incidents' }).locator('tbody tr').allInnerTexts()
    expect(rows[0]).toMatch(/still open[\s\S]*no token has a fresh price; no vault has idle USDC/)
    expect(rows[1]).toMatch(/1 h[\s\S]*the node cannot be reached/)
    await page.unroute('**/health/history')
    await page.reload()
    await history.waitFor()
    expect(problems).toEqual([])
    await closeContext(page)
  })
})
