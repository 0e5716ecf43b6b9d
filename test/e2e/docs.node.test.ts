import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { createPayer } from '../../packages/client/src/pay.ts'
import { errorRows } from '../../src/errors/catalogue.ts'
import type { Body } from '../support/body.ts'
import { launchBrowser } from './browser.ts'
import { closeContext, openContext } from './watched-page.ts'

// The API reference in a real browser, over the running service.

const serviceUrl = inject('serviceUrl')
const deployment = inject('deployment')
const root = join(import.meta.dirname, '../..')
const docs = `${serviceUrl}/docs`
const key = generatePrivateKey()
const account = privateKeyToAccount(key)
const hosts = new Set<string>()
const problems: string[] = []
let browser: Browser
let context: BrowserContext
let page: Page
let agentId: string

const sign = ({ types: { EIP712Domain: _, ...types }, ...rest }: Body) => account.signTypedData({ ...rest, types })
const get = async (path: string): Promise<Body> => (await fetch(serviceUrl + path)).json()

/** Registers an agent whose key the samples sign with, and pays its fee. */
async function registerAgent(): Promise<string> {
  const query = new URLSearchParams({
    signer: account.address,
    vault: `${deployment.vaults.genesis}`,
    name: 'reference',
    metadataURI: 'https://agents.example/reference.json',
  })
  const quote = await get(`/agents/register/quote?${query}`)
  const payer = createPayer({
    account: privateKeyToAccount(deployment.accounts.payer.privateKey),
    chainId: deployment.chainId,
    asset: deployment.contracts.USDC,
    maxAmount: BigInt(quote.registrationFee.amount),
  })
  const request = new Request(`${serviceUrl}/agents/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...quote.body, signature: await sign(quote.typedData) }),
  })
  const registered: Body = await (await payer.fetch(request)).json()
  return registered.agentId
}

/** Collects what a page must not do. */
function watch(watched: Page): Page {
  watched.on('request', request => hosts.add(new URL(request.url()).host))
  watched.on('pageerror', error => problems.push(error.message))
  watched.on('console', message => {
    // The browser logs the refusals that tests provoke.
    const isRefusal = /the server responded with a status of 40[04]/.test(message.text())
    if (['error', 'warning'].includes(message.type()) && !isRefusal) problems.push(message.text())
  })
  return watched
}

/** Waits until the form says what it does or got. */
const untilState = (text: string) => page.locator('[data-state]', { hasText: new RegExp(`^${text}`) }).waitFor()

beforeAll(async () => {
  ;[browser, agentId] = await Promise.all([launchBrowser(), registerAgent()])
  context = await openContext(browser, { viewport: { width: 1440, height: 900 } })
  page = watch(await context.newPage())
})
afterAll(async () => {
  await browser?.close()
})

describe('the reference', () => {
  it('the reference lists every operation under its group, and each leads to its page', async () => {
    await page.goto(docs)
    const { paths, tags } = await get('/openapi.json')
    const ids = Object.values<Body>(paths).flatMap(item =>
      Object.values<Body>(item).map(({ operationId }) => operationId),
    )
    const links = await page.locator('.operations a').evaluateAll(all => all.map(link => link.getAttribute('href')))
    expect(links.sort()).toEqual(ids.map(id => `/docs/operations/${id}`).sort())
    expect(await page.locator('section.group:has(.operations) h2').allInnerTexts()).toEqual(
      tags.map(({ name }: Body) => name),
    )
    await page.locator('.operations a', { hasText: 'Get vault statistics' }).click()
    await page.waitForURL('**/docs/operations/getVaultStats')
    await page.goBack()
    await page.waitForURL(docs)
    expect(await page.title()).toContain('API reference')
  })

  it('the reference describes an operation: parameters, body, response, errors, guides and recorded examples', async () => {
    await page.goto(`${docs}/operations/submitTradeIntent`)
    expect(await page.locator('h1').innerText()).toBe('Open a position')
    expect(await page.locator('#body-exits').innerText()).toContain('triggerBps')
    expect(await page.locator('#response-positionId').innerText()).toContain('string')
    expect(await page.locator('p.guides a').allInnerTexts()).toContain('Signing')
    expect(await page.locator('#panel-example-201-json').innerText()).toMatch(/"transactionHash": "0x[0-9a-f]{64}"/)
    await page.getByRole('tab', { name: '400' }).click()
    expect(await page.locator('#panel-example-400-json').innerText()).toContain('"code": "')
    await page.getByRole('link', { name: /codes with 429/ }).click()
    await page.waitForURL('**/docs/errors#status-429')
    await page.locator('#RATE_LIMITED').waitFor()
  })

  it('the reference sends the request of the form and shows the response, also a refusal', async () => {
    await page.goto(`${docs}/operations/getVault`)
    await page.getByRole('button', { name: 'Send' }).click()
    await untilState('200')
    expect(await page.locator('[data-result]').innerText()).toContain('"slug": "genesis"')
    await page.locator('[name="path:id"]').fill('nowhere')
    await page.getByRole('button', { name: 'Send' }).click()
    await untilState('404')
    expect(await page.locator('[data-result]').innerText()).toContain('VAULT_NOT_FOUND')
  })

  it('the reference prefills bodies with recorded values and a deadline that has not passed', async () => {
    await page.goto(`${docs}/operations/submitReduceIntent`)
    const body = JSON.parse(await page.locator('[name=body]').inputValue())
    expect(body).toMatchObject({
      positionId: expect.any(String),
      signature: expect.stringMatching(/^0x[0-9a-f]{130}$/),
    })
    expect(Number(body.deadline)).toBeGreaterThan(Date.now() / 1000 + 3_000)
    await page.locator('[name=body]').fill('{')
    await page.getByRole('button', { name: 'Send' }).click()
    await untilState('The body is not JSON')
  })

  it('the reference shows the events of a stream as they arrive, until it is stopped', async () => {
    await page.goto(`${docs}/operations/streamEvents`)
    await page.getByRole('button', { name: 'Open the stream' }).click()
    await untilState('Open')
    const quote = await get(`/agents/${agentId}/trade-intents/quote?symbol=NVDA&usdcAmount=50`)
    const sent = await fetch(`${serviceUrl}/agents/${agentId}/trade-intents`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...quote.body, signature: await sign(quote.typedData) }),
    })
    expect(sent.status).toBe(201)
    await page.locator('.events', { hasText: '"type": "PositionOpened"' }).waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await untilState('Stopped')
    expect(await page.getByRole('button', { name: 'Stop' }).isVisible()).toBe(false)
    expect(await page.getByRole('button', { name: 'Open the stream' }).isEnabled()).toBe(true)
  })

  it('the reference lists every error with status, sentence, remedy, details and whether to retry', async () => {
    await page.goto(`${docs}/errors#INVALID_NONCE`)
    expect(await page.locator('#INVALID_NONCE').isVisible()).toBe(true)
    const shown = await page
      .locator('.errors > li')
      .evaluateAll(all => all.map(({ id, textContent }) => ({ id, text: textContent ?? '' })))
    const missing = Object.entries(errorRows).filter(([code, { status, remedy }]) => {
      const { text } = shown.find(({ id }) => id === code) ?? { text: '' }
      return !text.includes(`${status}`) || !text.includes(remedy.replaceAll('`', ''))
    })
    expect(missing.map(([code]) => code)).toEqual([])
    expect(shown).toHaveLength(Object.keys(errorRows).length)
    const nonce = await page.locator('#INVALID_NONCE').innerText()
    expect(nonce).toContain('The nonce is {given}; the next nonce is {expected}.')
    expect(nonce).toMatch(/Details\s+given digits, expected digits/)
    expect(await page.locator('#SUBMISSION_UNKNOWN').innerText()).toMatch(/Retryable\s+yes/)
    await page.getByLabel('Filter').fill('stale')
    expect(await page.locator('#STALE_PRICE').isVisible()).toBe(true)
    expect(await page.locator('#INVALID_NONCE').isVisible()).toBe(false)
  })

  it('the reference has guides that link to the operations and errors they name', async () => {
    await page.goto(`${docs}/guides/retries`)
    await page.getByRole('link', { name: 'SUBMISSION_UNKNOWN' }).click()
    await page.waitForURL('**/docs/errors#SUBMISSION_UNKNOWN')
    await page.goBack()
    await page.locator('main').getByRole('link', { name: 'GET /intents/{digest}' }).first().click()
    await page.waitForURL('**/docs/operations/getIntent')
    const hrefs = new Set<string>()
    for (const guide of ['signing', 'exit-ladders', 'owner-messages', 'payment', 'streams', 'webhooks', 'retries']) {
      await page.goto(`${docs}/guides/${guide}`)
      const links = await page
        .locator('a[href^="/docs"]')
        .evaluateAll(all => all.map(link => link.getAttribute('href') ?? ''))
      for (const href of links) hrefs.add(href.split('#')[0] ?? '')
    }
    const responses = await Promise.all(
      [...hrefs].map(async href => ({ href, status: (await fetch(serviceUrl + href)).status })),
    )
    expect(responses.filter(({ status }) => status !== 200)).toEqual([])
  })

  it('the reference finds operations, errors, guides and fields with the keyboard alone', async () => {
    const find = async (query: string) => {
      await page.goto(docs)
      await page.keyboard.press('/')
      await page.keyboard.type(query)
      await page.locator('#search-results li').first().waitFor()
      await page.keyboard.press('Enter')
    }
    await find('vault statistics')
    await page.waitForURL('**/docs/operations/getVaultStats')
    await find('exceeds_mandate_trade')
    await page.waitForURL('**/docs/errors#EXCEEDS_MANDATE_TRADE')
    await find('exit ladders')
    await page.waitForURL('**/docs/guides/exit-ladders')
    await find('maxUsdcAmount')
    await page.waitForURL('**/docs/operations/*#response-maxUsdcAmount')
    expect(await page.locator('#response-maxUsdcAmount').isVisible()).toBe(true)
  })

  it('the reference finds guides and operations before errors and fields, and has a changelog and a way back', async () => {
    await page.goto(docs)
    await page.keyboard.press('/')
    await page.locator('dialog.search input').fill('sign')
    const kinds = () => page.locator('#search-results .kind').allInnerTexts()
    await expect.poll(async () => (await kinds()).length).toBeGreaterThan(5)
    const isFirst = (await kinds()).map(kind => /operation|guide/i.test(kind))
    expect(isFirst).toEqual([...isFirst].sort((one, other) => Number(other) - Number(one)))
    expect(isFirst[0]).toBe(true)
    await page.goto(docs)
    await page.getByRole('link', { name: 'Changelog' }).click()
    await page.getByRole('heading', { level: 1, name: 'Changelog' }).waitFor()
    expect(await page.getByRole('link', { name: 'Vaults, agents and desks' }).getAttribute('href')).toBe('/app')
  })

  it('the reference finds what a guide says in its sections, without marks, and copies the code of guides', async () => {
    await page.goto(docs)
    await page.keyboard.press('/')
    await page.locator('dialog.search input').fill('holding time')
    const first = page.locator('#search-results li').first()
    await first.waitFor()
    expect(await first.locator('.kind').innerText()).toMatch(/guide/i)
    expect(await first.locator('.text').innerText()).toMatch(/holding time/i)
    expect(await (await fetch(`${docs}/search.json`)).text()).not.toContain('`')
    await page.goto(`${docs}/guides/payment`)
    const sample = page.locator('article .sample').first()
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await sample.getByRole('button', { name: 'Copy' }).click()
    await sample.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(await sample.locator('pre').textContent())
  })

  it('the reference remembers the chosen theme and language', async () => {
    await page.goto(docs)
    const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor')
    const light = await background()
    await page.getByRole('button', { name: 'Switch between light and dark' }).click()
    const dark = await background()
    expect(dark).not.toBe(light)
    await page.goto(`${docs}/operations/getVault`)
    expect(await background()).toBe(dark)
    await page.getByRole('tab', { name: 'curl' }).focus()
    await page.keyboard.press('ArrowRight')
    await page.reload()
    expect(await page.getByRole('tab', { name: 'TypeScript' }).getAttribute('aria-selected')).toBe('true')
    await page.evaluate('localStorage.clear()')
  })
})

