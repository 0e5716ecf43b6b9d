import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { Account } from '../../devnet/accounts.ts'
import { createScene } from '../support/scene.ts'
import { launchBrowser } from './browser.ts'
import { injectWallet, type TestWallet, WALLET_NAME } from './test-wallet.ts'
import { closeContext, openPage } from './watched-page.ts'

// What owners and depositors do with a wallet in a real browser.

describe('the desks', () => {
  const serviceUrl = inject('serviceUrl')
  const deployment = inject('deployment')
  const { chain, client, register, trade, request } = createScene(serviceUrl, deployment)
  const { agents, depositor } = deployment.accounts
  let browser: Browser
  const problems: string[][] = []

  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser?.close()
  })

  const accountOf = (index: number): Account => {
    const account = agents[index]
    if (account === undefined) throw new Error(`The embedded chain has no agent account ${index}.`)
    return account
  }

  /** Opens a desk with a wallet and connects it. */
  async function openDesk(account: Account, path: string): Promise<Page> {
    return (await openDeskWithWallet(account, path)).page
  }
  async function openDeskWithWallet(
    account: Account,
    path: string,
    prepare?: (wallet: TestWallet) => void,
  ): Promise<{ page: Page; wallet: TestWallet }> {
    const opened = await openPage(browser)
    problems.push(opened.problems)
    const wallet = await injectWallet(opened.page, account, deployment)
    prepare?.(wallet)
    await opened.page.goto(serviceUrl + path)
    await opened.page.getByRole('button', { name: `Connect ${WALLET_NAME}` }).click()
    await opened.page.getByText('connected', { exact: true }).waitFor()
    return { page: opened.page, wallet }
  }
  /**
   * Reads the total assets as of a block that is not older than this call: reads of a vault are cached for a moment.
   */
  async function totalAssets(): Promise<bigint> {
    const head = await client.getBlockNumber()
    for (;;) {
      const { vault, asOf } = await request('/vaults/genesis')
      if (BigInt(asOf.blockNumber) >= head) return BigInt(vault.totalAssets)
    }
  }
  const action = (page: Page, name: string) => page.getByRole('region', { name, exact: true })

  it('the desks let an owner stop an agent, see its positions sold, and stop several with one signature', async () => {
    const agent = await register(4, 'Agent to stop', 'frontier')
    const sibling = await register(4, 'Its sibling', 'frontier')
    await trade(agent, 'open', { symbol: 'HOOD', usdcAmount: '200', exits: '-2000:10000' })
    await trade(agent, 'open', { symbol: 'COIN', usdcAmount: '200', exits: '-2000:10000' })
    const { page, wallet } = await openDeskWithWallet(accountOf(4), `/app/owner?agent=${agent.agentId}`)
    await page.getByRole('link', { name: /HOOD #/ }).waitFor()
    const stop = action(page, 'Stop and sell everything')
    const focused = () => page.evaluate<string>('document.activeElement.textContent')
    await stop.getByRole('button', { name: 'Review' }).click()
    await stop.getByText(/^Stop agents from buying, and sell all of their positions/).waitFor()
    expect(await focused()).toBe('You are about to sign')
    wallet.hanging.set('eth_signTypedData_v4', new Promise(() => {}))
    await stop.getByRole('button', { name: 'Sign in the wallet' }).click()
    await stop.getByRole('button', { name: 'Open your wallet and sign…' }).waitFor()
    await stop.getByRole('button', { name: 'Cancel' }).click()
    await stop.getByText('You stopped waiting for the wallet.').waitFor()
    wallet.hanging.clear()
    await stop.getByRole('button', { name: 'Sign in the wallet' }).click()
    await stop.getByText('Done.').waitFor()
    expect(await focused()).toContain('Done. Block')
    await page.getByText('No open position.').waitFor()
    const { positions } = await request(`/agents/${agent.agentId}/positions`)
    expect(positions).toEqual([])

    await page.getByLabel(`Stop agent ${agent.agentId}`).check()
    await page.getByLabel(`Stop agent ${sibling.agentId}`).check()
    const several = action(page, 'Stop 2 agents')
    await several.getByRole('button', { name: 'Review' }).click()
    await several
      .getByRole('definition')
      .getByText(/^\d+, \d+$/)
      .waitFor()
    await several.getByRole('button', { name: 'Sign in the wallet' }).click()
    await several.getByText('Done.').waitFor()
    expect((await request(`/agents/${sibling.agentId}/mandate`)).mandate.mode).toBe('reduceOnly')
    await closeContext(page)
  })

  it('the desks let an owner set a mandate and hand the agent to another owner, who accepts it', async () => {
    const { agentId } = await register(5, 'Agent to hand over', 'frontier')
    const [owner, newOwner, newSigner] = [accountOf(5), accountOf(6), accountOf(7)]
    const page = await openDesk(owner, `/app/owner?agent=${agentId}`)
    const mandate = action(page, 'Set the mandate')
    await mandate.getByLabel('Largest trade, USDC').fill('250.5')
    await mandate.getByLabel('NVDA').check()
    await mandate.getByRole('button', { name: 'Review' }).click()
    await mandate.getByText('at most 250.50 USDC').waitFor()
    await mandate.getByText(/^0x\w{40} \(NVDA\)$/).waitFor()
    await mandate.getByRole('button', { name: 'Sign in the wallet' }).click()
    await mandate.getByText('Done.').waitFor()
    const { mandate: set } = await request(`/agents/${agentId}/mandate`)
    expect(set).toMatchObject({ maxTradeUsdc: '250500000', allowedTokens: [{ symbol: 'NVDA' }] })

    const offer = action(page, 'Offer to a new owner')
    for (const [text, problem] of [
      [`0x${'0'.repeat(40)}`, 'Nobody holds the zero address.'],
      [newOwner.address.replace(/[a-f]/, letter => letter.toUpperCase()), 'a character is wrong'],
    ] as const) {
      await offer.getByLabel('New owner', { exact: true }).fill(text)
      await offer.getByText(problem).waitFor()
      expect(await offer.getByRole('button', { name: 'Review' }).isDisabled()).toBe(true)
    }
    await offer.getByLabel('New owner', { exact: true }).fill(newOwner.address)
    await offer.getByRole('button', { name: 'Review' }).click()
    await offer.getByRole('definition').getByText(newOwner.address).waitFor()
    await offer.getByRole('button', { name: 'Sign in the wallet' }).click()
    await offer.getByText('Done.').waitFor()
    await closeContext(page)

    const other = await openDesk(newOwner, '/app/owner')
    await other.getByText('This address owns no agent.').waitFor()
    const accept = action(other, 'Accept an offer')
    await accept.getByLabel('Agent id').fill(agentId)
    await accept.getByLabel('Signer of its trades').fill(newSigner.address)
    await accept.getByRole('button', { name: 'Review' }).click()
    await accept.getByText(/^Become the owner of an agent/).waitFor()
    await accept.getByRole('button', { name: 'Sign in the wallet' }).click()
    await accept.getByText('Done.').waitFor()
    await other.getByRole('link', { name: 'Agent to hand over' }).waitFor()
    const { agent } = await request(`/agents/${agentId}`)
    expect([agent.owner, agent.signer]).toEqual([newOwner.address, newSigner.address])
    await closeContext(other)
  })

  it('the desks renew a mandate that has expired, and its agent says that it has', async () => {
    const { agentId } = await register(10, 'Agent with an end', 'frontier')
    const page = await openDesk(accountOf(10), `/app/owner?agent=${agentId}`)
    const mandate = action(page, 'Set the mandate')
    const { timestamp } = await client.getBlock()
    const local = (seconds: number) =>
      page.evaluate<string>(
        `new Date(${seconds} * 1000 - new Date(${seconds} * 1000).getTimezoneOffset() * 60000).toISOString().slice(0, 19)`,
      )
    async function setUntil(seconds: number) {
      await mandate.getByLabel('Until').fill(await local(seconds))
      await mandate.getByRole('button', { name: 'Review' }).click()
      await mandate.getByText('ends', { exact: true }).waitFor()
      await mandate.getByRole('button', { name: 'Sign in the wallet' }).click()
      await mandate.getByText('Done.').waitFor()
      expect((await request(`/agents/${agentId}/mandate`)).mandate.validUntil).toBe(`${seconds}`)
    }
    await setUntil(Number(timestamp) + 120)
    await chain.increaseTime(150) // the client refuses a service whose clock is further ahead
    await page.reload()
    await page.getByText('The mandate has expired').waitFor()
    await mandate.getByText('Until: enter a time to come').waitFor()
    await setUntil(Number(timestamp) + 40 * 86_400)
    await page.getByText('The mandate has expired').waitFor({ state: 'detached' })
    await closeContext(page)
  })

  it('the desks keep a stop that an owner signs while a mandate is reviewed', async () => {
    const { agentId } = await register(2, 'Agent to hold', 'frontier')
    const page = await openDesk(accountOf(2), `/app/owner?agent=${agentId}`)
    const [mandate, stop] = [action(page, 'Set the mandate'), action(page, 'Stop buying')]
    await mandate.getByLabel('Largest trade, USDC').fill('100')
    await mandate.getByRole('button', { name: 'Review' }).click()
    await mandate.getByRole('definition').getByText('may open, add, reduce and close').waitFor()
    await stop.getByRole('button', { name: 'Review' }).click()
    await stop.getByRole('button', { name: 'Sign in the wallet' }).click()
    await stop.getByText('Done.').waitFor()
    await page.getByText('May only reduce and close', { exact: true }).waitFor()
    expect(await page.getByText('only the rules of the track hold').count()).toBe(0)

    await mandate.getByRole('button', { name: 'Sign in the wallet' }).click()
    await mandate.getByText(/Nothing was signed/).waitFor()
    await mandate.getByText(/They now show the mandate on chain/).waitFor()
    expect(await mandate.getByLabel('Trading').inputValue()).toBe('reduceOnly')
    expect(await mandate.getByLabel('Largest trade, USDC').inputValue()).toBe('')

    await mandate.getByLabel('Largest trade, USDC').fill('100.000001')
    await mandate.getByRole('button', { name: 'Review' }).click()
    await mandate.getByRole('definition').getByText('may only reduce and close', { exact: true }).waitFor()
    await mandate.getByText('at most 100.000001 USDC').waitFor()
    await mandate.getByRole('button', { name: 'Sign in the wallet' }).click()
    await mandate.getByText('Done.').waitFor()
    const { mandate: set } = await request(`/agents/${agentId}/mandate`)
    expect(set).toMatchObject({ mode: 'reduceOnly', maxTradeUsdc: '100000001' })
    await closeContext(page)
  })

  it('the desks let an owner withdraw an offer, and replace the signer', async () => {
    const { agentId } = await register(8, 'Agent to keep', 'frontier')
    const [owner, notNewOwner, newSigner] = [accountOf(8), accountOf(6), accountOf(7)]
    const page = await openDesk(owner, `/app/owner?agent=${agentId}`)
    async function reviewAndSign(name: string, value: string) {
      const region = action(page, name)
      await region.getByRole('button', { name: 'Review' }).click()
      await region.getByRole('definition').getByText(value).waitFor()
      await region.getByRole('button', { name: 'Sign in the wallet' }).click()
      await region.getByText('Done.').waitFor()
    }
    await action(page, 'Offer to a new owner').getByLabel('New owner', { exact: true }).fill(notNewOwner.address)
    await reviewAndSign('Offer to a new owner', notNewOwner.address)
    const pending = async () => (await request(`/agents/${agentId}/mandate`)).pendingOwner
    expect(await pending()).toBe(notNewOwner.address)
    await reviewAndSign('Withdraw the offer', '(withdraws the offer)')
    expect(await pending()).toBeNull()

    await action(page, 'Replace the signer').getByLabel('New signer').fill(newSigner.address)
    await reviewAndSign('Replace the signer', newSigner.address)
    const { agent } = await request(`/agents/${agentId}`)
    expect([agent.owner, agent.signer]).toEqual([owner.address, newSigner.address])
    await closeContext(page)
  })

  it('the desks let a depositor deposit and, after the holding time, withdraw', async () => {
    const { page, wallet } = await openDeskWithWallet(depositor, '/app/depositor?vault=genesis')
    const before = await totalAssets()
    const result = action(page, 'Your result')
    const factOf = async (name: string) => {
      const [, text = ''] = new RegExp(`${name}\\s+(.+)`).exec(await result.innerText()) ?? []
      return text
    }
    const amountOf = async (name: string) => Number((await factOf(name)).replace(/[^\d.-]/g, ''))
    await expect.poll(() => amountOf('Deposited')).toBeGreaterThan(0)
    const [depositedBefore, withdrawnBefore] = [await amountOf('Deposited'), await amountOf('Withdrawn')]
    const deposit = page.getByRole('button', { name: 'Deposit', exact: true })
    await page.getByLabel('Amount, USDC', { exact: true }).fill('1234.5')
    await page.getByText(/You receive about/).waitFor()
    wallet.chainId = 1
    await deposit.click()
    await page.getByText(`The wallet is on chain 1, not on chain ${deployment.chainId} of this service`).waitFor()
    expect(await deposit.isDisabled()).toBe(true)
    await page.getByRole('button', { name: 'Switch the wallet' }).click()
    expect(wallet.added).toEqual([])
    wallet.failing.set('eth_getTransactionReceipt', 'fails once')
    await deposit.click()
    await page.getByText('Deposited 1,234.50 USDC.').waitFor()
    const funded = await totalAssets()
    expect(funded - before).toBe(1_234_500_000n)
    await expect.poll(() => amountOf('Deposited')).toBeCloseTo(depositedBefore + 1_234.5)
    await expect.poll(() => factOf('Shares unlock')).toMatch(/\d+:\d\d:\d\d/)
    await expect.poll(() => factOf('Profit since the first deposit')).toMatch(/USDC/)

    await chain.increaseTime(30)
    await page.getByLabel('Amount, USDC, after the fee').fill('1000')
    await page.getByRole('button', { name: 'Withdraw', exact: true }).click()
    await page.getByText('Withdrew 1,000.00 USDC.').waitFor()
    expect(funded - (await totalAssets())).toBe(1_000_000_000n)
    await expect.poll(() => amountOf('Withdrawn')).toBeCloseTo(withdrawnBefore + 1_000)

    // The maximum is read again after the withdrawal.
    const previewOfMax = async () => {
      await page.getByRole('button', { name: 'Max to withdraw' }).click()
      return page.getByText(/You receive about/).count()
    }
    await expect.poll(previewOfMax, { timeout: 60_000 }).toBe(1)
    await closeContext(page)
  })

  it('the desks leave a way out of a wallet that never answers, and follow what it sends later', async () => {
    const { page, problems: own } = await openPage(browser, { viewport: { width: 360, height: 900 } })
    problems.push(own)
    const wallet = await injectWallet(page, depositor, deployment)
    const hang = (method: string) => {
      const answer = Promise.withResolvers<void>()
      wallet.hanging.set(method, answer.promise)
      return answer
    }
    const cancel = page.getByRole('button', { name: 'Cancel' })
    hang('eth_requestAccounts')
    await page.goto(`${serviceUrl}/app/depositor?vault=genesis`)
    await page.getByRole('button', { name: `Connect ${WALLET_NAME}` }).click()
    await page.getByText('Open your wallet and confirm.').waitFor()
    await cancel.click()
    await page.getByText('You stopped waiting for the wallet.').waitFor()
    wallet.hanging.clear()
    await page.getByRole('button', { name: `Connect ${WALLET_NAME}` }).click()
    await page.getByText('connected', { exact: true }).waitFor()

    const deposit = page.getByRole('button', { name: 'Deposit', exact: true })
    await page.getByLabel('Amount, USDC', { exact: true }).fill('31.5')
    wallet.failing.set('eth_sendTransaction', `0x${'ab'.repeat(2_000)}`)
    await deposit.click()
    await page.getByText('Look in the wallet whether it was sent').waitFor()
    expect(await page.evaluate<boolean>('document.documentElement.scrollWidth > window.innerWidth')).toBe(false)

    const before = await totalAssets()
    await page.getByLabel('Amount, USDC', { exact: true }).fill('31.5')
    const approval = hang('eth_sendTransaction')
    await deposit.click()
    await page.getByText('1 of 2: Allow the vault to take 31.50 USDC. Open your wallet and confirm.').waitFor()
    await cancel.click()
    await page.getByText('Decline there what it still shows').waitFor()
    wallet.hanging.clear()
    approval.resolve()
    await page.getByText('The vault may take 31.50 USDC. Nothing is deposited yet.').waitFor()
    expect(await totalAssets()).toBe(before)

    await wallet.announce('disconnect', { code: 4900 })
    await page.getByRole('button', { name: `Connect ${WALLET_NAME}` }).waitFor()
    await closeContext(page)
  })

  it('the desks leave everything as it was if the wallet declines, and can be tried again', async () => {
    const declined = { code: 4001, message: 'User rejected the request.' }
    const { page, wallet } = await openDeskWithWallet(depositor, '/app/depositor?vault=genesis')
    const before = await totalAssets()
    const deposit = page.getByRole('button', { name: 'Deposit', exact: true })
    await page.getByLabel('Amount, USDC', { exact: true }).fill('12')
    wallet.failing.set('eth_sendTransaction', declined)
    await deposit.click()
    await page.getByText('You declined in the wallet; it sent nothing for this step.').waitFor()
    expect(await deposit.isEnabled()).toBe(true)
    expect(await totalAssets()).toBe(before)
    await closeContext(page)

    const { agentId } = await register(8, 'Agent of a hesitant owner', 'frontier')
    const desk = await openDeskWithWallet(accountOf(8), `/app/owner?agent=${agentId}`)
    const stop = action(desk.page, 'Stop buying')
    await stop.getByRole('button', { name: 'Review' }).click()
    desk.wallet.failing.set('eth_signTypedData_v4', declined)
    await stop.getByRole('button', { name: 'Sign in the wallet' }).click()
    await stop.getByText('You declined in the wallet; it sent nothing for this step.').waitFor()
    expect((await request(`/agents/${agentId}/mandate`)).mandate.mode).toBe('trade')
    await stop.getByRole('button', { name: 'Sign in the wallet' }).click()
    await stop.getByText('Done.').waitFor()
    expect((await request(`/agents/${agentId}/mandate`)).mandate.mode).toBe('reduceOnly')
    await closeContext(desk.page)
  })

  it('the desks let a depositor leave a request for the next price, see it and cancel it', async () => {
    const { page } = await openDeskWithWallet(depositor, '/app/depositor?vault=genesis')
    const panel = action(page, 'At the next price')
    await panel.getByLabel('USDC to deposit at the next price').fill('20')
    await panel.getByRole('button', { name: 'Request this deposit' }).click()
    await panel.getByText('Requested a deposit of 20.00 USDC.').waitFor()
    await panel.getByText(/^Deposit of/).waitFor()
    expect((await request('/vaults/genesis/requests')).deposits).toMatchObject([{ assets: '20000000' }])
    await panel.getByRole('button', { name: /^Cancel deposit request/ }).click()
    await panel.getByText('Cancelled; the USDC is back.').waitFor()
    expect((await request('/vaults/genesis/requests')).deposits).toEqual([])
  })

  it('the desks follow a deposit over a reload, and send no second one meanwhile', async () => {
    const { page, wallet } = await openDeskWithWallet(depositor, '/app/depositor?vault=genesis')
    const before = await totalAssets()
    const deposit = page.getByRole('button', { name: 'Deposit', exact: true })
    const pending = page.getByText('Sent. Waiting for a block that has it…')
    wallet.onSent = () => wallet.blind.add('eth_getTransactionReceipt')
    await page.getByLabel('Amount, USDC', { exact: true }).fill('31.5') // approved in the test before
    await deposit.click()
    await pending.waitFor()
    await page.reload()
    await page.getByText('connected', { exact: true }).waitFor()
    await pending.waitFor()
    await page.getByLabel('Amount, USDC', { exact: true }).fill('31.5')
    await page.getByText(/You receive about/).waitFor()
    expect(await deposit.isDisabled()).toBe(true)
    wallet.blind.clear()
    await page.getByText('Deposited 31.50 USDC.').waitFor()
    expect((await totalAssets()) - before).toBe(31_500_000n)
    await closeContext(page)
  })

  it('the desks stop between approval and deposit if the wallet changes its account', async () => {
    const { page, wallet } = await openDeskWithWallet(depositor, '/app/depositor?vault=genesis')
    const before = await totalAssets()
    const other = accountOf(3)
    wallet.onSent = () => {
      wallet.account = other
    }
    await page.getByLabel('Amount, USDC', { exact: true }).fill('77')
    await page.getByRole('button', { name: 'Deposit', exact: true }).click()
    await page.getByText(`The wallet is on account ${other.address}, not on ${depositor.address}`).waitFor()
    expect(await totalAssets()).toBe(before)
    await closeContext(page)
  })

  it.each([
    ['as it is', (error: { code: number; message: string }) => error],
    [
      'inside an internal error',
      (error: { code: number; message: string }) => ({
        code: -32_603,
        message: 'Internal',
        data: { originalError: error },
      }),
    ],
  ])('the desks offer their chain to a wallet that does not know it and says so: %s', async (_, unknownChain) => {
    const { page, wallet } = await openDeskWithWallet(depositor, '/app/depositor?vault=genesis', wallet => {
      wallet.chainId = 1
      wallet.unknownChain = unknownChain
    })
    await page.getByRole('button', { name: 'Switch the wallet' }).click()
    await page.getByText(`this service is on chain ${deployment.chainId}`).waitFor({ state: 'detached' })
    expect(wallet.chainId).toBe(deployment.chainId)
    expect(wallet.added).toMatchObject([
      {
        chainId: `0x${deployment.chainId.toString(16)}`,
        rpcUrls: [deployment.rpcUrl],
        nativeCurrency: { symbol: 'ETH', decimals: 18 },
      },
    ])
    await closeContext(page)
  })

  it('the desks state fees and holding time without a wallet, and need one to send', async () => {
    const { page, problems: own } = await openPage(browser)
    problems.push(own)
    await page.goto(`${serviceUrl}/app/depositor?vault=genesis`)
    await page.getByText('Holding time').waitFor()
    await page.getByText('Withdrawal fee').waitFor()
    await page.getByRole('region', { name: 'Shares that cover losses first' }).waitFor()
    expect(await page.getByRole('button', { name: 'Connect a wallet to deposit' }).isDisabled()).toBe(true)
    await closeContext(page)
  })

  it('the desks log no error and violate no policy', () => {
    expect(problems.flat()).toEqual([])
  })
})
