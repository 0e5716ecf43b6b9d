import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterEach, describe, expect, it } from 'vitest'
import { newTrader, openPosition, registrationOf, sign, signedIntent, submit, type Trader } from '../support/actors.ts'
import {
  appWith,
  type CallResult,
  call,
  callOverHttp,
  type Input,
  type OperationId,
  request,
} from '../support/surfaces.ts'

// Each app has its own memory of the switches, as isolates have.

const SECRET = 'operator-of-the-tests'
const REASON = 'The venue is being repaired.'
const operator = appWith({ OPERATOR_SECRET: SECRET })

const put = (body: object, headers: Record<string, string> = { authorization: `Bearer ${SECRET}` }, app = operator) =>
  request(
    '/operator/intake',
    { method: 'PUT', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) },
    app,
  )
async function close(...kinds: string[]) {
  const changes = Object.fromEntries(kinds.map(kind => [kind, { open: false, reason: REASON }]))
  expect((await put(changes)).status).toBe(200)
}
const KINDS = ['registrations', 'buys', 'reductions', 'exitLadders', 'ownerMessages', 'ownerStops', 'priceRefreshes']
const openAll = () => put(Object.fromEntries(KINDS.map(kind => [kind, { open: true }])))

afterEach(async () => {
  expect((await openAll()).status).toBe(200)
  // The tests also use the service in its default configuration, which remembers for a moment what was closed.
  await expect.poll(async () => (await callOverHttp('getHealth')).body.closedIntake, { timeout: 30_000 }).toEqual([])
})

const closed = (kind: string) => ({
  status: 503,
  body: { code: 'INTAKE_CLOSED', details: { kind, reason: REASON }, remedy: expect.any(String), retryable: true },
})

/**
 * Signs the body of an owner's quote and returns the input of the operation. The quote is the operator's: the service
 * in its default configuration may learn what was closed between the calls of the two surfaces.
 */
async function ownerInput({ agentId, account }: Trader, quote: OperationId, input: Input): Promise<Input> {
  const { body } = await call(quote, { agentId, ...input }, operator)
  return { agentId, ...body.body, signature: await sign(account, body.typedData) }
}

describe('the operator', () => {
  it('the operator closes and opens kinds of intake with a secret, and anybody sees which are closed', async () => {
    expect(await (await put({ buys: { open: false, reason: REASON } })).json()).toMatchObject({
      intake: expect.arrayContaining([
        { kind: 'buys', covers: 'opens and adds', open: false, reason: REASON, since: expect.stringMatching(/^\d+$/) },
        { kind: 'reductions', covers: 'reductions', open: true, reason: null, since: null },
      ]),
    })
    const { body } = await callOverHttp('getHealth', {}, operator)
    expect(body.closedIntake).toMatchObject([{ kind: 'buys', reason: REASON }])
    const shown = await request('/operator/intake', { headers: { authorization: `Bearer ${SECRET}` } }, operator)
    expect(((await shown.json()) as { intake: { open: boolean }[] }).intake.filter(({ open }) => !open)).toHaveLength(1)
  })

  it('the operator is known by nothing but the secret', async () => {
    const change = { buys: { open: false, reason: REASON } }
    for (const headers of [{}, { authorization: 'Bearer wrong' }] as Record<string, string>[]) {
      const refused = await put(change, headers)
      expect({ status: refused.status, body: await refused.json() }).toMatchObject({
        status: 401,
        body: { code: 'OPERATOR_ONLY' },
      })
      expect((await request('/operator/intake', { headers }, operator)).status).toBe(401)
    }
    const unset = await put(change, { authorization: 'Bearer ' }, appWith({}))
    expect({ status: unset.status, body: await unset.json() }).toMatchObject({
      status: 503,
      body: { code: 'OPERATOR_NOT_CONFIGURED' },
    })
    expect((await callOverHttp('getHealth', {}, operator)).body.closedIntake).toEqual([])
  })

  it('the operator must give a reason to close, and cannot name unknown kinds', async () => {
    for (const body of [{ buys: { open: false } }, { sales: { open: true } }, { buys: 'closed' }])
      expect((await put(body)).status).toBe(400)
  })

  it('the operator closes an intake in every isolate within seconds', async () => {
    const other = appWith({})
    expect((await callOverHttp('getHealth', {}, other)).body.closedIntake).toEqual([])
    await close('buys')
    await expect
      .poll(async () => (await callOverHttp('getHealth', {}, other)).body.closedIntake, { timeout: 30_000 })
      .toMatchObject([{ kind: 'buys', reason: REASON }])
  })
})