describe('on a phone', () => {
  it('on a phone the first operation is on the first screen, and a menu leads everywhere', async () => {
    const phone = watch(await (await openContext(browser, { viewport: { width: 360, height: 780 } })).newPage())
    await phone.goto(docs)
    const first = await phone.locator('.operations a').first().boundingBox()
    expect((first?.y ?? Infinity) + (first?.height ?? 0)).toBeLessThan(780)
    expect(await phone.locator('#navigation').isVisible()).toBe(false)
    await phone.getByRole('button', { name: 'Menu' }).click()
    await phone.locator('#navigation').getByRole('link', { name: 'Payment', exact: true }).click()
    await phone.waitForURL('**/docs/guides/payment')
    for (const path of ['', '/operations/getTradeIntentQuote', '/errors', '/guides/signing']) {
      await phone.goto(docs + path)
      expect(await phone.evaluate('document.documentElement.scrollWidth - innerWidth'), path).toBeLessThanOrEqual(0)
    }
    await closeContext(phone)
  })
})

describe('the samples', () => {
  let scratch: string
  beforeAll(() => {
    scratch = mkdtempSync(join(root, '.devnet-samples-'))
  })
  afterAll(() => rmSync(scratch, { recursive: true, force: true }))

  const hasPython = (() => {
    try {
      execFileSync('python3', ['--version'])
      return true
    } catch {
      return false
    }
  })()
  const programs = {
    curl: { file: 'sample.sh', command: 'bash' },
    typescript: { file: 'sample.ts', command: process.execPath },
  }

  /** Runs a sample as the page shows it and returns what it prints. */
  async function runSample(language: string, keys: Record<string, string> = {}): Promise<string> {
    const { file, command } = programs[language as keyof typeof programs] ?? { file: '', command: '' }
    const source = await page.locator(`#panel-${language} code`).evaluate(code => code.textContent ?? '')
    writeFileSync(join(scratch, file), source)
    const env = { ...process.env, KEY: key, PAYER_KEY: deployment.accounts.payer.privateKey, ...keys }
    // The workspace's client is not built: this condition selects its sources.
    const options = language === 'typescript' ? ['--conditions=@agent-trading-service/source'] : []
    const { stdout } = await promisify(execFile)(command, [...options, join(scratch, file)], { cwd: scratch, env })
    return stdout
  }

  it.each(Object.keys(programs))(
    'the samples in %s run as shown: a read, a quote of the form, and a body',
    async language => {
      await page.goto(`${docs}/operations/getVault`)
      expect(await runSample(language)).toContain('genesis')
      await page.goto(`${docs}/operations/getReduceIntentQuote`)
      await page.locator('[name="path:agentId"]').fill('999999')
      expect(await runSample(language).catch(error => `${error.stderr}`)).toContain('AGENT_NOT_FOUND')
      await page.goto(`${docs}/operations/verifySignature`)
      expect(await runSample(language).catch(error => `${error.stderr}`)).toMatch(/primaryType|INVALID_REQUEST/)
    },
  )

  it('the samples in TypeScript pay for a registration, and quote, sign and execute a trade', async () => {
    await page.goto(`${docs}/operations/registerAgent`)
    const body = JSON.parse(await page.locator('[name=body]').inputValue())
    await page.locator('[name=body]').fill(JSON.stringify({ ...body, vault: deployment.vaults.genesis }))
    const registered = await runSample('typescript', { KEY: generatePrivateKey() })
    expect(registered).toMatch(/agentId: '\d+'/)
    await page.goto(`${docs}/operations/submitTradeIntent`)
    await page.locator('[name="path:agentId"]').fill(agentId)
    const exits = [{ triggerBps: -500, exitBps: 10_000 }]
    await page.locator('[name=body]').fill(JSON.stringify({ symbol: 'AAPL', usdcAmount: '40', exits }))
    expect(await runSample('typescript')).toMatch(/transactionHash: '0x[0-9a-f]{64}'/)
  })

  it('the samples for MCP name the tool and its arguments', async () => {
    await page.goto(`${docs}/operations/getVault`)
    const source = await page.locator('#panel-mcp code').evaluate(code => code.textContent ?? '')
    expect(source).toContain(`${serviceUrl}/mcp`)
    expect(JSON.parse(source.replaceAll(/^#.*$/gm, ''))).toEqual({
      name: 'svc_get_vault',
      arguments: { id: 'genesis' },
    })
    await page.goto(`${docs}/operations/getReadiness`)
    await page.locator('#panel-curl').waitFor()
    expect(await page.locator('#panel-mcp').count()).toBe(0) // it has no tool
  })

  it('the samples in Python and for streams are complete programs', async () => {
    // Its packages are not installed here; packages/python tests the client.
    for (const id of ['getVault', 'submitTradeIntent', 'setMandate', 'stopAgent', 'registerAgent', 'streamEvents']) {
      await page.goto(`${docs}/operations/${id}`)
      const source = await page.locator('#panel-python code').evaluate(code => code.textContent ?? '')
      writeFileSync(join(scratch, `${id}.py`), source)
      if (hasPython) execFileSync('python3', ['-m', 'py_compile', join(scratch, `${id}.py`)])
      expect(source).toContain(serviceUrl)
    }
  })
})

it('loads nothing from another host, and nothing that its content security policy forbids', () => {
  expect([...hosts]).toEqual([new URL(serviceUrl).host])
  expect(problems).toEqual([])
})
