import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { createScene, type SceneAgent } from '../support/scene.ts'
import { launchBrowser } from './browser.ts'
import { injectWallet, WALLET_NAME } from './test-wallet.ts'
import { openPage } from './watched-page.ts'

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
const setVisibility = (state: 'visible' | 'hidden') => `
  Object.defineProperty(document, 'visibilityState', { configurable: true, value: '${state}' })
  document.dispatchEvent(new Event('visibilitychange'))`

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
    await page.context().close()
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
    await page.context().close()
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
    await page.context().close()

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
    await phone.page.context().close()
  })
})
