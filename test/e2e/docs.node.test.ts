import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { launchBrowser } from './browser.ts'

// The interactive documentation in a real browser: it renders, requests nothing from other hosts, and sends operations.

describe('/docs in a browser', () => {
  const serviceUrl = inject('serviceUrl')
  let browser: Browser
  let page: Page
  const hosts = new Set<string>()
  const problems: string[] = []

  beforeAll(async () => {
    browser = await launchBrowser()
    page = await browser.newPage({ viewport: { width: 1200, height: 1400 } })
    page.on('request', request => hosts.add(new URL(request.url()).host))
    page.on('console', message => {
      // The browser logs every 404, and one test provokes one.
      const isExpected = message.text().startsWith('Failed to load resource: the server responded with a status of 404')
      if (['error', 'warning'].includes(message.type()) && !isExpected) problems.push(message.text())
    })
    page.on('pageerror', error => problems.push(error.message))
    await page.goto(`${serviceUrl}/docs`)
    await page.waitForSelector('.opblock')
  })
  afterAll(async () => {
    await browser?.close()
  })

  it('shows every operation under its tag', async () => {
    const shown = await page.locator('.opblock').count()
    const response = await fetch(`${serviceUrl}/docs/swagger.json`)
    const { paths, tags } = (await response.json()) as { paths: Record<string, object>; tags: { name: string }[] }
    expect(shown).toBe(Object.values(paths).flatMap(item => Object.keys(item)).length)
    expect(await page.locator('.opblock-tag').count()).toBe(tags.length)
    expect(await page.title()).toContain('API')
    if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/docs.png` })
  })

  it('sends an operation and shows the response', async () => {
    const operation = page.locator('.opblock', { has: page.locator('[data-path="/vaults/{id}"]') }).first()
    await operation.locator('.opblock-summary').click()
    await operation.locator('.try-out__btn').click()
    await operation.locator('input[placeholder="id"]').fill('genesis')
    await operation.locator('.execute').click()
    const live = operation.locator('.live-responses-table tbody .response-col_status').first()
    await live.waitFor()
    expect(await live.innerText()).toContain('200')
    expect(await operation.locator('.live-responses-table').first().innerText()).toContain('"slug": "genesis"')
    if (process.env.SCREENSHOTS) {
      await operation.scrollIntoViewIfNeeded()
      await page.screenshot({ path: `${process.env.SCREENSHOTS}/docs-sent.png` })
    }
  })

  it('shows the body of a submission, its example and its schema', async () => {
    const operation = page.locator('.opblock', { has: page.locator('[data-path="/signing/verify"]') }).first()
    await operation.locator('.opblock-summary').click()
    await operation.locator('.try-out__btn').click()
    const body = operation.locator('.body-param__text')
    expect(await body.inputValue()).toContain('"primaryType": "ReducePosition"')
    await body.fill((await body.inputValue()).replace('"agentId": "1"', '"agentId": "999999"'))
    await operation.locator('.execute').click()
    const response = operation.locator('.live-responses-table').first()
    await response.waitFor()
    expect(await response.innerText()).toContain('AGENT_NOT_FOUND')
    await page.locator('.btn.authorize').first().click()
    await page.locator('.dialog-ux .btn-done').first().click()
  })

  it('loads nothing from another host, and nothing that its content security policy forbids', () => {
    expect([...hosts]).toEqual([new URL(serviceUrl).host])
    expect(problems).toEqual([])
  })
})
