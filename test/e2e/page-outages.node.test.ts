import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { createScene, type SceneAgent } from '../support/scene.ts'
import { launchBrowser } from './browser.ts'
import { closeContext, openPage, setVisibility } from './watched-page.ts'

// What the pages say while reads fail in different ways, and how they recover: mostly waits for their next reads.

describe('while reads fail', () => {
  const serviceUrl = inject('serviceUrl')
  const { register } = createScene(serviceUrl, inject('deployment'))
  let browser: Browser
  let agent: SceneAgent

  beforeAll(async () => {
    browser = await launchBrowser()
    agent = await register(2, 'Agent of an outage', 'frontier')
  })
  afterAll(async () => {
    await browser?.close()
  })

  const failureOf = (code: string) => ({ error: 'It failed.', code, remedy: 'Try again.', retryable: true })
  it.each([
    ['The service cannot read the chain.', { status: 502, json: failureOf('CHAIN_UNREACHABLE') }],
    ['The service cannot read its index of past trades.', { status: 503, json: failureOf('HISTORY_UNAVAILABLE') }],
    [
      'The service limits how often this address may read.',
      { status: 429, headers: { 'retry-after': '2' }, json: failureOf('RATE_LIMITED') },
    ],
    ['Stale: no connection to the service', { status: 503, contentType: 'text/html', body: '<h1>Unavailable</h1>' }],
    ['Stale: no connection to the service', { contentType: 'application/json', body: '{"vaults":[{' }],
  ])('the pages say once: "%s", and of when their figures are, and recover', async (text, response) => {
    const { page } = await openPage(browser)
    const notice = page.getByRole('alert')
    const isRead = ({ pathname }: URL) => /^\/(vaults|agents|tokens|trades|leaderboard)\b/.test(pathname)
    for (const path of ['/', `/app/agents/${agent.agentId}`]) {
      await page.goto(serviceUrl + path)
      await page.getByText('Live', { exact: true }).waitFor()
      await page.locator('.skeleton').first().waitFor({ state: 'detached' })
      await page.route(isRead, route => route.fulfill(response))
      const figures = await page.locator('.figures').first().innerText()
      await page.evaluate(setVisibility('hidden'))
      await page.evaluate(setVisibility('visible')) // reads everything again
      await notice
        .filter({ hasText: text })
        .filter({ hasText: /Figures are of \d/ })
        .waitFor()
      expect(await notice.count()).toBe(1)
      expect(await page.getByText('Not read since').count()).toBe(0)
      expect(await page.locator('.figures').first().innerText()).toBe(figures)
      await page.reload()
      await notice.filter({ hasText: text }).waitFor()
      await page
        .getByText(/^Could not read .+ yet\.$/)
        .first()
        .waitFor()
      expect(await notice.count()).toBe(1)
      await page.unroute(isRead)
      await page.locator('.figures').first().waitFor()
      await notice.waitFor({ state: 'detached' })
    }
    await closeContext(page)
  })

  it('the pages say that the index is behind the chain until it is not', async () => {
    const { page, problems } = await openPage(browser)
    const notice = page.getByRole('alert').filter({ hasText: 'The index of past trades is behind the chain.' })
    await page.route('**/leaderboard?*', async route => {
      if (route.request().resourceType() === 'document') return route.fallback()
      const json = await (await route.fetch()).json()
      const blockTimestamp = `${Number(json.asOf.blockTimestamp) - 900}`
      await route.fulfill({ json: { ...json, lagBlocks: 900, asOf: { ...json.asOf, blockTimestamp } } })
    })
    await page.goto(`${serviceUrl}/app/leaderboard?period=all`)
    await notice.waitFor()
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await notice.waitFor({ state: 'detached' })
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the pages read a service that limits them no sooner than it asks for', async () => {
    const { page } = await openPage(browser)
    const readAt: number[] = []
    const isVaults = ({ pathname }: URL) => pathname === '/vaults'
    await page.route(isVaults, route => {
      readAt.push(Date.now())
      return route.fulfill({ status: 429, headers: { 'retry-after': '8' }, json: failureOf('RATE_LIMITED') })
    })
    await page.goto(`${serviceUrl}/app/vaults`)
    await expect.poll(() => readAt.length).toBe(2)
    const [first = 0, second = 0] = readAt
    expect(second - first).toBeGreaterThanOrEqual(8_000)
    await closeContext(page)
  })

  it('a page that cannot use a response says so, and recovers once it reads another', async () => {
    const { page } = await openPage(browser)
    const broken = page.getByRole('alert').filter({ hasText: 'cannot be shown.' })
    const isRead = ({ pathname }: URL) => pathname === '/' || /^\/(vaults|agents|leaderboard)\b/.test(pathname)
    const replace = () =>
      page.route(isRead, route =>
        route.request().resourceType() === 'document' ? route.fallback() : route.fulfill({ json: {} }),
      )
    for (const path of ['/', `/app/agents/${agent.agentId}`]) {
      await page.goto(serviceUrl + path)
      await page.getByText('Live', { exact: true }).waitFor()
      await page.locator('.skeleton').first().waitFor({ state: 'detached' })
      await replace()
      await page.evaluate(setVisibility('hidden'))
      await page.evaluate(setVisibility('visible')) // reads everything again
      await broken.first().getByRole('button', { name: 'Reload' }).waitFor()
      await page.reload()
      await broken.first().waitFor()
      await page.unroute(isRead)
      await broken.first().waitFor({ state: 'detached' })
      await page.locator('.figures').first().waitFor()
      expect(await broken.count()).toBe(0)
    }
    await closeContext(page)
  })
})