describe('a closed intake', () => {
  it('a closed intake of buys refuses opens and adds, and nothing that gets out; the quote says it beforehand', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const positionId = await openPosition(trader)
    const executed = await signedIntent(trader, 'submitAddIntent', { positionId, usdcAmount: '10' })
    expect(await call('submitAddIntent', executed, operator)).toMatchObject({ status: 201 })
    await close('buys')

    const { body } = await call('getTradeIntentQuote', { agentId, symbol: 'AAPL', usdcAmount: '25' }, operator)
    expect(body.checks).toContainEqual(
      expect.objectContaining({ rule: 'intake', code: 'INTAKE_CLOSED', pass: false, remedy: expect.any(String) }),
    )
    expect(body.bindingRule).toBe('intake')
    expect(await submit(trader, 'submitTradeIntent', { symbol: 'AAPL', usdcAmount: '25' }, operator)).toMatchObject(
      closed('buys'),
    )
    expect(await submit(trader, 'submitAddIntent', { positionId, usdcAmount: '25' }, operator)).toMatchObject(
      closed('buys'),
    )
    // What was executed before is still answered.
    expect(await call('submitAddIntent', executed, operator)).toMatchObject({ status: 201 })

    const left: Promise<CallResult>[] = []
    const done = async (result: Promise<CallResult>) => left.push(Promise.resolve(await result))
    await done(submit(trader, 'submitExitLadderIntent', { positionId, exits: '-900:10000' }, operator))
    await done(submit(trader, 'submitReduceIntent', { positionId, exitBps: 100 }, operator))
    await done(call('stopAgent', await ownerInput(trader, 'getStopQuote', { action: 'reduceOnly' }), operator))
    for (const { status } of await Promise.all(left)) expect(status).toBe(201)
  })

  it('a closed intake of reductions, exit ladders, owners or stops refuses only these', async () => {
    const trader = await newTrader()
    const positionId = await openPosition(trader)
    await close('exitLadders', 'ownerMessages')
    expect(await submit(trader, 'submitExitLadderIntent', { positionId, exits: '-900:10000' }, operator)).toMatchObject(
      closed('exitLadders'),
    )
    const cancel = await ownerInput(trader, 'getCancelQuote', { untilNonce: '9' })
    expect(await call('cancelIntents', cancel, operator)).toMatchObject(closed('ownerMessages'))
    expect((await submit(trader, 'submitReduceIntent', { positionId, exitBps: 100 }, operator)).status).toBe(201)

    await close('reductions', 'ownerStops')
    expect(await submit(trader, 'submitReduceIntent', { positionId, exitBps: 100 }, operator)).toMatchObject(
      closed('reductions'),
    )
    const { agentId } = trader
    const quote = await call('getStopQuote', { agentId, action: 'reduceOnly' }, operator)
    expect(quote.body.warnings).toContainEqual(expect.stringContaining('INTAKE_CLOSED'))
    const stop = await ownerInput(trader, 'getStopQuote', { action: 'reduceOnly' })
    expect(await call('stopAgent', stop, operator)).toMatchObject(closed('ownerStops'))
    await openAll()
    expect((await call('stopAgent', stop, operator)).status).toBe(201)
  })

  it('a closed intake of registrations and price refreshes refuses these, and a body that was executed returns its outcome', async () => {
    const executed = await registrationOf(privateKeyToAccount(generatePrivateKey()))
    const { status, body } = await call('registerAgent', executed, operator)
    expect(status).toBe(201)
    const refused = await registrationOf(privateKeyToAccount(generatePrivateKey()))
    await close('registrations', 'priceRefreshes')
    expect(await call('registerAgent', refused, operator)).toMatchObject(closed('registrations'))
    expect(await callOverHttp('registerAgent', executed, operator)).toMatchObject({
      status: 200,
      body: { agentId: body.agentId },
    })
    const quote = await call('getRegistrationQuote', { signer: refused.signer }, operator)
    expect(quote.body.warnings).toContainEqual(expect.stringContaining('INTAKE_CLOSED'))
    expect(await call('refreshPrices', {}, operator)).toMatchObject(closed('priceRefreshes'))
    expect((await call('getPrices', {}, operator)).status).toBe(200)
  })
})
