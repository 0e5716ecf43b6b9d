import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { Account } from '../../devnet/accounts.ts'
import { createScene } from '../support/scene.ts'
import { launchBrowser } from './browser.ts'
import { injectWallet, type TestWallet, WALLET_NAME } from './test-wallet.ts'
import { closeContext, openPage, type WatchedPage } from './watched-page.ts'

// What an owner sees and sets up at the desk besides the actions of desks.node.test.ts.

describe("the owner's desk", () => {
  const serviceUrl = inject('serviceUrl')
  const deployment = inject('deployment')
  const { register, request, trade } = createScene(serviceUrl, deployment)
  const owner = deployment.accounts.agents[6] as Account
  let browser: Browser
  let agentId: string

  beforeAll(async () => {
    browser = await launchBrowser()
    ;({ agentId } = await register(6, 'Agent of the desk', 'frontier'))
  })
  afterAll(async () => {
    await browser?.close()
  })

  type Desk = WatchedPage & { wallet: TestWallet }
  async function openDesk(shown = agentId, account = owner): Promise<Desk> {
    const opened = await openPage(browser)
    const wallet = await injectWallet(opened.page, account, deployment)
    await opened.page.goto(`${serviceUrl}/app/owner?agent=${shown}`)
    await opened.page.getByRole('button', { name: `Connect ${WALLET_NAME}` }).click()
    await opened.page.getByText('connected', { exact: true }).waitFor()
    return { ...opened, wallet }
  }

  it("the owner's desk lists the messages that the owner has signed, in words", async () => {
    const { page, problems } = await openDesk()
    const past = page.getByRole('region', { name: 'Past messages', exact: true }).first()
    await past.getByText('The owner has not signed anything yet.').waitFor()
    const mandate = page.getByRole('region', { name: 'Set the mandate' })
    await mandate.getByLabel('Largest trade, USDC').fill('750')
    await mandate.getByRole('button', { name: 'Review' }).click()
    await mandate.getByRole('button', { name: 'Sign in the wallet' }).click()
    await mandate.getByText('Done.').waitFor()
    await past.getByText('may trade, one trade at most 750.00 USDC').waitFor()
    const stop = page.getByRole('region', { name: 'Stop buying' })
    await stop.getByRole('button', { name: 'Review' }).click()
    await stop.getByRole('button', { name: 'Sign in the wallet' }).click()
    await past.getByText('Buying stopped').waitFor()
    expect((await past.getByRole('rowheader').allInnerTexts()).map(text => text.split('\n')[0])).toEqual([
      'Buying stopped',
      'Mandate set',
    ])
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it("the owner's desk lists the agents that are offered to the account", async () => {
    const { agentId: offered } = await register(7, 'Agent for sale', 'frontier')
    const seller = await openPage(browser)
    await injectWallet(seller.page, deployment.accounts.agents[7] as Account, deployment)
    await seller.page.goto(`${serviceUrl}/app/owner?agent=${offered}`)
    await seller.page.getByRole('button', { name: `Connect ${WALLET_NAME}` }).click()
    const offer = seller.page.getByRole('region', { name: 'Offer to a new owner' })
    await offer.getByRole('textbox', { name: 'New owner' }).fill(owner.address)
    await offer.getByRole('button', { name: 'Review' }).click()
    await offer.getByRole('button', { name: 'Sign in the wallet' }).click()
    await offer.getByText('Done.').waitFor()
    await closeContext(seller.page)
    const { page, problems } = await openDesk()
    const accept = page.getByRole('region', { name: 'Accept an offer' })
    await accept.getByRole('link', { name: /^Agent for sale/ }).waitFor()
    await accept.getByRole('button', { name: `Choose agent ${offered}` }).click()
    expect(await accept.getByLabel('Agent id').inputValue()).toBe(offered)
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it("the owner's desk creates a webhook, shows its secret once, tests and deletes it", async () => {
    const received: string[] = []
    const server = createServer((request, response) => {
      received.push(`${request.headers['webhook-id']}`)
      response.writeHead(204).end()
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`
    const { page, problems } = await openDesk()
    const webhooks = page.getByRole('region', { name: 'Webhooks', exact: true }).first()
    await webhooks.getByRole('button', { name: 'Sign to list them' }).click()
    await webhooks.getByText('No webhook yet.').waitFor()
    await webhooks.getByLabel('URL of a new webhook').fill(url)
    await webhooks.getByLabel('exit', { exact: true }).check()
    await webhooks.getByRole('button', { name: 'Create' }).click()
    await webhooks.getByText('The secret is shown this once.').waitFor()
    expect(await webhooks.locator('.receipt .hex').innerText()).toMatch(/^whsec_/)
    const row = webhooks.getByRole('row').filter({ hasText: url })
    expect(await row.innerText()).toContain('exit')
    await row.getByRole('button', { name: 'Test' }).click()
    await row.getByText('test: status 204').waitFor()
    expect(received).toHaveLength(1)
    await row.getByRole('button', { name: 'Delete' }).click()
    await webhooks.getByText('No webhook yet.').waitFor()
    expect(problems).toEqual([])
    await closeContext(page)
    server.close()
  })

  it("the owner's desk declines and places a trailing stop, reviews a limit order, and cancels the stop", async () => {
    const agent = await register(6, 'Agent with orders', 'frontier')
    const { positionId } = await trade(agent, 'open', { symbol: 'META', usdcAmount: '300', exits: '-2000:10000' })
    const { page, problems, wallet } = await openDesk(agent.agentId)
    const orders = page.getByRole('region', { name: 'Orders', exact: true })
    await orders.getByText('No order waits.').waitFor()
    const place = orders.getByRole('region', { name: 'Place an order', exact: true })
    const reviewButton = place.getByRole('button', { name: 'Review' })
    await place.getByText('Price, USD: enter a number above 0 with at most 8 decimals.').waitFor()
    expect(await reviewButton.isDisabled()).toBe(true)

    await place.getByLabel('Kind of order').selectOption('trailingStop')
    await place.getByLabel('Distance below the peak, %').fill('8')
    await place.getByLabel('Share of the position, %').fill('50')
    await reviewButton.click()
    await place.getByText('50 % of the position').waitFor()
    await place.getByText('a fall of 8 % from the highest oracle price since placing').waitFor()
    await place.getByText('with its position').waitFor()
    expect(await place.locator('.facts').last().innerText()).toMatch(/Trigger from the price now\s+−8\.00/)
    wallet.failing.set('eth_signTypedData_v4', { code: 4001, message: 'User rejected the request.' })
    await place.getByRole('button', { name: 'Sign in the wallet' }).click()
    await place.getByText('You declined in the wallet; it sent nothing for this step.').waitFor()
    expect((await request(`/agents/${agent.agentId}/orders`)).orders).toEqual([])
    await place.getByRole('button', { name: 'Sign in the wallet' }).click()
    await place.getByText('Done.').waitFor()
    const row = orders.getByRole('row').filter({ hasText: 'META' })
    await row.getByText(/^Sell 50\.00/).waitFor()
    const { orders: placed } = await request(`/agents/${agent.agentId}/orders?state=open`)
    expect(placed).toMatchObject([{ positionId, exitBps: 5_000, condition: 'trailing', trailBps: 800 }])

    await place.getByRole('button', { name: 'Again' }).click()
    await place.getByLabel('Kind of order').selectOption('limit')
    await place.getByLabel('Token').selectOption('COIN')
    await place.getByLabel('Amount, USDC').fill('120.5')
    await place.getByLabel('Price, USD').fill('1.25')
    await place.getByLabel('Stop-loss below the entry price, %').fill('10')
    await reviewButton.click()
    for (const term of ['120.50 USDC', /^0x\w{40} \(COIN\)$/, 'buy as a new position'])
      await place.getByRole('definition').getByText(term).waitFor()
    await place.getByText('an oracle price of 1.25 USD or less').waitFor()
    await place.getByText('stop-loss at -10 %: sell 100 %').waitFor()
    await place.getByText('Loss at the stop').waitFor()
    await place.getByRole('button', { name: 'Back' }).click()

    const orderId: string = placed[0].orderId
    await row.getByRole('button', { name: 'Cancel' }).click()
    const cancel = orders.getByRole('region', { name: `Cancel order ${orderId.slice(0, 6)}…${orderId.slice(-4)}` })
    await cancel.getByRole('definition').getByText(orderId).waitFor()
    await page.setViewportSize({ width: 360, height: 900 })
    const isInside = `(review => review.scrollWidth <= review.clientWidth)(document.querySelector('.review'))`
    expect(await page.evaluate<boolean>(isInside)).toBe(true)
    await cancel.getByRole('button', { name: 'Back' }).click()
    await cancel.waitFor({ state: 'detached' })
    await row.getByRole('button', { name: 'Cancel' }).click()
    await cancel.getByRole('button', { name: 'Sign in the wallet' }).click()
    await cancel.getByText('Done.').waitFor()
    await orders.getByText('No order waits.').waitFor()
    expect((await request(`/agents/${agent.agentId}/orders/${orderId}`)).state).toBe('cancelled')
    expect(problems).toEqual([])
    await closeContext(page)
  })

  it("the owner's desk says who can place orders to an account that is not the signer", async () => {
    const { page, problems } = await openDesk(agentId, deployment.accounts.agents[7])
    const place = page.getByRole('region', { name: 'Place an order', exact: true })
    await place.getByText(`Only the agent's signer can sign this: ${owner.address}`).waitFor()
    expect(await place.getByRole('button').count()).toBe(0)
    expect(problems).toEqual([])
    await closeContext(page)
  })
})
