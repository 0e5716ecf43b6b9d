import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { encodeClaim } from '@agent-trading-service/protocol/examination-claim'
import type { Browser, Page, Request } from 'playwright-core'
import { type Hex, zeroHash } from 'viem'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import { createScene, type SceneAgent } from '../support/scene.ts'
import { launchBrowser } from './browser.ts'
import { closeContext, openPage, setVisibility } from './watched-page.ts'

// The pages in a real browser, on a running service and its chain.

const RIGHT_TO_LEFT_OVERRIDE = '\u202e'
const HOSTILE_NAME = `<img src=x onerror=alert(1)>${RIGHT_TO_LEFT_OVERRIDE}txt.exe`

/** Pixels that a chart leaves for the labels of its axis. */
const AXIS_WIDTH = 58

describe('the pages', () => {
  const serviceUrl = inject('serviceUrl')
  const deployment = inject('deployment')
  const { chain, register, trade, request, sign } = createScene(serviceUrl, deployment)
  let browser: Browser
  let agent: SceneAgent
  let hostile: SceneAgent
  let positionId: string
  let digest: string
  let transactionHash: string

  async function cancelOrder(owner: SceneAgent, orderId: string) {
    const orders = `/agents/${owner.agentId}/orders`
    const { typedData, body } = await request(`${orders}/quote?type=cancel&orderId=${orderId}`)
    await request(`${orders}/${orderId}/cancel`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, signature: await sign(owner, typedData) }),
    })
  }

  beforeAll(async () => {
    browser = await launchBrowser()
    agent = await register(0, 'Watched agent', 'frontier')
    hostile = await register(1, HOSTILE_NAME, 'frontier')
    const input = { symbol: 'PLTR', usdcAmount: '400', exits: '-500:10000,2000:10000' }
    ;({ positionId, digest, transactionHash } = await trade(agent, 'open', input))
  })
  afterAll(async () => {
    await browser?.close()
  })

  it('the pages show a stop-loss that fires, without a reload', async () => {
    const { page, problems, hosts } = await openPage(browser)
    let loads = 0
    page.on('load', () => loads++)
    await page.goto(`${serviceUrl}/app/agents/${agent.agentId}`)
    await page.getByText('Stop-loss waits for the price to fall').waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    await chain.setPrice('PLTR', '168.3')
    await page.getByText('No open position.').waitFor()
    const fired = page.getByRole('row').filter({ hasText: 'Stop-loss fired' })
    await fired.waitFor()
    expect(await fired.innerText()).toContain('PLTR')
    expect(loads).toBe(1)
    expect(problems).toEqual([])
    expect([...hosts]).toEqual([new URL(serviceUrl).host])
    await closeContext(page)
  })

  it('the page of an agent shows the examination that its owner names on chain, as a claim, and no malformed one', async () => {
    const [sender] = deployment.accounts.agents as [(typeof deployment.accounts.agents)[number]]
    const figures = {
      runs: 100,
      variants: 3,
      medianReturnBps: 312,
      beatsHoldingBps: 5_500,
      rankBps: 6_150,
      edgeBps: 9_720,
    }
    const claim = encodeClaim({ hash: `0x${'c0'.repeat(32)}`, ...figures })
    const name = (metadataURI: string) =>
      chain.send(sender, {
        address: deployment.contracts.AgentRegistry,
        abi: agentRegistryAbi,
        functionName: 'updateAgentMetadata',
        args: [BigInt(agent.agentId), metadataURI],
      })
    await name(`https://agents.example/agent.json#${claim}`)
    const { page, problems } = await openPage(browser)
    await page.goto(`${serviceUrl}/app/agents/${agent.agentId}`)
    const panel = page.getByRole('region', { name: 'Examination' })
    await panel.getByText("the owner's claim").waitFor()
    const text = (await panel.innerText()).replaceAll('\u00a0', ' ')
    for (const shown of ['100, with 3 variants tried', '+3.12 %', '55 %', '61 %', '97.2 %', `0x${'c0'.repeat(32)}`])
      expect(text).toContain(shown)
    await name(`https://agents.example/agent.json#${claim.replace('runs=100', 'runs=many')}`)
    await page.reload()
    await page.getByRole('region', { name: 'Identity' }).waitFor()
    expect(await panel.count()).toBe(0)
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the page of an agent shows the certificate that its track requires, and the one that its owner has claimed', async () => {
    const [owner] = deployment.accounts.agents as [(typeof deployment.accounts.agents)[number]]
    const vault = deployment.vaults.frontier as Hex
    const examination: Hex = `0x${'e1'.repeat(32)}`
    const requireExamination = (required: Hex) =>
      chain.administer({
        address: deployment.contracts.VaultTrackRegistry,
        abi: vaultTrackRegistryAbi,
        functionName: 'setRequiredExamination',
        args: [vault, 0n, required],
      })
    await requireExamination(examination)
    const { page, problems } = await openPage(browser)
    await page.goto(`${serviceUrl}/app/agents/${agent.agentId}`)
    const panel = page.getByRole('region', { name: 'Promotion' })
    await panel.getByText(`The track requires a certificate of examination ${examination}`).waitFor()
    await chain.send(owner, {
      address: deployment.contracts.OwnerControls as Hex,
      abi: ownerControlsAbi,
      functionName: 'claimCertificate',
      args: [BigInt(agent.agentId), examination, `0x${'c0'.repeat(32)}`],
    })
    await page.reload()
    await panel.getByText('Claimed by the owner').waitFor()
    expect(await panel.getByText('requires a certificate').count()).toBe(0)
    expect(problems).toEqual([])
    await closeContext(page)
    await requireExamination(zeroHash)
  })

  it('the pages show a trade of any agent with its note within two seconds, and what was signed for it', async () => {
    const { page, problems } = await openPage(browser)
    await page.goto(`${serviceUrl}/app/trades`)
    await page.getByLabel('Vault').selectOption('frontier')
    await page.getByLabel('Token').selectOption('HOOD')
    await expect.poll(() => page.url()).toContain('/app/trades?vault=frontier&symbol=HOOD')
    await page.getByText('Live', { exact: true }).waitFor()
    const note = `Breakout above 120, ${'for a reason that takes more than a line, '.repeat(5).trim()}`
    const talker = await register(2, 'Talking agent', 'frontier')
    const { digest } = await trade(talker, 'open', { symbol: 'HOOD', usdcAmount: '50', exits: '-500:10000', note })
    const row = page.getByRole('row').filter({ hasText: note })
    await row.waitFor()
    for (const text of ['Talking agent', 'Opened', 'HOOD', '50.00']) expect(await row.innerText()).toContain(text)
    const table = page.getByRole('region', { name: 'Trades, table' })
    expect(await table.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0)
    const name = row.getByRole('link', { name: 'Talking agent' })
    expect(await name.evaluate(link => link.getClientRects().length)).toBe(1)
    const csvOf = async (list: string) => {
      const link = await page.getByRole('link', { name: `CSV of ${list}` }).getAttribute('href')
      return (await fetch(serviceUrl + link)).text()
    }
    expect(await csvOf('the trades')).toContain(note)
    await page.getByLabel('Kind').selectOption('Exit fired')
    await row.waitFor({ state: 'detached' })
    expect(new URL(page.url()).searchParams.get('type')).toBe('ExitExecuted')
    await page.getByLabel('Kind').selectOption('All')
    await page.getByLabel('Token').selectOption('All')
    await page.getByLabel('Id of an agent').fill(talker.agentId)
    await page.getByLabel('Id of an agent').press('Enter')
    await page.waitForURL(`${serviceUrl}/app/trades?agent=${talker.agentId}`)
    await row.waitFor()
    await expect.poll(() => page.getByRole('rowheader').count()).toBe(1)
    expect(await row.getByRole('link', { name: 'Talking agent' }).count()).toBe(1)
    expect(await csvOf('the trades')).toContain(note)
    await trade(talker, 'open', { symbol: 'COIN', usdcAmount: '60', exits: '-500:10000' })
    const newer = page.getByRole('button', { name: 'Show 1 new trade' })
    await newer.waitFor()
    expect(await page.getByRole('rowheader').count()).toBe(1) // the list keeps still until it is asked
    await newer.click()
    await expect.poll(() => page.getByRole('rowheader').count()).toBe(2)
    expect(await newer.count()).toBe(0)
    await page.goto(`${serviceUrl}/app/intents/${digest}`)
    const signed = page.getByRole('region', { name: 'What was signed' })
    await signed.waitFor()
    const words = (await signed.innerText()).replaceAll(/\s+/g, ' ')
    await page.getByRole('heading', { level: 1, name: 'Buy a token as a new position' }).waitFor()
    for (const text of ['HOOD', '50.00 USDC', 'stop-loss at -5 %: sell 100 %']) expect(words).toContain(text)
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('a figure reads the same on every page that shows it', async () => {
    const { page, problems } = await openPage(browser)
    // The same figure in parts per million and in basis points, as the service cuts them.
    const [ppm, bps] = [5_099, 50]
    const replace = (given: unknown): unknown =>
      typeof given !== 'object' || given === null
        ? given
        : Array.isArray(given)
          ? given.map(replace)
          : Object.fromEntries(
              Object.entries(given).map(([name, value]) =>
                /ppm$/i.test(name)
                  ? [name, ppm]
                  : ['returnBps', 'currentDrawdownBps', 'drawdownBps'].includes(name)
                    ? [name, bps]
                    : [name, replace(value)],
              ),
            )
    await page.route(/\/(leaderboard|stats|risk-state|equity-history)(\?|$)/, async route => {
      if (route.request().resourceType() === 'document') return route.fallback()
      await route.fulfill({ json: replace(await (await route.fetch()).json()) })
    })
    const paths = ['/', '/app/leaderboard', `/app/agents/${agent.agentId}`, `/app/compare?agents=${agent.agentId}`]
    for (const path of [...paths, '/app/vaults/frontier']) {
      await page.goto(serviceUrl + path)
      const text = () => page.locator('main').innerText()
      await expect.poll(text, { message: path }).toMatch(/\b0\.50\s%/)
      await page.locator('.skeleton').first().waitFor({ state: 'detached' })
      expect(await text(), path).not.toMatch(/\b0\.51\s%/)
    }
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('a loss of nearly ten billion, and names of 64 letters, fit on the smallest phone', async () => {
    const { page, problems } = await openPage(browser, { viewport: { width: 320, height: 800 } })
    const replace = (given: unknown): unknown =>
      Array.isArray(given)
        ? given.map(replace)
        : typeof given !== 'object' || given === null
          ? given
          : Object.fromEntries(
              Object.entries(given).map(([name, value]) => [
                name,
                /PnlUsdc$/i.test(name) && value !== null
                  ? '-9876543210123456'
                  : /^(name|agentName)$/.test(name)
                    ? 'W'.repeat(64)
                    : replace(value),
              ]),
            )
    await page.route(/\/(vaults|agents|tokens)\b/, async route => {
      const { pathname } = new URL(route.request().url())
      if (pathname.startsWith('/app/') || pathname.endsWith('/events')) return route.fallback()
      await route.fulfill({ json: replace(await (await route.fetch()).json()) })
    })
    const loser = await register(11, 'Losing agent', 'frontier')
    const { positionId: closed } = await trade(loser, 'open', {
      symbol: 'COIN',
      usdcAmount: '60',
      exits: '-900:10000',
    })
    await trade(loser, 'reduce', { positionId: closed, exitBps: '10000' })
    const of = `/app/agents/${loser.agentId}`
    for (const path of [of, `${of}/positions/${closed}`, '/app/vaults', '/app/vaults/frontier', '/app/tokens/COIN']) {
      await page.goto(serviceUrl + path)
      await page.locator('main h1').waitFor()
      await page.locator('.skeleton').first().waitFor({ state: 'detached' })
      expect(await page.evaluate('document.documentElement.scrollWidth'), path).toBe(320)
    }
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('an agent is compared with shares of its vault, its tokens with today, and corporate actions are on the chart', async () => {
    const { page, problems } = await openPage(browser)
    const comparedAgent = await register(4, 'Compared agent', 'frontier')
    await trade(comparedAgent, 'open', { symbol: 'COIN', usdcAmount: '100', exits: '-900:10000' })
    const { createdAt } = (await request(`/agents/${comparedAgent.agentId}`)).agent
    // A share price before the first equity, and one that is a tenth higher since.
    await page.route('**/vaults/*/stats?*', async route => {
      const stats = await (await route.fetch()).json()
      const point = {
        ...stats.sharePrices.at(-1),
        timestamp: `${Number(createdAt) - 3_600}`,
        sharePriceUsdc: '1000000',
      }
      const risen = { ...point, timestamp: `${Number(createdAt) + 1}`, sharePriceUsdc: '1100000' }
      await route.fulfill({ json: { ...stats, opening: point, sharePrices: [risen] } })
    })
    await page.route('**/prices/COIN/candles?interval=1d*', async route => {
      const list = await (await route.fetch()).json()
      await route.fulfill({ json: { ...list, candles: { ...list.candles, o: ['100'], c: ['102.509'] } } })
    })
    await page.route('**/tokens/COIN/corporate-actions', async route => {
      const list = await (await route.fetch()).json()
      const { blockTimestamp: at } = list.asOf
      const change = { oldMultiplier: '1', newMultiplier: '2', effectiveAt: `${Number(at) - 60}`, announcedAt: at }
      const place = { blockNumber: '1', logIndex: 0, transactionHash }
      await route.fulfill({ json: { ...list, actions: [{ state: 'effective', ...change, ...place }] } })
    })
    await page.goto(`${serviceUrl}/app/agents/${comparedAgent.agentId}`)
    const equity = page.getByRole('region', { name: 'Equity and drawdown' })
    await equity.getByText('As shares of the vault').waitFor()
    expect(await equity.locator('path.benchmark').first().getAttribute('d')).toMatch(/^M[\d.]+ [\d.]+/)
    const moved = page.getByRole('article', { name: /^COIN/ }).getByText('today (UTC)')
    expect((await moved.innerText()).replaceAll(/\s+/g, ' ')).toBe('today (UTC) +2.50 %')
    await page.goto(`${serviceUrl}/app/tokens/COIN?agent=${comparedAgent.agentId}`)
    const mark = page.locator('path.happened.action')
    await mark.waitFor()
    expect(await mark.textContent()).toBe('Corporate action: one token stands for 2 shares instead of 1')
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('a host of MCP Apps shows the result of a tool as a card, which loads nothing and follows its theme', async () => {
    const { page, problems, hosts } = await openPage(browser, { viewport: { width: 400, height: 600 } })
    const document = readFileSync(join(import.meta.dirname, '../../public/app/card.html'), 'utf8')
    // The policy that hosts must use for a document that names no domains.
    const policy =
      "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src data:"
    const framed = document.replace('<head>', `<head><meta http-equiv="Content-Security-Policy" content="${policy}">`)
    const { structured, input } = {
      structured: await request(`/agents/${agent.agentId}/risk-state`),
      input: { symbol: '<b>NVDA</b>', usdcAmount: '250' },
    }
    await page.setContent('<iframe title="card" sandbox="allow-scripts" width="400" height="400"></iframe>')
    await page.evaluate(`(() => {
      const frame = document.querySelector('iframe')
      window.seen = []
      const send = message => frame.contentWindow.postMessage({ jsonrpc: '2.0', ...message }, '*')
      window.show = (input, structuredContent) => {
        send({ method: 'ui/notifications/tool-input', params: { arguments: input } })
        send({ method: 'ui/notifications/tool-result', params: { content: [], structuredContent } })
      }
      addEventListener('message', ({ data }) => {
        window.seen.push(data.method)
        if (data.method === 'ui/initialize')
          send({ id: data.id, result: { protocolVersion: '2026-01-26', hostContext: { theme: 'dark' } } })
      })
      frame.srcdoc = ${JSON.stringify(framed).replaceAll('<', '\\u003c')}
    })()`)
    await expect.poll(() => page.evaluate('window.seen')).toContain('ui/notifications/initialized')
    const show = (result: object) => page.evaluate(`window.show(${JSON.stringify(input)}, ${JSON.stringify(result)})`)
    const card = page.frameLocator('iframe')
    await show(structured)
    await card.getByText('Return on the track').waitFor()
    expect(await card.locator('html').getAttribute('data-theme')).toBe('dark')
    await show({ passes: false, failedChecks: ['EXCEEDS_ALLOCATION_CAP'], lossAtStopUsdc: '-1250000' })
    await card.getByText('would be refused').waitFor()
    const text = (await card.locator('body').innerText()).replaceAll(/\s+/g, ' ')
    expect(text).toBe(
      '<b>NVDA</b> would be refused Amount 250 USDC Loss at the stop −1.25 USDC Refused for EXCEEDS_ALLOCATION_CAP',
    )
    await show({ positionId, transactionHash, agentId: agent.agentId, fill: { usdcAmount: 'x', costBps: 5 } })
    await card.getByText('executed').waitFor()
    expect(await page.evaluate('window.seen')).toContain('ui/notifications/size-changed')
    expect([...hosts].filter(Boolean)).toEqual([])
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the page of a transaction finds its trade behind a page of others of the same block', async () => {
    const { page, problems } = await openPage(browser)
    await page.route(/\/trades\?/, async route => {
      const json = (await (await route.fetch()).json()) as { trades: { id: string; blockNumber: string }[] }
      const next = btoa(`${json.trades[0]?.blockNumber}-9999`).replace(/=+$/, '')
      const isSecond = route.request().url().includes(next)
      const others = json.trades.slice(0, 1).map(trade => ({ ...trade, transactionHash: `0x${'1'.repeat(64)}` }))
      await route.fulfill({ json: isSecond ? json : { ...json, trades: others, nextCursor: next } })
    })
    await page.goto(`${serviceUrl}/app/transactions/${transactionHash}`)
    await page.getByRole('heading', { level: 1, name: 'Opened: PLTR' }).waitFor()
    expect(await page.getByRole('table', { name: 'Trades' }).getByRole('row').count()).toBe(2)
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the pages show what an open order waits for until it is cancelled, and its line among the prices', async () => {
    const { page, problems } = await openPage(browser)
    const waiting = await register(3, 'Waiting agent', 'frontier')
    const path = `/agents/${waiting.agentId}`
    await chain.setPrice('AMZN', '125')
    await page.goto(`${serviceUrl}/app${path}`)
    await page.getByText('Live', { exact: true }).waitFor()
    const input = { type: 'limit', symbol: 'AMZN', usdcAmount: '250', price: '120', exits: '-500:10000' }
    const { orderId } = await trade(waiting, 'order', input)
    const orders = page.getByRole('region', { name: 'Orders', exact: true })
    const rowOf = (table: string) =>
      orders.getByRole('table', { name: table }).getByRole('row').filter({ hasText: 'AMZN' })
    const open = rowOf('Open orders')
    await open.waitFor()
    const words = (await open.innerText()).replaceAll(/\s+/g, ' ')
    expect(words).toContain('Buy 250.00 USDC of AMZN at 120.00 USD or lower')
    expect(words).toContain('the price to fall by 4.00 %, to 120.00 USD')
    await open.getByRole('link', { name: 'AMZN' }).click()
    await page
      .getByRole('slider', { name: /^Prices of AMZN/ })
      .getByText('order to buy')
      .waitFor()
    await page.goBack()
    await open.waitFor()
    const { positionId } = await trade(waiting, 'open', { symbol: 'HOOD', usdcAmount: '50', exits: '-900:10000' })
    await trade(waiting, 'order', { type: 'trailingStop', positionId, trailPercent: '5' })
    const stop = orders.getByRole('rowheader').filter({ hasText: 'HOOD' })
    await stop.waitFor()
    expect((await stop.innerText()).replaceAll(/\s+/g, ' ')).toMatch(
      new RegExp(`^Sell all of HOOD #${positionId} when it falls 5.00 % below its peak of [\\d.]+ USD$`),
    )
    await stop.getByRole('link').click()
    await page
      .getByRole('slider', { name: /^Prices of HOOD/ })
      .getByText('order to sell')
      .waitFor()
    await page.getByRole('img', { name: /Open order to sell at [\d.]+ USD/ }).waitFor()
    await page.getByRole('link', { name: 'All trades in HOOD' }).click()
    const prices = page.getByRole('slider', { name: /^Prices of HOOD/ })
    for (const level of ['entry', 'stop −9.0\u00a0%', 'order to sell']) await prices.getByText(level).waitFor()
    await page.goBack()
    await page.goBack()
    await page.getByRole('img', { name: /Open order to sell at [\d.]+ USD/ }).waitFor()
    await open.waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    await cancelOrder(waiting, orderId)
    await open.waitFor({ state: 'detached' })
    await orders.getByText('Past orders').click()
    await rowOf('Past orders').getByText('cancelled').waitFor()
    await page.goto(`${serviceUrl}/app/intents/${orderId}`)
    const signed = page.getByRole('region', { name: 'What was signed' })
    await signed.getByText('Now: cancelled.').waitFor()
    const terms = (await signed.innerText()).replaceAll(/\s+/g, ' ')
    for (const text of [
      'buy as a new position',
      'AMZN',
      '250.00 USDC',
      'an oracle price of 120 USD or less',
      'stop-loss at -5 %: sell 100 %',
    ])
      expect(terms).toContain(text)
    const { transactionHash: placement } = (await request(`/intents/${orderId}`)) as { transactionHash: string }
    await page.goto(`${serviceUrl}/app/transactions/${placement}`)
    await page.getByRole('heading', { level: 1, name: 'Place an order that waits on chain' }).waitFor()
    const asked = page.getByRole('region', { name: 'What it asked for' })
    await asked.getByRole('link', { name: 'Waiting agent' }).waitFor()
    await asked.getByRole('link', { name: 'AMZN' }).waitFor()
    await page.getByRole('region', { name: 'What came of it' }).getByText('Order placed').waitFor()
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the pages show what happened between their reads and the opening of their stream', async () => {
    const { page, problems } = await openPage(browser)
    const early = await register(3, 'Early agent', 'frontier')
    const path = `/agents/${early.agentId}`
    const input = { type: 'limit', symbol: 'AMZN', usdcAmount: '50', price: '100', exits: '-500:10000' }
    const { orderId } = await trade(early, 'order', input)
    const stream = Promise.withResolvers<void>()
    await page.route(/\/events$/, async route => {
      await stream.promise
      await route.continue()
    })
    await page.goto(`${serviceUrl}/app${path}`)
    const orders = page.getByRole('region', { name: 'Orders', exact: true })
    await orders.getByRole('table', { name: 'Open orders' }).waitFor()
    await cancelOrder(early, orderId)
    stream.resolve()
    // Half of the interval at which the page reads past orders anyway.
    await orders.getByText('Past orders').click({ timeout: 60_000 })
    await orders.getByRole('table', { name: 'Past orders' }).getByText('cancelled').waitFor()
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the pages draw on the page of an agent what it did among the prices, first of the token it bought last', async () => {
    const { page, problems } = await openPage(browser)
    const drawn = await register(4, 'Drawn agent', 'frontier')
    for (const symbol of ['META', 'HOOD']) await trade(drawn, 'open', { symbol, usdcAmount: '50', exits: '-900:10000' })
    await page.goto(`${serviceUrl}/app/agents/${drawn.agentId}`)
    const pricesOf = (symbol: string) => page.getByRole('slider', { name: new RegExp(`^Prices of ${symbol}`) })
    for (const level of ['entry', 'stop −9.0\u00a0%']) await pricesOf('HOOD').getByText(level).waitFor()
    await page.getByRole('form', { name: 'Token of the chart' }).getByLabel('Token').selectOption('META')
    await pricesOf('META').getByText('entry').waitFor()
    expect(page.url()).toContain('?symbol=META')
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the pages end the chart with the figures above it, after each trade', async () => {
    const { page, problems } = await openPage(browser)
    await page.goto(`${serviceUrl}/app/agents/${agent.agentId}`)
    await page.getByText('Live', { exact: true }).waitFor()
    await page.locator('.chart-legend .key').first().waitFor()
    // In one step, so that nothing is drawn in between.
    const read = () =>
      page.evaluate<[figures: string[], chart: string[]]>(`(() => {
        const textOf = element => element.textContent.replace(/Equity|Drawdown|−/g, '').trim()
        const figures = [...document.querySelectorAll('.figures > div')]
        const named = name => textOf(figures.find(figure => figure.textContent.startsWith(name)).querySelector('dd'))
        return [[named('Equity'), named('Drawdown')], [...document.querySelectorAll('.chart-legend .key:not(.benchmark)')].map(textOf)]
      })()`)
    const { positionId: other } = await trade(agent, 'open', { symbol: 'NVDA', usdcAmount: '90', exits: '-900:10000' })
    await page.getByRole('link', { name: /NVDA/ }).first().waitFor()
    await trade(agent, 'reduce', { positionId: other, exitBps: '10000' })
    for (const deadline = Date.now() + 3_000; Date.now() < deadline; ) {
      const [figures, chart] = await read()
      expect(chart).toEqual(figures)
    }
    await page.getByText('No open position.').waitFor()
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the pages draw an agent from its registration on, and set results of earlier tracks apart from its capital', async () => {
    const { page, problems } = await openPage(browser)
    const { agent: registered } = await request(`/agents/${agent.agentId}`)
    // As after a promotion: the lifetime has 1,000 USDC more than the record of the present capital.
    await page.route('**/risk-state', async route => {
      const state = await (await route.fetch()).json()
      const lifetimeRealizedUsdc = `${BigInt(state.pnl.lifetimeRealizedUsdc) + 1_000_000_000n}`
      await route.fulfill({ json: { ...state, pnl: { ...state.pnl, lifetimeRealizedUsdc } } })
    })
    const series = page.waitForRequest('**/equity-history?*')
    await page.goto(`${serviceUrl}/app/agents/${agent.agentId}`)
    expect(new URL((await series).url()).searchParams.get('from')).toBe(registered.createdAt)
    const earlier = page.locator('.figures > div', { hasText: 'On earlier tracks' })
    await earlier.waitFor()
    expect(await earlier.innerText()).toContain('+1,000.00')
    const present = page.locator('.figures > div', { hasText: 'Realized on the track' })
    expect(await present.innerText()).not.toContain('1,0')
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the pages keep the page of a list in the address, and a shared one leads to the first', async () => {
    const { page, problems } = await openPage(browser)
    for (let count = 0; count < 8; count++) {
      const { positionId: each } = await trade(hostile, 'open', {
        symbol: 'NVDA',
        usdcAmount: '60',
        exits: '-900:10000',
      })
      await trade(hostile, 'reduce', { positionId: each, exitBps: '10000' })
    }
    await page.goto(`${serviceUrl}/app/agents/${hostile.agentId}`)
    const trades = page.getByRole('region', { name: 'Trades', exact: true }).first()
    const times = () => trades.getByRole('rowheader').allInnerTexts()
    const first = await expect.poll(times).toHaveLength(15).then(times)
    await trades.getByRole('button', { name: 'Older' }).click()
    await page.waitForURL(/trades=/)
    await expect.poll(times).toHaveLength(1)
    await trades.getByRole('button', { name: 'Newer' }).click()
    await expect.poll(times).toEqual(first)
    await page.goBack()
    await expect.poll(times).toHaveLength(1)
    const shared = await page.context().newPage()
    await shared.goto(page.url())
    const pages = shared.getByRole('region', { name: 'Trades', exact: true }).first()
    await pages.getByRole('button', { name: 'First page' }).click()
    await expect.poll(() => pages.getByRole('rowheader').allInnerTexts()).toEqual(first)
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the pages show what an agent realized on each day, and compare it with another', async () => {
    const { page, problems } = await openPage(browser)
    const text = async (name: string) =>
      (await page.getByRole('region', { name, exact: true }).first().innerText()).replaceAll(/\s+/g, ' ')
    await page.goto(`${serviceUrl}/app/agents/${hostile.agentId}`)
    await page.getByText('Realized by sales').waitFor()
    const { pnlByDay, returnPpm, trades } = await request(`/agents/${hostile.agentId}/stats`)
    expect(pnlByDay.length).toBeGreaterThan(0)
    const today = page.locator('.calendar :is(.gain, .fall)')
    expect(await today.count()).toBe(pnlByDay.length)
    expect(await text('Statistics')).toContain(`Trades ${trades}`)
    await page.getByRole('combobox', { name: 'Period' }).selectOption('Today')
    await page.waitForURL(/stats=day/)
    await page.getByRole('link', { name: 'Compare', exact: true }).click()
    await page.getByRole('slider', { name: /^Returns of an agent/ }).waitFor()
    await page.getByLabel('Id of an agent').fill(agent.agentId)
    await page.getByRole('button', { name: 'Add' }).click()
    const chart = page.getByRole('slider', { name: /^Returns of 2 agents/ })
    await chart.waitFor()
    const shown = `${(Math.abs(Math.trunc(returnPpm / 100)) / 100).toFixed(2)}`
    await expect.poll(() => text('Since registration')).toContain(shown)
    expect(await chart.getAttribute('aria-valuetext')).toContain(`Watched agent #${agent.agentId} `)
    expect(await page.locator('.chart-legend .numbered').count()).toBe(2)
    await page.getByRole('button', { name: `Remove agent ${hostile.agentId}` }).click()
    await page.waitForURL(`${serviceUrl}/app/compare?agents=${agent.agentId}`)
    await page.goto(`${serviceUrl}/app/leaderboard?period=all`)
    const all = await page.getByRole('link', { name: 'Compare the first of them' }).getAttribute('href')
    expect(all?.split(',').length).toBeGreaterThan(1)
    const csv = await page.getByRole('link', { name: 'CSV of the leaderboard' }).getAttribute('href')
    expect(await (await fetch(serviceUrl + csv)).text()).toContain('Watched agent')
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the pages show what each agent gained with the money of a vault, and how much of it the agent may use', async () => {
    const { page, problems } = await openPage(browser)
    const { allocation } = await request(`/agents/${agent.agentId}/risk-state`)
    // Contributions are of final hours, which the agents of this chain have not had.
    await page.route('**/vaults/frontier/stats?*', async route => {
      const { performance, ...stats } = await (await route.fetch()).json()
      const contributions = [{ agentId: agent.agentId, name: 'Watched agent', pnlUsdc: '-12500000' }]
      await route.fulfill({ json: { ...stats, performance: { ...performance, contributions } } })
    })
    await page.goto(`${serviceUrl}/app/vaults/frontier`)
    const row = page
      .getByRole('table', { name: 'Gains and losses by agent' })
      .getByRole('row')
      .filter({ hasText: 'Watched agent' })
    await row.getByText('in use').waitFor()
    const words = (await row.innerText()).replaceAll(/\s+/g, ' ')
    expect(words).toContain('−12.50 USDC')
    expect(words).toContain(`${(Number(allocation.cap) / 1e6).toLocaleString('en', { minimumFractionDigits: 2 })} USDC`)
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the pages show that a reorg took something back', async () => {
    const { page, problems } = await openPage(browser)
    await page.goto(`${serviceUrl}/app/agents/${hostile.agentId}`)
    await page.getByText('Live', { exact: true }).waitFor()
    const stopped = page.getByText('buying stopped by the owner', { exact: true })
    const { body, typedData } = await request(`/agents/${hostile.agentId}/stop/quote?action=reduceOnly`)
    const signature = await sign(hostile, typedData)
    async function stopAndSeeIt() {
      const { blockNumber } = await chain.send(deployment.accounts.payer, {
        address: deployment.contracts.OwnerControls ?? '0x',
        abi: ownerControlsAbi,
        functionName: 'stopBuying',
        args: [[BigInt(hostile.agentId)], BigInt(body.nonce), BigInt(body.deadline), signature],
      })
      await stopped.waitFor()
      // Only an event that was published can be withdrawn.
      const published = async () => BigInt((await request('/health/ready')).events.blockNumber)
      await expect.poll(published, { timeout: 240_000 }).toBeGreaterThanOrEqual(blockNumber)
    }
    await chain.reorg(stopAndSeeIt)
    await page.getByText(/The chain dropped its blocks after [\d,]+; .+ withdrawn\./).waitFor()
    await stopped.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Dismiss' }).click()
    expect(await page.getByText('The chain dropped its blocks').count()).toBe(0)
    // Until the new branch is as long as the old one, the service returns NODES_BEHIND.
    expect(problems.filter(problem => !/status of 502/.test(problem))).toEqual([])
    await closeContext(page)
  })

  it('the pages read again only what an event touches, and keep still while they are read', async () => {
    const { page, problems } = await openPage(browser)
    await page.addInitScript(`
      window.shift = 0
      new PerformanceObserver(list => list.getEntries().forEach(entry => (window.shift += entry.value)))
        .observe({ type: 'layout-shift', buffered: true })`)
    await page.goto(`${serviceUrl}/app/agents/${agent.agentId}`)
    await page.getByText('Live', { exact: true }).waitFor()
    await page.locator('.skeleton').first().waitFor({ state: 'detached' })
    expect(await page.evaluate<number>('window.shift')).toBeLessThanOrEqual(0.05)
    const reads = { 'risk-state': 0, mandate: 0 }
    page.on('request', request => {
      const part = new URL(request.url()).pathname.split('/')[3]
      if (part === 'risk-state' || part === 'mandate') reads[part]++
    })
    await trade(agent, 'open', { symbol: 'COIN', usdcAmount: '70', exits: '-900:10000' })
    await page.getByRole('link', { name: /COIN/ }).first().waitFor()
    expect(reads.mandate).toBeLessThan(reads['risk-state']) // both are also read at the same intervals
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it.each(inject('isLong') ? [360, 1440] : [360])('the pages keep still while they are read at %d px', async width => {
    const { page, problems } = await openPage(browser, { viewport: { width, height: 900 } })
    await page.addInitScript(`
        window.shift = 0
        new PerformanceObserver(list => list.getEntries().forEach(entry => (window.shift += entry.value)))
          .observe({ type: 'layout-shift', buffered: true })`)
    const ofAgent = `/app/agents/${agent.agentId}`
    const paths = ['/', '/app/vaults/frontier', '/app/leaderboard', '/app/trades', ofAgent, '/app/owner', '/app/status']
    const shifts: Record<string, number> = {}
    for (const path of paths) {
      await page.goto(serviceUrl + path)
      await page.getByText('Live', { exact: true }).waitFor()
      await page.locator('.skeleton').first().waitFor({ state: 'detached' })
      shifts[path] = await page.evaluate<number>('window.shift')
    }
    expect(Object.entries(shifts).filter(([, shift]) => shift > 0.05)).toEqual([])
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the pages begin the reads of a page together, and make each of them once', async () => {
    const { page, problems } = await openPage(browser)
    const { agentId } = agent
    const isRiskRead = page.waitForRequest(`**/agents/${agentId}/risk-state`)
    await page.route(`${serviceUrl}/agents/${agentId}`, async route => {
      await isRiskRead
      await route.continue()
    })
    await page.goto(`${serviceUrl}/app/agents/${agentId}`)
    await page.getByRole('heading', { name: 'Watched agent' }).waitFor()
    await page.goto('about:blank') // ends the reads of that page
    const statistics: string[] = []
    page.on('request', request => /\/vaults\/.*\/stats/.test(request.url()) && statistics.push(request.url()))
    await page.goto(`${serviceUrl}/app/vaults/frontier`)
    await page.getByRole('slider', { name: /^Share price/ }).waitFor()
    await page.locator('.skeleton').first().waitFor({ state: 'detached' })
    // The days, and the hours of a young vault.
    expect(statistics.map(url => new URL(url).searchParams.get('interval'))).toEqual(['1d', '1h'])
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the status page says in an outage that trading is not possible and why, in an open tab and in a fresh one', async () => {
    const { page, problems } = await openPage(browser)
    const verdict = page.getByRole('status').filter({ hasText: 'Trading is' })
    await page.goto(`${serviceUrl}/app/status`)
    await verdict.filter({ hasText: 'Trading is possible' }).waitFor()
    await chain.pauseRegistry(true)
    try {
      for (const _tab of ['open', 'fresh']) {
        await verdict.filter({ hasText: 'the agent registry is paused' }).waitFor()
        await page
          .getByRole('row', { name: /Registration/ })
          .filter({ hasText: 'paused' })
          .waitFor()
        await page.reload()
      }
    } finally {
      await chain.pauseRegistry(false)
    }
    await verdict.filter({ hasText: 'Trading is possible' }).waitFor()
    expect(problems.filter(problem => !/status of 503/.test(problem))).toEqual([])
    await closeContext(page)
  })

  it('the status page shows each state of readiness without a fault of the page', async () => {
    const { page, problems } = await openPage(browser)
    const { status: _, ...report } = await request('/health/ready')
    const [lane, ...lanes] = report.executor.lanes
    const paused = { ...lane, paused: true, pausedFor: 'GAS_PRICE_TOO_HIGH' }
    const late = { ...report.history, lagBlocks: 900, lagSeconds: 1_800 }
    const states: [what: string, status: 200 | 503, details: object, shows: string][] = [
      ['the node stopped', 503, {}, 'the node stopped'],
      ['prices are stale', 503, { oracle: { ...report.oracle, stale: ['NVDA'] } }, 'stale: NVDA'],
      ['a lane is paused', 503, { executor: { ...report.executor, lanes: [paused, ...lanes] } }, 'GAS_PRICE_TOO_HIGH'],
      [
        'the market is closed',
        200,
        { oracle: { ...report.oracle, market: 'closed', nextOpen: '4102444800' } },
        'opens',
      ],
      ['the index is behind', 200, { history: late }, '900 blocks behind'],
      ['a migration is missing', 200, { history: { ...late, pendingMigrations: ['0009_more'] } }, '0009_more'],
    ]
    for (const [what, status, details, shows] of states) {
      const refusal = { error: what, code: 'NOT_READY', remedy: 'See problems.', retryable: true }
      const body = { ...report, ...details, problems: [what] }
      const refused = { ...refusal, details: Object.keys(details).length === 0 ? {} : body }
      await page.route('**/health/ready', route =>
        route.fulfill({ status, json: status === 200 ? { status: 'ready', ...body } : refused }),
      )
      await page.goto(`${serviceUrl}/app/status`)
      const verdict =
        status === 200 ? 'Trading is possible; some parts need attention.' : 'Trading is not possible now.'
      await page.getByRole('status').filter({ hasText: verdict }).filter({ hasText: what }).waitFor()
      await page.getByRole('main').getByText(shows).first().waitFor()
      expect(await page.getByText('fault of the page').count()).toBe(0)
      await page.unroute('**/health/ready')
    }
    expect(problems.filter(problem => !/status of 503/.test(problem))).toEqual([])
    await closeContext(page)
  })

  it('the pages end their stream while nobody sees them, and then read what they have missed', async () => {
    const { page, problems } = await openPage(browser)
    const isStream = (request: Request) => /\/events$/.test(new URL(request.url()).pathname)
    await page.goto(`${serviceUrl}/app/agents/${agent.agentId}`)
    await page.getByText('Live', { exact: true }).waitFor()
    const ended = page.waitForEvent('requestfailed', isStream)
    await page.evaluate(setVisibility('hidden'))
    await ended
    const { positionId } = await trade(agent, 'open', { symbol: 'NVDA', usdcAmount: '60', exits: '-900:10000' })
    const resumed = page.waitForRequest(isStream)
    await page.evaluate(setVisibility('visible'))
    await resumed
    await page.getByRole('article', { name: `NVDA, position ${positionId}` }).waitFor()
    await trade(agent, 'reduce', { positionId, exitBps: '10000' })
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the pages share one stream between tabs, which another tab takes over from the one that leaves', async () => {
    const { page: first, problems } = await openPage(browser)
    const streams: Page[] = []
    const opened = (page: Page) =>
      page.on('request', request => /\/events$/.test(new URL(request.url()).pathname) && streams.push(page))
    const second = await first.context().newPage()
    const open = async (page: Page) => {
      opened(page)
      await page.goto(`${serviceUrl}/app/agents/${agent.agentId}`)
      await page.getByText('Live', { exact: true }).waitFor()
    }
    await open(first)
    await open(second)
    await trade(agent, 'open', { symbol: 'TSLA', usdcAmount: '60', exits: '-900:10000' })
    for (const page of [first, second]) await page.getByRole('link', { name: /TSLA/ }).first().waitFor()
    expect(streams).toEqual([first])
    await first.close()
    await expect.poll(() => streams).toEqual([first, second])
    await second.getByText('Live', { exact: true }).waitFor()
    await trade(agent, 'open', { symbol: 'META', usdcAmount: '60', exits: '-900:10000' })
    await second.getByRole('link', { name: /META/ }).first().waitFor()
    expect(problems).toEqual([])
    await closeContext(second)
  })

  if (inject('isLong'))
    it('the pages take over the stream of a tab that falls silent, which then listens', async () => {
      const { page: first, problems } = await openPage(browser)
      const streams: Page[] = []
      const second = await first.context().newPage()
      for (const page of [first, second]) {
        page.on('request', request => /\/events$/.test(new URL(request.url()).pathname) && streams.push(page))
        await page.goto(`${serviceUrl}/app/agents/${agent.agentId}`)
        await page.getByText('Live', { exact: true }).waitFor()
      }
      const debug = await first.context().newCDPSession(first)
      await debug.send('Debugger.enable')
      await debug.send('Debugger.pause')
      first.evaluate('1').catch(() => {}) // the next script of the page is where it stops
      await expect.poll(() => streams, { timeout: 60_000 }).toEqual([first, second])
      await second.getByText('Live', { exact: true }).waitFor()
      await debug.send('Debugger.resume')
      await debug.detach()
      await trade(agent, 'open', { symbol: 'HOOD', usdcAmount: '60', exits: '-900:10000' })
      for (const page of [first, second]) await page.getByRole('link', { name: /HOOD/ }).first().waitFor()
      expect(streams.at(1)).toBe(second)
      expect(problems).toEqual([])
      await closeContext(first)
    })

  it.each([0, 1, 2, 3])('the pages draw %d candles and points inside their charts on a phone', async count => {
    const { page, problems } = await openPage(browser, { viewport: { width: 360, height: 800 } })
    await page.route('**/prices/PLTR/candles?*', async route => {
      const { candles, ...rest } = await (await route.fetch()).json()
      const newest = Object.entries<string[]>(candles).map(([name, column]) => [
        name,
        column.slice(column.length - count),
      ])
      await route.fulfill({ json: { ...rest, candles: Object.fromEntries(newest) } })
    })
    await page.route('**/equity-history?*', async route => {
      const { points, ...rest } = await (await route.fetch()).json()
      await route.fulfill({ json: { ...rest, opening: null, points: points.slice(points.length - count) } })
    })
    async function expectInside(path: string, shapes: string, summary: RegExp) {
      await page.goto(serviceUrl + path)
      const chart = page.getByRole('slider', { name: summary })
      await chart.locator('svg').waitFor()
      const edges = await chart.evaluate((element, shapes) => {
        const { left, right } = element.getBoundingClientRect()
        return [...element.querySelectorAll(shapes)]
          .map(shape => shape.getBoundingClientRect())
          .filter(({ width, height }) => width + height > 0)
          .map(shape => [shape.left - left, right - shape.right])
      }, shapes)
      expect(edges.length).toBeGreaterThan(0)
      expect(Math.min(...edges.flat())).toBeGreaterThanOrEqual(0)
      // The last one ends before the labels of the axis.
      expect(Math.min(...edges.map(([, right = 0]) => right))).toBeGreaterThanOrEqual(AXIS_WIDTH - 4)
      expect(await page.evaluate<boolean>('document.documentElement.scrollWidth > window.innerWidth')).toBe(false)
    }
    await expectInside(`/app/agents/${agent.agentId}`, '.line, .dot', /^Equity and drawdown/)
    const position = `/app/agents/${agent.agentId}/positions/${positionId}`
    if (count > 0) await expectInside(position, '.candles, .happened, .dot', /^Prices of PLTR/)
    else {
      await page.goto(serviceUrl + position)
      await page.getByText('No price was posted yet.').waitFor()
    }
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the pages show the first rows of a list and the values under a finger on a phone', async () => {
    const { page, problems } = await openPage(browser, {
      viewport: { width: 360, height: 800 },
      hasTouch: true,
      isMobile: true,
    })
    await page.goto(`${serviceUrl}/app/agents/${hostile.agentId}`)
    const trades = page.getByRole('region', { name: 'Trades', exact: true }).first()
    const shown = () => trades.getByRole('rowheader').filter({ visible: true }).count()
    await expect.poll(shown).toBe(6)
    await trades.getByRole('button', { name: 'Show all 15' }).tap()
    await expect.poll(shown).toBe(15)
    const chart = page.getByRole('slider', { name: /^Equity and drawdown/ })
    await chart.tap({ position: { x: 2, y: 60 } })
    await expect.poll(() => chart.getAttribute('aria-valuenow')).toBe('0')
    expect(await chart.locator('.cursor').count()).toBe(1)
    const numberIn = (text: string | null) => Number(/quity ([\d,.]+\d)/.exec(`${text}`)?.[1]?.replaceAll(',', ''))
    const first = numberIn(await chart.getAttribute('aria-valuetext'))
    expect(Math.round(numberIn(await page.locator('.chart-legend').first().innerText()))).toBe(first)
    const sizes = await page.evaluate<number[]>(
      "[...document.querySelectorAll('input, select')].map(field => Number.parseFloat(getComputedStyle(field).fontSize))",
    )
    expect(sizes.length).toBeGreaterThan(0)
    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(16)
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the page of a replaced transaction says so, and leads to the one that took its nonce', async () => {
    const { page, problems } = await openPage(browser)
    await page.route(`**/transactions/${transactionHash}`, async route => {
      if (route.request().resourceType() === 'document') return route.fallback()
      const { from, to } = await (await route.fetch()).json()
      await route.fulfill({ json: { transactionHash, status: 'pending', from, to, replacedBy: zeroHash } })
    })
    await page.goto(`${serviceUrl}/app/transactions/${transactionHash}`)
    const link = page.getByRole('link', { name: 'Another transaction took its nonce.' })
    expect(await link.getAttribute('href')).toBe(`/app/transactions/${zeroHash}`)
    expect(await page.getByText('pending', { exact: true }).count()).toBe(0)
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the page of an agent with 400 positions shows and reads ten of them at a time', async () => {
    const holder = await register(3, 'Holder of many', 'frontier')
    await trade(holder, 'open', { symbol: 'META', usdcAmount: '60', exits: '-900:10000' })
    const { page, problems } = await openPage(browser)
    const read = new Set<string>()
    await page.route('**/agents/*/positions', async route => {
      if (route.request().resourceType() === 'document') return route.fallback()
      const { positions, ...rest } = await (await route.fetch()).json()
      const copies = Array.from({ length: 400 }, (_, index) => ({ ...positions[0], positionId: `${1_000 + index}` }))
      await route.fulfill({ json: { ...rest, positions: copies } })
    })
    await page.route('**/positions/*/automation', route => {
      read.add(route.request().url())
      return route.fulfill({ status: 404, json: { error: 'It is made up.', code: 'POSITION_NOT_FOUND' } })
    })
    await page.goto(`${serviceUrl}/app/agents/${holder.agentId}`)
    const open = page.getByRole('region', { name: 'Open positions' })
    await open.getByText('400 open').waitFor()
    await expect.poll(() => read.size).toBe(10)
    expect(await open.getByRole('article').count()).toBe(10)
    await open.getByRole('button', { name: 'Next' }).click()
    await open.getByRole('article', { name: 'position 1010' }).waitFor()
    expect(await open.getByRole('article').count()).toBe(10)
    await expect.poll(() => read.size).toBe(20)
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the pages read a chart with the arrow keys', async () => {
    const { page, problems } = await openPage(browser)
    await page.goto(`${serviceUrl}/app/agents/${agent.agentId}`)
    const chart = page.getByRole('slider', { name: /^Equity and drawdown/ })
    await chart.focus()
    const read = () => chart.evaluate(({ ariaValueNow, ariaValueMax }) => [Number(ariaValueNow), Number(ariaValueMax)])
    for (const [keys, indexOf] of [
      [['Home'], () => 0],
      [['Home', 'ArrowRight'], last => Math.min(1, last)],
      [['Home', 'ArrowRight', 'ArrowLeft'], () => 0],
      [['End'], last => last],
    ] as [string[], (last: number) => number][]) {
      let [, before] = await read()
      for (;;) {
        for (const key of keys) await chart.press(key)
        const [now, last = 0] = await read()
        if (last === before) {
          expect(now).toBe(indexOf(last))
          break
        }
        before = last // a sample came, as one may at any time
      }
    }
    expect(await chart.getAttribute('aria-valuetext')).toMatch(/: equity [\d,]+, drawdown [−-]?\d+(\.\d+)?\s%$/)
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the pages show names of agents as text, with what would hide or reorder it', async () => {
    const { page, problems } = await openPage(browser)
    for (const path of [`/app/agents/${hostile.agentId}`, '/app/vaults/frontier']) {
      await page.goto(serviceUrl + path)
      const name = page.locator('bdi', { hasText: '<img src=x onerror=alert(1)>' }).first()
      await name.waitFor()
      expect(await name.innerText()).toBe('<img src=x onerror=alert(1)>U+202Etxt.exe')
      expect(await page.locator('main img').count()).toBe(0)
      expect(await page.locator('body').innerText()).not.toContain(RIGHT_TO_LEFT_OVERRIDE)
    }
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the pages can be linked to, reloaded and gone back to', async () => {
    const { page, problems } = await openPage(browser)
    const heading = (name: string) => page.getByRole('heading', { level: 1, name })
    await page.goto(`${serviceUrl}/app/intents/${digest}`)
    await heading('Buy a token as a new position').waitFor()
    await page.goto(`${serviceUrl}/app/transactions/${transactionHash}`)
    await page.getByText('executed', { exact: true }).waitFor()
    await heading('Opened: PLTR').waitFor()
    const did = page.getByRole('region', { name: 'What it did' })
    for (const text of ['Watched agent', '400.00']) expect(await did.innerText()).toContain(text)
    await page.goto(`${serviceUrl}/app/vaults`)
    await page.getByRole('table', { name: 'Vaults' }).getByRole('link', { name: 'Frontier' }).click()
    await heading('Frontier').waitFor()
    await page.getByRole('link', { name: 'Watched agent' }).click()
    await heading('Watched agent').waitFor()
    await page.goto(`${serviceUrl}/app/agents/${agent.agentId}/positions/${positionId}`)
    await heading('PLTR').waitFor()
    const prices = page.getByRole('slider', { name: /^Prices of PLTR/ })
    await prices.locator('.happened.entry').waitFor()
    await prices.locator('.happened.stop').waitFor() // it fired in the first test
    await page.reload()
    await heading('PLTR').waitFor()
    await page.goBack()
    await heading('Watched agent').waitFor()
    await page.goBack()
    await heading('Frontier').waitFor()
    await page.goForward()
    await heading('Watched agent').waitFor()
    await page.goto(`${serviceUrl}/app/nowhere/at/all`)
    await heading('Not found').waitFor()
    await page.goto(`${serviceUrl}/app/agents/999999`)
    await page.getByText('The service does not know this agent.').waitFor()
    await page.getByRole('link', { name: 'the start page' }).waitFor()
    await page.goto(`${serviceUrl}/app/tokens/NOTHING`)
    await page.getByText('The service does not know this token.').waitFor()
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it('the pages say that they are stale while the service is gone, and recover', async () => {
    const { page } = await openPage(browser)
    await page.goto(`${serviceUrl}/app/vaults/frontier`)
    await page.getByText('Live', { exact: true }).waitFor()
    await page.route('**/events*', route => route.abort())
    await page.reload()
    await page.getByText('Stale: no connection to the service').waitFor()
    await page.unroute('**/events*')
    await page.getByText('Live', { exact: true }).waitFor()
    expect(await page.getByText('Stale: no connection').count()).toBe(0)
    const isRead = ({ pathname }: URL) => !/^\/(app|theme|icon)/.test(pathname)
    await page.route(isRead, route => route.abort())
    await page.reload()
    await page.getByText('Stale: no connection to the service').waitFor()
    expect(await page.getByRole('alert').count()).toBe(1)
    expect(await page.getByText('Live', { exact: true }).count()).toBe(0)
    await page.unroute(isRead)
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByRole('heading', { level: 1, name: 'Frontier' }).waitFor()
    await closeContext(page)
  })

  it('the pages mark money that follows from a stale price', async () => {
    const { page, problems } = await openPage(browser)
    await page.route('**/vaults/frontier/stats?*', async route => {
      const stats = await (await route.fetch()).json()
      const held = { token: stats.asset, symbol: 'NVDA', tokenAmount: '1', priceUsd: '180', valueUsdc: '1' }
      await route.fulfill({ json: { ...stats, deployed: [{ ...held, priceStale: true }] } })
    })
    await page.route('**/tokens', async route => {
      const { tokens, ...rest } = await (await route.fetch()).json()
      const market = { session: 'regular', nextOpen: null }
      const stale = tokens.map((token: { symbol: string; price: object }) =>
        token.symbol === 'NVDA' ? { ...token, price: { ...token.price, stale: true }, market } : token,
      )
      await route.fulfill({ json: { ...rest, tokens: stale } })
    })
    for (const path of ['/', '/app/vaults/frontier', '/app/depositor?vault=frontier']) {
      await page.goto(serviceUrl + path)
      await page.getByText(/^No fresh price for NVDA: .+ the last known one\.$/).waitFor()
    }
    expect(problems).toEqual([])
    await closeContext(page)
  })

  if (inject('isLong'))
    it('the pages notice within fifteen seconds that the network has fallen silent', async () => {
      const { page } = await openPage(browser)
      await page.goto(`${serviceUrl}/app/vaults/frontier`)
      await page.getByText('Live', { exact: true }).waitFor()
      // Requests get no answer and no error, and the open stream stays open.
      await page.route('**/*', () => {})
      await page.getByText('Stale: no connection to the service').waitFor({ timeout: 15_000 })
      await page.unroute('**/*')
      await page.getByText('Live', { exact: true }).waitFor()
      await closeContext(page)
    })

  it('the pages are served at / to browsers only, under a policy that allows no other script or style', async () => {
    const asBrowser = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
    const page = await fetch(serviceUrl, { headers: asBrowser })
    expect(page.headers.get('content-type')).toContain('text/html')
    expect(page.headers.get('vary')).toContain('Accept')
    const policy = page.headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("require-trusted-types-for 'script'")
    expect(policy).not.toContain('unsafe')
    for (const accept of ['*/*', 'application/json', 'application/json, text/html;q=0.9']) {
      const json = await fetch(serviceUrl, { headers: { accept } })
      expect(json.headers.get('content-type')).toContain('application/json')
      expect(json.headers.get('vary')).toContain('Accept')
      expect(((await json.json()) as { service: string }).service).toBe('agent-trading-service')
    }
    const unknown = await fetch(`${serviceUrl}/no/such/page`, { headers: asBrowser })
    expect(unknown.status).toBe(404)
    expect(unknown.headers.get('content-security-policy')).toBe(policy)
    const statusOf = async (path: string) => (await fetch(`${serviceUrl}/app${path}`, { headers: asBrowser })).status
    const lists = ['', '/', '/vaults', '/leaderboard', '/trades', '/compare', '/owner', '/depositor', '/status']
    const ofSubjects = ['/vaults/genesis', '/tokens/BRK.B', '/agents/1/', '/agents/1/positions/1', '/intents/0x1']
    for (const path of [...lists, ...ofSubjects, '/transactions/0x1']) expect(await statusOf(path), path).toBe(200)
    for (const path of ['/nowhere', '/nowhere/at/all', '/agents', '/agents/1/nowhere', '/status/1'])
      expect(await statusOf(path), path).toBe(404)
    const refused = await fetch(`${serviceUrl}/no/such/page`)
    expect(((await refused.json()) as { code: string }).code).toBe('UNKNOWN_PATH')
    const { page: start, problems } = await openPage(browser)
    await start.goto(`${serviceUrl}/no/such/page`)
    await start.getByRole('heading', { level: 1, name: 'Not found' }).waitFor()
    await start.goto(serviceUrl)
    for (const text of [
      'As an MCP server',
      'Over HTTP',
      'With the TypeScript or Python client',
      'Best agents',
      'Genesis',
    ])
      await start.getByText(text, { exact: true }).first().waitFor()
    expect(problems).toEqual([])
    await closeContext(start)
  })
})
