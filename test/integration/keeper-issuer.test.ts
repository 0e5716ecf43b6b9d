import { env } from 'cloudflare:workers'
import { OrderCondition } from '@agent-trading-service/protocol/order-typed-data'
import { createPublicClient, createTestClient, encodeDeployData, type Hex, http } from 'viem'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import bytecodes from '../../contracts/bytecode.json'
import { blockableUsdcAbi } from '../../contracts-abi/blockable-usdc.ts'
import { scaledStockTokenAbi } from '../../contracts-abi/scaled-stock-token.ts'
import { stockIssuerAbi } from '../../contracts-abi/stock-issuer.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import {
  chain,
  FRONTIER,
  GENESIS,
  newTrader,
  openPosition,
  signedIntent,
  submit,
  type Trader,
} from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { disarmKeeper, runCycle } from '../support/keeper-cycles.ts'
import { placeOrder } from '../support/orders.ts'
import { appWith, call, deployment, request } from '../support/surfaces.ts'

// What becomes of positions while the issuer of their token pauses, blocks or burns it. The frontier vault trades for
// real.

const { contracts, accounts, tokens } = deployment
const HOOD = tokens.HOOD as Hex
const client = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })
const issuer = { address: contracts.StockIssuer as Hex, abi: stockIssuerAbi }
const hood = { address: HOOD, abi: scaledStockTokenAbi }
const keeper = () => env.KEEPER.get(env.KEEPER.idFromName(`${deployment.chainId}:${contracts.TradeRouter}`))

const block = (account: Hex, isBlocked: boolean) =>
  chain.send(accounts.admin, { ...issuer, functionName: 'setBlocked', args: [account, isBlocked] })
const pauseToken = (isPaused: boolean) =>
  chain.send(accounts.admin, { ...hood, functionName: 'setTokenPaused', args: [isPaused] })
const pauseIssuer = (isPaused: boolean) =>
  chain.send(accounts.admin, { ...issuer, functionName: 'setPaused', args: [isPaused] })
const balance = () => client.readContract({ ...hood, functionName: 'balanceOf', args: [FRONTIER] })
const burn = (amount: bigint) =>
  chain.send(accounts.admin, { ...hood, functionName: 'adminBurn', args: [FRONTIER, amount] })
const mint = (amount: bigint) => chain.send(accounts.admin, { ...hood, functionName: 'mint', args: [FRONTIER, amount] })

const automation = async ({ agentId }: Trader, positionId: string): Promise<Body> =>
  (await call('getPositionAutomation', { agentId, positionId })).body
const restrictedOf = ({ body }: Awaited<ReturnType<typeof call>>) =>
  (body.restricted ?? body.details.restricted).filter(({ symbol }: Body) => symbol === 'HOOD')

let trader: Trader
let positionId: string
beforeAll(async () => {
  trader = await newTrader({ vault: FRONTIER })
  positionId = await openPosition(trader, { symbol: 'HOOD', usdcAmount: '50', exits: '-500:10000' })
})
const lift = async () => {
  await Promise.all([pauseToken(false), pauseIssuer(false), block(FRONTIER, false)])
  await block(contracts.SwapAdapter as Hex, false)
}
afterEach(lift)
afterAll(async () => {
  await disarmKeeper(keeper())
  await chain.setPrice('HOOD', '138.6')
})

describe('the powers of an issuer', () => {
  it('the powers of an issuer are part of the list of tokens, and null for a token without an issuer', async () => {
    const { tokens: listed } = (await call('listTokens')).body
    const issuerOf = (wanted: string) => listed.find(({ symbol }: Body) => symbol === wanted).issuer
    expect(issuerOf('HOOD')).toEqual({
      address: contracts.StockIssuer,
      powers: ['pause', 'block', 'burn', 'upgrade'],
    })
    expect(issuerOf('COIN')).toBeNull()
  })
})

