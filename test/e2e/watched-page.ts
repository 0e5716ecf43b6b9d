import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'

export type WatchedPage = {
  page: Page
  /** Console errors and warnings, exceptions and violations of the content security policy, so far. */
  problems: string[]
  /** Every host that the page requested something from. */
  hosts: Set<string>
}

/** Shorter than the timeout of a test, whose error would not say what was waited for. */
const PATIENT_MS = 240_000

/** Opens a context whose pages wait as long as a test may take, because a busy machine may be slow. */
export async function openContext(browser: Browser, options: BrowserContextOptions): Promise<BrowserContext> {
  const context = await browser.newContext(options)
  context.setDefaultTimeout(PATIENT_MS)
  return context
}

/** Closes the context of a page. What a test puts in place of responses may still be under way. */
export async function closeContext(page: Page): Promise<void> {
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  await page.context().close()
}

/** Opens a page that records what goes wrong in it. The browser logs every 404, so the API's are left out. */
export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await openContext(browser, { viewport: { width: 1440, height: 1000 }, ...options })
  const page = await context.newPage()
  const problems: string[] = []
  const hosts = new Set<string>()
  page.on('request', request => hosts.add(new URL(request.url()).host))
  page.on('pageerror', error => problems.push(error.message))
  page.on('console', message => {
    const isExpected = message.text().startsWith('Failed to load resource: the server responded with a status of 404')
    if (['error', 'warning'].includes(message.type()) && !isExpected) problems.push(message.text())
  })
  return { page, problems, hosts }
}

/** A script that hides a page from its visitor or shows it, as another tab in front of it would. */
export const setVisibility = (state: 'visible' | 'hidden') => `
  Object.defineProperty(document, 'visibilityState', { configurable: true, value: '${state}' })
  document.dispatchEvent(new Event('visibilitychange'))`
