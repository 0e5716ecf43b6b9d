import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { chain, newTrader, quoteOf, registrationOf, sign, signedIntent, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { call, callOverHttp, deployment, type Input } from '../support/surfaces.ts'

const UNKNOWN = `0x${'ab'.repeat(32)}`
const intentOf = async (digest: string): Promise<Body> => {
  const { status, body } = await call('getIntent', { digest })
  expect({ status, body }).toMatchObject({ status: 200, body: { digest } })
  return body
}

/** Returns the signed body of an intent to open a position, and its digest. */
async function signOpening(trader: Trader, input: Input = {}) {
  const parameters = { agentId: trader.agentId, symbol: 'NVDA', usdcAmount: '20', ...input }
  const { body: quote } = await call('getTradeIntentQuote', parameters)
  const body = { ...quote.body, agentId: trader.agentId, signature: await sign(trader.account, quote.typedData) }
  return { digest: quote.digest as string, body: body as Body }
}

const node = globalThis.fetch.bind(globalThis)
const isSend = (requests: Body) =>
  [requests].flat().some(({ method }: Body) => method.startsWith('eth_sendRawTransaction'))
/** Intercepts the requests that send a transaction to the node. */
const onSend = (act: (forward: () => Promise<Response>) => Promise<Response>) =>
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const request = new Request(input as RequestInfo, init as RequestInit)
    const isOurs = request.url.startsWith(deployment.rpcUrl) && isSend(await request.clone().json())
    return isOurs ? act(() => node(request)) : node(request)
  })
afterEach(() => vi.restoreAllMocks())

