import type { Browser, BrowserContextOptions, Page } from 'playwright-core'

export type WatchedPage = {
  page: Page
  /** Console errors and warnings, exceptions and violations of the content security policy, so far. */
  problems: string[]
  /** Every host that the page requested something from. */
  hosts: Set<string>
}

/** Opens a page that records what goes wrong in it. The browser logs every 404, so those of the API are left out. */
export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, ...options })
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
