import { mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Browser, Page } from 'playwright-core'
import { freePort } from '../devnet/anvil.ts'
import { startDevnet } from '../devnet/index.ts'
import { startWorker } from '../devnet/worker.ts'
import { unlimitedGas, workerVars } from '../devnet/worker-vars.ts'
import { launchBrowser } from '../test/e2e/browser.ts'
import { injectWallet, WALLET_NAME } from '../test/e2e/test-wallet.ts'
import { playScene, type ScenePage, type ScenePages } from './screenshot-scene.ts'

// `npm run screenshots`: every page in both themes and two widths into dist/screenshots, and the README's into
// docs/screenshots, over a chain on which three agents have lived for some days. `-- --only agent` takes one page, `--
// --keep` leaves the service running.

const { only, keep } = parseArgs({
  options: { only: { type: 'string' }, keep: { type: 'boolean', default: false } },
}).values
const IN_README = 'agent-desktop-light.png'
const folderOf = (file: string) => join(import.meta.dirname, '..', file === IN_README ? 'docs' : 'dist', 'screenshots')
const WIDTHS = { phone: 360, desktop: 1440 }
const MAX_HEIGHT = 1_600
const THEMES = ['light', 'dark'] as const

const port = await freePort()
const devnet = await startDevnet({ baseUrl: `http://127.0.0.1:${port}` })
const worker = await startWorker({
  port,
  vars: { ...workerVars(devnet.deployment), ...unlimitedGas, EXPLORER_URL: 'https://explorer.example' },
})
let browser: Browser | undefined
try {
  const pages = await playScene(worker.url, devnet.deployment)
  browser = await launchBrowser()
  await shoot(browser, pages)
  if (keep) {
    console.log(`${worker.url}\n${JSON.stringify(pages, undefined, 2)}\nchain ${devnet.rpcUrl}\nCtrl-C stops it.`)
    await Promise.race([devnet.exited, worker.exited])
  }
} finally {
  await browser?.close()
  await worker.stop()
  await devnet.stop()
}

async function shoot(browser: Browser, pages: ScenePages): Promise<void> {
  for (const colorScheme of THEMES)
    for (const [device, width] of Object.entries(WIDTHS))
      for (const [name, scenePage] of Object.entries(pages)) {
        if (only !== undefined && only !== name) continue
        const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 }, locale: 'en-GB' })
        const page = await context.newPage()
        // The scene has moved the chain's clock ahead: the browser's follows it.
        await page.clock.setSystemTime(Number((await devnet.client.getBlock()).timestamp) * 1_000)
        await open(page, scenePage)
        const height = Math.ceil((await page.locator('html').boundingBox())?.height ?? 0)
        await page.setViewportSize({ width, height: Math.min(height, MAX_HEIGHT) })
        // Lines of the leaderboard are read once their rows are in view.
        await page.locator('.row-line:empty').first().waitFor({ state: 'detached' })
        const image = await reduceColors(await page.screenshot())
        const file = `${name}-${device}-${colorScheme}.png`
        mkdirSync(folderOf(file), { recursive: true })
        writeFileSync(join(folderOf(file), file), image)
        await context.close()
        console.log(`${file} ${Math.round(image.length / 1024)} KiB`)
      }
}

/** Opens a page, connects its wallet, and waits until everything on it has arrived. */
async function open(page: Page, { path, shows, wallet, review }: ScenePage): Promise<void> {
  if (wallet) await injectWallet(page, wallet, devnet.deployment)
  await page.goto(worker.url + path)
  await page.locator('main h1').waitFor()
  if (wallet) {
    await page.getByRole('button', { name: `Connect ${WALLET_NAME}` }).click()
    await page.getByText('connected', { exact: true }).waitFor()
  }
  if (review) {
    await page.getByRole('region', { name: review, exact: true }).getByRole('button', { name: 'Review' }).click()
    await page.getByText('You are about to sign').waitFor()
  }
  if (shows) await page.getByText(shows).first().waitFor()
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
  for (const chart of await page.locator('.chart-canvas').all())
    await chart.locator('svg :is(.line, .candles)').first().waitFor()
  for (const ladder of await page.locator('.ladder').all()) await ladder.locator('.ladder-price').waitFor()
  await page.locator('.connection:is(.live, .off)').waitFor()
  await page.evaluate('document.fonts.ready')
}

type Sharp = (image: Buffer) => { png(options: object): { toBuffer(): Promise<Buffer> } }

/** Reduces an image to a palette, which is a third of its size. miniflare brings the library. */
function reduceColors(image: Buffer): Promise<Buffer> {
  const sharp = createRequire(import.meta.resolve('miniflare'))('sharp') as Sharp
  return sharp(image).png({ palette: true, quality: 90, effort: 7, dither: 0 }).toBuffer()
}