describe('an intent', () => {
  it('an intent that was executed has its transaction and the ids it created', async () => {
    const trader = await newTrader()
    const { digest, body } = await signOpening(trader)
    const { body: receipt } = await call('submitTradeIntent', body)
    const { positionId, transactionHash, blockNumber, fill, realizedPnlUsdc, pendingRules } = receipt
    const known = await intentOf(digest)
    expect(known).toEqual({
      digest,
      kind: 'open',
      state: 'mined',
      agentId: trader.agentId,
      signer: trader.account.address,
      signed: {
        symbol: 'NVDA',
        usdcAmount: '20000000',
        minTokenOut: '0',
        maxSlippageBps: 100,
        exits: body.exits,
      },
      positionId,
      transactionHash,
      blockNumber,
      fill,
      realizedPnlUsdc,
      pendingRules,
      calls: [expect.objectContaining({ contract: 'TradeRouter', name: 'openPosition', title: expect.any(String) })],
      nonce: body.nonce,
      deadline: body.deadline,
      attempts: [
        {
          transactionHash,
          nonce: expect.any(Number),
          purpose: 'call',
          state: 'mined',
          sentAt: expect.stringMatching(/^\d{10}$/),
        },
      ],
      createdAt: expect.stringMatching(/^\d{10}$/),
      updatedAt: expect.stringMatching(/^\d{10}$/),
    })
    expect(Number(known.updatedAt)).toBeGreaterThanOrEqual(Number(known.createdAt))
  })

  it('an intent to change a position has what was signed', async () => {
    const trader = await newTrader()
    const { body: opening } = await signOpening(trader)
    const { positionId } = (await call('submitTradeIntent', opening)).body
    const signedOf = async (submission: keyof typeof quoteOf, input: Input) => {
      const { body } = await call(quoteOf[submission], { agentId: trader.agentId, positionId, ...input })
      await call(submission, {
        ...body.body,
        agentId: trader.agentId,
        signature: await sign(trader.account, body.typedData),
      })
      return (await intentOf(body.digest)).signed
    }
    const slippage = { minTokenOut: '0', maxSlippageBps: 100 }
    expect(await signedOf('submitAddIntent', { usdcAmount: '10' })).toEqual({
      positionId,
      usdcAmount: '10000000',
      ...slippage,
    })
    expect(await signedOf('submitExitLadderIntent', { exits: '-300:10000' })).toEqual({
      positionId,
      exits: [{ triggerType: 'StopLoss', triggerBps: -300, exitBps: 10_000 }],
    })
    expect(await signedOf('submitReduceIntent', { exitBps: 2500 })).toEqual({ positionId, exitBps: 2500 })
  })

  it('an intent that the contracts rejected has the same refusal as its submission, and can be executed later', async () => {
    const trader = await newTrader()
    const { digest, body } = await signOpening(trader)
    await chain.pauseTrading('genesis', true)
    const { body: refused } = await call('submitTradeIntent', body).finally(() => chain.pauseTrading('genesis', false))
    const { code, error, remedy } = refused
    expect(code).toBe('TRADING_PAUSED')
    const known = await intentOf(digest)
    expect(known).toMatchObject({ state: 'rejected', attempts: [], refusal: { code, error, remedy } })
    expect(known).not.toHaveProperty('transactionHash')

    expect((await call('submitTradeIntent', body)).status).toBe(201)
    const executed = await intentOf(digest)
    expect(executed).toMatchObject({ state: 'mined', createdAt: known.createdAt })
    expect(executed).not.toHaveProperty('refusal')
  })

  it('an intent that reverted after a good simulation has the transaction and the reason', async () => {
    const trader = await newTrader()
    const { digest, body } = await signOpening(trader)
    onSend(async forward => {
      vi.restoreAllMocks()
      await chain.pauseTrading('genesis', true)
      return forward()
    })
    const { body: refused } = await call('submitTradeIntent', body).finally(() => chain.pauseTrading('genesis', false))
    const { transactionHash } = refused.details
    expect(await intentOf(digest)).toMatchObject({
      state: 'reverted',
      transactionHash,
      blockNumber: expect.stringMatching(/^\d+$/),
      attempts: [{ transactionHash, state: 'reverted' }],
      refusal: { code: refused.code, error: refused.error },
    })
    expect(refused.code).toBe('TRADING_PAUSED')
  })

  it('an intent without a response to its send is pending, and so is its transaction, which no node knows yet', async () => {
    const trader = await newTrader()
    const { digest, body } = await signOpening(trader)
    // Flags instead of promises: workerd may crash when a promise is resolved from another Durable Object.
    let isHeld = false
    let isReleased = false
    onSend(async forward => {
      isHeld = true
      await vi.waitUntil(() => isReleased, { timeout: 30_000, interval: 10 })
      return forward()
    })
    const running = call('submitTradeIntent', body)
    await vi.waitUntil(() => isHeld, { timeout: 30_000, interval: 10 })
    const inFlight = await intentOf(digest)
    expect(inFlight).toMatchObject({
      state: expect.stringMatching(/^(prepared|sent)$/),
      attempts: [{ state: 'pending' }],
    })
    const [{ transactionHash }] = inFlight.attempts
    const { status, body: pending } = await call('getTransaction', { txHash: transactionHash })
    expect({ status, pending }).toEqual({
      status: 200,
      pending: {
        transactionHash,
        status: 'pending',
        from: deployment.accounts.executor.address,
        to: deployment.contracts.TradeRouter,
      },
    })
    isReleased = true
    expect((await running).body).toMatchObject({ transactionHash })
    expect(await intentOf(digest)).toMatchObject({ state: 'mined', transactionHash })
  })

  it('an intent of a registration is found by its digest too', async () => {
    const account = privateKeyToAccount(generatePrivateKey())
    const registration = await registrationOf(account)
    const { signature: _, ...parameters } = registration
    const { body: quote } = await call('getRegistrationQuote', { ...parameters, linkERC8004: 'false' })
    const { body: registered } = await call('registerAgent', registration)
    expect(await intentOf(quote.digest)).toMatchObject({
      kind: 'register',
      state: 'mined',
      signer: account.address,
      nonce: '0',
      agentId: registered.agentId,
      transactionHash: registered.transactionHash,
    })
  })

  it.each([
    ['submitAddIntent', 'getAddIntentQuote', 'add', { usdcAmount: '10' }],
    ['submitExitLadderIntent', 'getExitLadderIntentQuote', 'ladder', { exits: '-900:10000' }],
    ['submitReduceIntent', 'getReduceIntentQuote', 'reduce', { exitBps: 5000 }],
  ] as const)('an intent of %s has its kind and its position', async (submission, quoted, kind, input) => {
    const trader = await newTrader()
    const { body: open } = await call('submitTradeIntent', (await signOpening(trader)).body)
    const parameters = { positionId: open.positionId, ...input }
    const body = await signedIntent(trader, submission, parameters)
    const { body: quote } = await call(quoted, { agentId: trader.agentId, ...parameters, deadline: body.deadline })
    expect((await call(submission, body)).status).toBe(201)
    expect(await intentOf(quote.digest)).toMatchObject({ kind, state: 'mined', positionId: open.positionId })
  })

  it('an intent that was never accepted, or was rejected before it reached the executor, is a 404', async () => {
    const { status, body } = await call('getIntent', { digest: UNKNOWN })
    expect({ status, body }).toMatchObject({
      status: 404,
      body: { code: 'INTENT_NOT_FOUND', details: { digest: UNKNOWN } },
    })
    const trader = await newTrader()
    const intent = await signOpening(trader)
    const { body: stranger } = await signOpening(await newTrader())
    expect((await call('submitTradeIntent', { ...intent.body, signature: stranger.signature })).status).toBe(400)
    expect((await call('getIntent', { digest: intent.digest })).status).toBe(404)
  })

  it.each(['0x12', 'abc', `${UNKNOWN}00`])('an intent is not found by the malformed digest %s', async digest => {
    expect((await call('getIntent', { digest })).body.code).toBe('INVALID_REQUEST')
  })

  it('an intent is found by its digest in upper case too', async () => {
    const { digest, body } = await signOpening(await newTrader())
    await call('submitTradeIntent', body)
    expect((await call('getIntent', { digest: `0x${digest.slice(2).toUpperCase()}` })).body.digest).toBe(digest)
  })

  it('an intent with the nonce of another one in flight gets the digest of the other one', async () => {
    const trader = await newTrader()
    const [one, other] = [await signOpening(trader), await signOpening(trader, { usdcAmount: '21' })]
    let isRefused = false
    onSend(async forward => {
      await vi.waitUntil(() => isRefused, { timeout: 30_000, interval: 10 })
      return forward()
    })
    // Over HTTP alone: by the time of a second call over MCP, the nonce in flight has been used.
    const responses = await Promise.all(
      [one, other].map(async ({ body }) => {
        const response = await callOverHttp('submitTradeIntent', body)
        isRefused ||= response.status !== 201
        return response
      }),
    )
    const refused = responses.find(({ status }) => status !== 201)
    expect(refused?.body).toMatchObject({
      code: 'NONCE_IN_FLIGHT',
      remedy: expect.stringContaining('GET /intents/{digest}'),
    })
    expect(await intentOf(refused?.body.details.digest)).toMatchObject({ state: 'mined', agentId: trader.agentId })
  })
})
