import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { launchBrowser } from './browser.ts'
import { screensOf } from './screens.ts'
import { closeContext, openPage } from './watched-page.ts'

// axe on the kinds of pages of the API reference.

const docs = `${inject('serviceUrl')}/docs`
const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')
const paths = ['', '/operations/getTradeIntentQuote', '/errors', '/guides/signing']
let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(async () => {
  await browser?.close()
})

type Violation = { id: string; impact: string; nodes: { html: string }[] }

it.each(screensOf(inject('isLong')))(
  'axe finds nothing serious in the %s theme at %d px with forced colors %s',
  async (colorScheme, width, forcedColors) => {
    const { page, problems, hosts } = await openPage(browser, {
      viewport: { width, height: 900 },
      colorScheme,
      forcedColors,
    })
    for (const path of paths) {
      await page.goto(docs + path)
      const { violations, passes } = await page.evaluate<{ violations: Violation[]; passes: unknown[] }>(
        `(() => { const module = undefined; ${axe}; return axe.run() })()`,
      )
      const serious = violations.filter(({ impact }) => ['serious', 'critical'].includes(impact))
      expect(serious.map(({ id, nodes }) => `${path}: ${id} ${nodes[0]?.html}`)).toEqual([])
      expect(passes.length).toBeGreaterThan(15)
    }
    expect(problems).toEqual([])
    expect([...hosts]).toEqual([new URL(docs).host])
    await closeContext(page)
  },
)