describe('a token that its issuer restricts', () => {
  it.each([
    ['paused', () => pauseToken(true), { kind: 'tokenPaused', account: HOOD }, 'its issuer paused it'],
    ['paused with all others', () => pauseIssuer(true), { kind: 'issuerPaused', account: HOOD }, 'all of its tokens'],
    ['kept from the vault', () => block(FRONTIER, true), { kind: 'blocked', account: FRONTIER }, FRONTIER],
  ])(
    'a token that is %s is named in quotes, refusals and readiness, with who can lift it',
    async (_, restrict, expected, words) => {
      await restrict()
      for (const [id, input] of [
        ['getTradeIntentQuote', { symbol: 'HOOD', usdcAmount: '10' }],
        ['getAddIntentQuote', { positionId, usdcAmount: '10' }],
        ['getReduceIntentQuote', { positionId, exitBps: 5000 }],
      ] as const) {
        const { body: quote } = await call(id, { agentId: trader.agentId, ...input })
        const check = quote.checks.find(({ rule }: Body) => rule === 'tokenTransferable')
        expect({ id, check }).toMatchObject({ id, check: { code: 'TOKEN_RESTRICTED', pass: false } })
        expect(check.remedy).toMatch(/Only the token's issuer can lift this/)
        expect(check.remedy).toContain(words)
      }
      for (const refused of [
        await submit(trader, 'submitAddIntent', { positionId, usdcAmount: '10' }),
        await submit(trader, 'submitReduceIntent', { positionId, exitBps: '5000' }),
      ])
        expect(refused).toMatchObject({
          status: 503,
          body: {
            code: 'TOKEN_RESTRICTED',
            error: expect.stringContaining(words),
            remedy: expect.stringContaining('issuer can lift'),
            details: { token: HOOD, account: expected.account },
          },
        })
      const readiness = await call('getReadiness')
      expect(restrictedOf(readiness)).toEqual([{ vault: 'frontier', symbol: 'HOOD', ...expected }])
      expect(JSON.stringify(readiness.body.problems)).toContain('frontier cannot sell HOOD')
      await lift()
      expect(restrictedOf(await call('getReadiness'))).toEqual([])
    },
  )

  it('a token that its issuer keeps from the venue can be bought, with a warning, and not sold', async () => {
    const SwapAdapter = contracts.SwapAdapter as Hex
    await block(SwapAdapter, true)
    const agentId = trader.agentId
    const { body: purchase } = await call('getAddIntentQuote', { agentId, positionId, usdcAmount: '10' })
    expect(purchase.warnings).toContainEqual(
      expect.stringContaining(`cannot sell HOOD now: its issuer blocked ${SwapAdapter}`),
    )
    expect(purchase.checks.every(({ pass }: Body) => pass)).toBe(true)
    expect(await submit(trader, 'submitAddIntent', { positionId, usdcAmount: '10' })).toMatchObject({ status: 201 })
    expect(await submit(trader, 'submitReduceIntent', { positionId, exitBps: '5000' })).toMatchObject({
      status: 503,
      body: { code: 'TOKEN_RESTRICTED', details: { account: SwapAdapter } },
    })
  })

  it('a token that its issuer burns, or blocks the vault for, between quote and submission is named in the refusal', async () => {
    const sale = await signedIntent(trader, 'submitReduceIntent', { positionId, exitBps: '10000' })
    const held = await balance()
    await burn(held)
    expect(await call('submitReduceIntent', sale)).toMatchObject({
      status: 503,
      body: { code: 'TOKEN_RESTRICTED', details: { account: FRONTIER } },
    })
    await mint(held)
    // A block that was lifted again leaves nothing behind.
    await block(FRONTIER, true)
    await block(FRONTIER, false)
    const part = await signedIntent(trader, 'submitReduceIntent', { positionId, exitBps: '1000' })
    expect(await call('submitReduceIntent', part)).toMatchObject({ status: 201 })
  })

  it('a token that its issuer restricts does not concern positions on paper', async () => {
    const paper = await newTrader({ vault: GENESIS })
    const held = await openPosition(paper, { symbol: 'AAPL', usdcAmount: '50', exits: '-500:10000' })
    await block(GENESIS, true)
    const { body: quote } = await call('getReduceIntentQuote', {
      agentId: paper.agentId,
      positionId: held,
      exitBps: 5000,
    })
    expect(quote.checks.every(({ pass }: Body) => pass)).toBe(true)
    expect(await submit(paper, 'submitReduceIntent', { positionId: held, exitBps: '10000' })).toMatchObject({
      status: 201,
    })
    await block(GENESIS, false)
  })

  it('a token that its issuer restricts is counted for the alert', async () => {
    const secret = 'the-operators-own'
    const fetch = appWith({ OPERATOR_SECRET: secret })
    const sample = async () => {
      const response = await request('/metrics', { headers: { authorization: `Bearer ${secret}` } }, fetch)
      return /^ats_restricted_tokens (\d+)/m.exec(new TextDecoder().decode(await response.arrayBuffer()))?.[1]
    }
    expect(await sample()).toBe('0')
    await pauseToken(true)
    expect(Number(await sample())).toBeGreaterThan(0)
  })
})

describe('the dollar', () => {
  it('the dollar whose issuer blocks a vault is named in refusals and in readiness, until the issuer lifts it', async () => {
    const testClient = createTestClient({ mode: 'anvil', transport: http(deployment.rpcUrl) })
    const USDC = contracts.USDC as Hex
    const own = (await client.getCode({ address: USDC })) ?? '0x'
    const args = [accounts.admin.address] as const
    const deployed = encodeDeployData({ abi: blockableUsdcAbi, bytecode: bytecodes.BlockableUsdc as Hex, args })
    const { data: code = '0x' } = await client.call({ data: deployed })
    const setBlacklisted = (isBlocked: boolean) =>
      chain.send(accounts.payer, {
        address: USDC,
        abi: blockableUsdcAbi,
        functionName: 'setBlacklisted',
        args: [FRONTIER, isBlocked],
      })
    await testClient.setCode({ address: USDC, bytecode: code })
    try {
      await setBlacklisted(true)
      for (const refused of [
        await submit(trader, 'submitAddIntent', { positionId, usdcAmount: '10' }),
        await submit(trader, 'submitReduceIntent', { positionId, exitBps: '1000' }),
      ])
        expect(refused).toMatchObject({
          status: 503,
          body: {
            code: 'TOKEN_RESTRICTED',
            remedy: expect.stringContaining('issuer can lift'),
            details: { token: USDC, account: FRONTIER },
          },
        })
      const { body } = await call('getReadiness')
      const { restricted, problems } = body.details ?? body
      expect(restricted).toContainEqual({ vault: 'frontier', symbol: 'USDC', kind: 'blocked', account: FRONTIER })
      expect(JSON.stringify(problems)).toContain('frontier cannot pay USDC')
      await setBlacklisted(false)
      const { body: lifted } = await call('getReadiness')
      expect((lifted.details ?? lifted).restricted).toEqual([])
      expect(await submit(trader, 'submitReduceIntent', { positionId, exitBps: '1000' })).toMatchObject({ status: 201 })
    } finally {
      await testClient.setCode({ address: USDC, bytecode: own })
    }
  })
})

describe('a hostile token', () => {
  // INVALID takes all gas that it is given; the other returns 4 MB of zeros.
  it.each([
    ['takes all gas', '0xfe'],
    ['returns megabytes', '0x623d09005ff3'],
    ['returns 31 bytes', '0x601f5ff3'],
  ] as const)('a hostile token that %s leaves the others listed, priced and tradable', async (_, code) => {
    const testClient = createTestClient({ mode: 'anvil', transport: http(deployment.rpcUrl) })
    const own = (await client.getCode({ address: HOOD })) ?? '0x'
    await testClient.setCode({ address: HOOD, bytecode: code })
    try {
      const { status, body } = await call('listTokens')
      expect(status).toBe(200)
      expect(body.tokens.map(({ symbol }: Body) => symbol)).toEqual(expect.arrayContaining(['NVDA', 'COIN']))
      expect((await call('getReadiness')).status).toBe(200)
      const other = await newTrader({ vault: FRONTIER })
      await openPosition(other, { symbol: 'PLTR', usdcAmount: '50' })
      expect((await call('getAddIntentQuote', { agentId: trader.agentId, positionId, usdcAmount: '10' })).status).toBe(
        200,
      )
    } finally {
      await testClient.setCode({ address: HOOD, bytecode: own })
    }
  })
})

describe('the keeper', () => {
  it('the keeper tries no exit of a token that its issuer restricts, and fires it in the cycle after that is lifted', async () => {
    await disarmKeeper(keeper())
    await chain.setPrice('HOOD', '120')
    await chain.increaseTime(3)
    await pauseToken(true)
    await runCycle(keeper())
    const { lastOutcome, restriction } = await automation(trader, positionId)
    expect({ lastOutcome, restriction }).toMatchObject({
      lastOutcome: { outcome: 'deferred', reason: 'tokenRestricted' },
      restriction: { kind: 'tokenPaused', account: HOOD },
    })
    const since = await client.getBlockNumber()
    for (let cycle = 0; cycle < 3; cycle++) await runCycle(keeper())
    expect((await automation(trader, positionId)).lastOutcome).toEqual(lastOutcome)
    const sent = await client.getTransactionCount({ address: accounts.keeper.address, blockNumber: since })
    expect(await client.getTransactionCount({ address: accounts.keeper.address })).toBe(sent)

    await pauseToken(false)
    await chain.refreshPrices()
    await runCycle(keeper())
    expect(await automation(trader, positionId)).toMatchObject({
      status: 'Closed',
      restriction: null,
      lastOutcome: { outcome: 'executed' },
    })
  })

  it('the keeper waits while all tokens of the vault are burned, and sells once the issuer has returned them', async () => {
    await chain.setPrice('HOOD', '138.6')
    await chain.increaseTime(3)
    const held = await openPosition(trader, { symbol: 'HOOD', usdcAmount: '50', exits: '-500:10000' })
    await disarmKeeper(keeper())
    const before = await balance()
    await burn(before)
    await chain.setPrice('HOOD', '120')
    await chain.increaseTime(3)
    await runCycle(keeper())
    expect(await automation(trader, held)).toMatchObject({
      lastOutcome: { outcome: 'deferred', reason: 'tokenRestricted' },
      restriction: { kind: 'shortOfLedger', account: FRONTIER },
    })
    expect(restrictedOf(await call('getReadiness'))).toMatchObject([{ kind: 'shortOfLedger' }])
    await mint(before)
    await chain.refreshPrices()
    await runCycle(keeper())
    expect(await automation(trader, held)).toMatchObject({ status: 'Closed', lastOutcome: { outcome: 'executed' } })
  })

  it('the keeper tries no order in a token that its issuer restricts, and executes it in the cycle after that is lifted', async () => {
    await chain.setPrice('HOOD', '138.6')
    await chain.increaseTime(3)
    const held = await openPosition(trader, { symbol: 'HOOD', usdcAmount: '50', exits: '-2000:10000' })
    const other = await newTrader({ vault: FRONTIER })
    const condition = OrderCondition.AtOrBelow
    const orders = [
      await placeOrder(trader, { symbol: 'HOOD', positionId: BigInt(held), condition, price: 130_00000000n }),
      await placeOrder(other, { symbol: 'HOOD', usdcAmount: 20_000_000n, condition, price: 130_00000000n }),
    ]
    const reports = () => keeper().findOrders(orders.map(({ orderId }) => orderId))
    await env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
    await vi.waitFor(async () => expect((await reports()).every(each => each !== undefined)).toBe(true), 120_000)
    await disarmKeeper(keeper())
    await chain.increaseTime(3)
    await chain.setPrice('HOOD', '125')
    await pauseToken(true)
    await runCycle(keeper())
    const refused = await reports()
    expect(refused).toMatchObject([
      { lastRefusal: { code: 'TOKEN_RESTRICTED' }, nextTryAt: null },
      { lastRefusal: { code: 'TOKEN_RESTRICTED' }, nextTryAt: null },
    ])
    const { body } = await call('getOrder', { agentId: trader.agentId, orderId: orders[0]?.orderId ?? '' })
    expect(body).toMatchObject({ state: 'open', waitsFor: { code: 'TOKEN_RESTRICTED' } })
    for (let cycle = 0; cycle < 2; cycle++) {
      await chain.increaseTime(90)
      await chain.refreshPrices()
      await runCycle(keeper())
    }
    expect(await reports()).toEqual(refused)

    // Another restriction is another reason to wait.
    await block(FRONTIER, true)
    await pauseToken(false)
    await runCycle(keeper())
    expect((await reports())[0]?.lastRefusal?.message).toContain(`blocked ${FRONTIER}`)

    await block(FRONTIER, false)
    await chain.refreshPrices()
    await runCycle(keeper())
    expect(await reports()).toEqual([undefined, undefined])
    expect((await automation(trader, held)).status).toBe('Closed')
  })
})
