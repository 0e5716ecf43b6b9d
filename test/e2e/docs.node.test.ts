import { existsSync } from 'node:fs'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { freePort } from '../../devnet/anvil.ts'
import { startWorker, type Worker } from '../../devnet/worker.ts'
import { workerVars } from '../../devnet/worker-vars.ts'

// The interactive page in a real browser: it renders, it asks nobody but the service, and it can send an operation.

const executablePath = [
  process.env.CHROMIUM_PATH,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find(path => path !== undefined && existsSync(path))
if (executablePath === undefined) console.warn('No browser is installed (set CHROMIUM_PATH): /docs is not looked at.')

describe.skipIf(executablePath === undefined)('/docs in a browser', () => {
  let worker: Worker
  let browser: Browser
  let page: Page
  const hosts = new Set<string>()
  const complaints: string[] = []

  beforeAll(async () => {
    const port = await freePort()
    const deployment = { ...inject('deployment'), baseUrl: `http://127.0.0.1:${port}` }
    worker = await startWorker({ port, vars: workerVars(deployment) })
    browser = await chromium.launch({ executablePath: executablePath ?? '', args: ['--no-sandbox'] })
    page = await browser.newPage({ viewport: { width: 1200, height: 1400 } })
    page.on('request', request => hosts.add(new URL(request.url()).host))
    page.on('console', message => {
      // The browser's own line about an answer with a status of 404, which one test asks for.
      const isAnswer = message.text().startsWith('Failed to load resource: the server responded with a status of 404')
      if (['error', 'warning'].includes(message.type()) && !isAnswer) complaints.push(message.text())
    })
    page.on('pageerror', error => complaints.push(error.message))
    await page.goto(`${worker.url}/docs`)
    await page.waitForSelector('.opblock')
  })
  afterAll(async () => {
    await browser?.close()
    await worker?.stop()
  })

  it('shows every operation under its chapter', async () => {
    const shown = await page.locator('.opblock').count()
    const response = await fetch(`${worker.url}/docs/swagger.json`)
    const { paths, tags } = (await response.json()) as { paths: Record<string, object>; tags: { name: string }[] }
    expect(shown).toBe(Object.values(paths).flatMap(item => Object.keys(item)).length)
    expect(await page.locator('.opblock-tag').count()).toBe(tags.length)
    expect(await page.title()).toContain('API')
    if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/docs.png` })
  })

  it('sends an operation and shows the answer', async () => {
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
    const answer = operation.locator('.live-responses-table').first()
    await answer.waitFor()
    expect(await answer.innerText()).toContain('AGENT_NOT_FOUND')
    await page.locator('.btn.authorize').first().click()
    await page.locator('.dialog-ux .btn-done').click()
  })

  it('loads nothing from anybody else, and nothing that its policy forbids', () => {
    expect([...hosts]).toEqual([new URL(worker.url).host])
    expect(complaints).toEqual([])
  })
})
