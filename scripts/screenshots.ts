import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Browser } from 'playwright-core'
import { freePort } from '../devnet/anvil.ts'
import { startDevnet } from '../devnet/index.ts'
import { startWorker } from '../devnet/worker.ts'
import { unlimitedGas, workerVars } from '../devnet/worker-vars.ts'
import { launchBrowser } from '../test/e2e/browser.ts'
import { playScene, type ScenePages } from './screenshot-scene.ts'

// `npm run screenshots`: every page in both themes and two widths into docs/screenshots, over a chain on which three agents
// have lived for some days. `-- --only agent` takes one page, `-- --keep` leaves the service running.

const { only, keep } = parseArgs({
  options: { only: { type: 'string' }, keep: { type: 'boolean', default: false } },
}).values
const folder = join(import.meta.dirname, '../docs/screenshots')
const WIDTHS = { phone: 360, desktop: 1440 }
const MAX_HEIGHT = 1_800
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
  mkdirSync(folder, { recursive: true })
  for (const colorScheme of THEMES)
    for (const [device, width] of Object.entries(WIDTHS)) {
      const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 }, locale: 'en-GB' })
      const page = await context.newPage()
      // The scene has moved the chain's clock ahead: the browser's follows it.
      await page.clock.setSystemTime(Number((await devnet.client.getBlock()).timestamp) * 1_000)
      for (const [name, path] of Object.entries(pages)) {
        if (only !== undefined && only !== name) continue
        await page.goto(worker.url + path)
        await page.locator('main h1').waitFor()
        await page.locator('.skeleton').first().waitFor({ state: 'detached' })
        for (const chart of await page.locator('.chart-canvas').all()) await chart.locator('canvas').first().waitFor()
        const height = Math.ceil((await page.locator('html').boundingBox())?.height ?? 0)
        await page.setViewportSize({ width, height: Math.min(height, MAX_HEIGHT) })
        const path_ = join(folder, `${name}-${device}-${colorScheme}.png`)
        await page.screenshot({ path: path_ })
        await page.setViewportSize({ width, height: 900 })
        console.log(`${path_.slice(folder.length + 1)} ${Math.round(statSync(path_).size / 1024)} KiB`)
      }
      await context.close()
    }
}
