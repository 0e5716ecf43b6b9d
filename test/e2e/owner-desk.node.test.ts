import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { Account } from '../../devnet/accounts.ts'
import { createScene } from '../support/scene.ts'
import { launchBrowser } from './browser.ts'
import { injectWallet, WALLET_NAME } from './test-wallet.ts'
import { openPage, type WatchedPage } from './watched-page.ts'

// What an owner sees and sets up at the desk besides the actions of desks.node.test.ts.

describe("the owner's desk", () => {
  const serviceUrl = inject('serviceUrl')
  const deployment = inject('deployment')
  const { register } = createScene(serviceUrl, deployment)
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

  async function openDesk(): Promise<WatchedPage> {
    const opened = await openPage(browser)
    await injectWallet(opened.page, owner, deployment)
    await opened.page.goto(`${serviceUrl}/app/owner?agent=${agentId}`)
    await opened.page.getByRole('button', { name: `Connect ${WALLET_NAME}` }).click()
    await opened.page.getByText('connected', { exact: true }).waitFor()
    return opened
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
    await page.context().close()
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
    await seller.page.context().close()
    const { page, problems } = await openDesk()
    const accept = page.getByRole('region', { name: 'Accept an offer' })
    await accept.getByRole('link', { name: /^Agent for sale/ }).waitFor()
    await accept.getByRole('button', { name: `Choose agent ${offered}` }).click()
    expect(await accept.getByLabel('Agent id').inputValue()).toBe(offered)
    expect(problems).toEqual([])
    await page.context().close()
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
    await page.context().close()
    server.close()
  })
})
