import { env } from 'cloudflare:workers'
import { signingTypes } from '@agent-trading-service/protocol/typed-data'
import { type Address, hashTypedData, zeroAddress } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, it, vi } from 'vitest'
import { chain, GENESIS, newTrader, openPosition, registrationOf, signedIntent, submit } from '../support/actors.ts'
import { newOwnedTrader, ownedRegistrationOf, sendAsOwner, signedByOwner } from '../support/owner.ts'
import { call, callOverHttp, deployment } from '../support/surfaces.ts'

const newAccount = () => privateKeyToAccount(generatePrivateKey())
const refusal = (code: string) => ({ status: 400, body: { code } })

describe('a registration with an owner', () => {
  it('a registration with an owner makes the owner own the agent and the signer trade for it', async () => {
    const [signer, owner] = [newAccount(), newAccount()]
    const body = await ownedRegistrationOf(signer, owner)
    const { status, body: registered } = await call('registerAgent', body)
    expect(status).toBe(201)
    const { agentId } = registered
    expect((await call('getAgent', { agentId })).body.agent).toMatchObject({
      owner: owner.address,
      signer: signer.address,
      payoutRecipient: owner.address,
    })
    await openPosition({ agentId, account: signer })
    expect(await call('registerAgent', body)).toMatchObject({ status: 200, body: { agentId } })
  })

  it('a registration with an owner that reverted can be executed with a later nonce of the signer and the same consent', async () => {
    const [signer, owner] = [newAccount(), newAccount()]
    const body = await ownedRegistrationOf(signer, owner)
    const node = globalThis.fetch.bind(globalThis)
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      const request = new Request(input as RequestInfo, init as RequestInit)
      if ((await request.clone().text()).includes('eth_sendRawTransaction')) {
        vi.restoreAllMocks()
        await chain.pauseRegistry(true)
      }
      return node(request)
    })
    const reverted = await callOverHttp('registerAgent', body).finally(() => chain.pauseRegistry(false))
    expect(reverted.body).toMatchObject({
      code: 'ENFORCED_PAUSE',
      details: { transactionHash: expect.any(String) },
    })

    expect(await callOverHttp('registerAgent', await registrationOf(signer))).toMatchObject({ status: 201 })
    const { deadline } = body
    const { signature } = await registrationOf(signer, { owner: owner.address, deadline })
    const { status, body: registered } = await callOverHttp('registerAgent', { ...body, signature })
    expect({ status, registered }).toMatchObject({ status: 200, registered: { agentId: expect.any(String) } })
  })

  it('a registration with an owner is refused without the signature of the owner', async () => {
    const [signer, owner, other] = [newAccount(), newAccount(), newAccount()]
    const body = await ownedRegistrationOf(signer, owner)
    const { ownerSignature } = await ownedRegistrationOf(signer, other)
    expect(await call('registerAgent', { ...body, ownerSignature })).toMatchObject(refusal('INVALID_SIGNATURE'))
    expect(await call('registerAgent', { ...body, ownerSignature: undefined })).toMatchObject(
      refusal('INVALID_REQUEST'),
    )
    expect(await call('registerAgent', { ...body, owner: other.address })).toMatchObject(refusal('INVALID_SIGNATURE'))
  })

  it('a registration with an owner is refused if the signer is the owner', async () => {
    const signer = newAccount()
    const input = { signer: signer.address, owner: signer.address }
    expect(await call('getRegistrationQuote', input)).toMatchObject(refusal('OWNER_IS_SIGNER'))
  })
})

describe('a mandate', () => {
  it('a mandate limits what the agent buys, and is replaced as a whole', async () => {
    const trader = await newTrader()
    const { agentId, account: owner } = trader
    expect((await call('getMandate', { agentId })).body).toMatchObject({
      owner: owner.address,
      mandate: { mode: 'trade', maxTradeUsdc: null, allowedTokens: null, version: '0' },
    })
    const limits = { mode: 'trade', maxTradeUsdc: '100', maxExposureUsdc: '150.5', allowedTokens: 'NVDA' }
    const { status, body } = await sendAsOwner(owner, 'setMandate', { agentId, ...limits })
    expect({ status, body }).toMatchObject({
      status: 200,
      body: {
        mandate: {
          mode: 'trade',
          maxTradeUsdc: '100000000',
          maxDailyTurnoverUsdc: null,
          maxExposureUsdc: '150500000',
          allowedTokens: [{ symbol: 'NVDA', address: deployment.tokens.NVDA }],
          version: '1',
        },
      },
    })
    const openOf = (input: object) =>
      submit(trader, 'submitTradeIntent', { usdcAmount: '100', symbol: 'NVDA', ...input })
    expect(await openOf({ usdcAmount: '100.000001' })).toMatchObject(refusal('EXCEEDS_MANDATE_TRADE'))
    expect(await openOf({ symbol: 'AAPL' })).toMatchObject(refusal('TOKEN_OUTSIDE_MANDATE'))
    const positionId = await openPosition(trader, { usdcAmount: '100' })
    const added = await submit(trader, 'submitAddIntent', { positionId, usdcAmount: '50.500001' })
    expect(added).toMatchObject(refusal('EXCEEDS_MANDATE_EXPOSURE'))

    await sendAsOwner(owner, 'setMandate', { agentId, mode: 'trade', maxTradeUsdc: '200' })
    expect((await call('getMandate', { agentId })).body.mandate).toMatchObject({
      maxTradeUsdc: '200000000',
      maxExposureUsdc: null,
      allowedTokens: null,
      version: '2',
    })
    expect(await openOf({ symbol: 'AAPL', usdcAmount: '200' })).toMatchObject({ status: 201 })
  })

  it('a mandate is set by no one but the owner', async () => {
    const [signer, owner] = [newAccount(), newAccount()]
    const { agentId } = await newOwnedTrader(signer, owner)
    const input = { agentId, mode: 'trade' }
    const body = await signedByOwner(signer, 'setMandate', input)
    expect(await call('setMandate', body)).toMatchObject(refusal('INVALID_SIGNATURE'))
    const unscaled = await signedByOwner(owner, 'setMandate', { ...input, maxTradeUsdc: '7' }, { maxTradeUsdc: '8' })
    expect(await call('setMandate', unscaled)).toMatchObject(refusal('INVALID_SIGNATURE'))
  })

  it.each([
    ['an amount of zero, which would set no limit', { maxTradeUsdc: '0' }, 'INVALID_AMOUNT'],
    ['a token that does not exist', { allowedTokens: 'NOPE' }, 'UNKNOWN_SYMBOL'],
    ['an unknown mode', { mode: 'all' }, 'INVALID_REQUEST'],
  ])('a mandate is refused with %s', async (_, input, code) => {
    const { agentId } = await newTrader()
    const { status, body } = await call('getMandateQuote', { agentId, mode: 'trade', ...input })
    expect(status).toBeGreaterThanOrEqual(400)
    expect(body.code).toBe(code)
  })
})

describe('an owner', () => {
  it('an owner stops buying of several agents with one signature, and reductions still work', async () => {
    const owner = newAccount()
    const traders = [await newOwnedTrader(newAccount(), owner), await newOwnedTrader(newAccount(), owner)] as const
    const positionId = await openPosition(traders[0])
    const [agentId, otherAgentIds] = [traders[0].agentId, traders[1].agentId]
    const body = await signedByOwner(owner, 'stopAgent', { agentId, action: 'reduceOnly', otherAgentIds })
    expect(await call('stopAgent', body)).toMatchObject({ status: 201, body: { mandate: { mode: 'reduceOnly' } } })
    expect(await call('stopAgent', body)).toMatchObject({ status: 200 })
    for (const trader of traders) {
      const opened = await submit(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '250' })
      expect(opened).toMatchObject(refusal('MANDATE_STOPS_BUYING'))
    }
    expect(await submit(traders[0], 'submitReduceIntent', { positionId, exitBps: 5000 })).toMatchObject({ status: 201 })
  })

  it('an owner stops its agents although another one on the list has left, and is told so', async () => {
    const owner = newAccount()
    const { agentId } = await newOwnedTrader(newAccount(), owner)
    const other = await newTrader()
    const body = await signedByOwner(owner, 'stopAgent', {
      agentId,
      action: 'reduceOnly',
      otherAgentIds: other.agentId,
    })
    expect(await call('stopAgent', body)).toMatchObject({
      status: 201,
      body: {
        mandate: { mode: 'reduceOnly' },
        warnings: [`Agent ${other.agentId} belongs to ${other.account.address}, so this message does not stop it.`],
      },
    })
    expect((await call('getMandate', { agentId: other.agentId })).body.mandate.mode).toBe('trade')
  })

  it('a stop takes effect although an older message has used its nonce, and only once', async () => {
    const owner = newAccount()
    const { agentId } = await newOwnedTrader(newAccount(), owner)
    const older = await signedByOwner(owner, 'setMandate', { agentId, mode: 'trade' })
    const stop = await signedByOwner(owner, 'stopAgent', { agentId, action: 'reduceOnly' })
    const flatten = await signedByOwner(owner, 'stopAgent', { agentId, action: 'flatten' })
    expect((await call('setMandate', older)).status).toBe(200)
    expect(await call('stopAgent', stop)).toMatchObject({ status: 201, body: { mandate: { mode: 'reduceOnly' } } })
    expect(await call('stopAgent', flatten)).toMatchObject({ status: 201 })
    expect((await sendAsOwner(owner, 'setMandate', { agentId, mode: 'trade' })).status).toBe(200)
    expect(await call('stopAgent', stop)).toMatchObject({ status: 200, body: { mandate: { mode: 'trade' } } })
  })

  it('an owner starts to close all positions, which anybody may sell then', async () => {
    const trader = await newTrader()
    const { agentId, account: owner } = trader
    const positionId = await openPosition(trader)
    const stop = await signedByOwner(owner, 'stopAgent', { agentId, action: 'flatten' })
    const { status, body } = await call('stopAgent', stop)
    expect({ status, body }).toMatchObject({
      status: 201,
      body: { closingSince: expect.stringMatching(/^\d+$/), openPositionIds: [positionId] },
    })
    const digest = hashTypedData({
      domain: {
        name: 'Service OwnerControls',
        version: '1',
        chainId: deployment.chainId,
        verifyingContract: deployment.contracts.OwnerControls as Address,
      },
      types: { CloseAll: signingTypes.CloseAll },
      primaryType: 'CloseAll',
      message: { agentIds: [BigInt(agentId)], nonce: BigInt(`${stop.nonce}`), deadline: BigInt(`${stop.deadline}`) },
    })
    const { transactionHash } = body
    expect((await call('getIntent', { digest })).body).toMatchObject({
      kind: 'owner',
      signer: owner.address,
      transactionHash,
    })
    expect((await sendAsOwner(owner, 'setMandate', { agentId, mode: 'trade' })).body.closingSince).toBeNull()
  })

  it('an owner replaces the signer, whose signatures are refused from then on', async () => {
    const [thief, signer, owner] = [newAccount(), newAccount(), newAccount()]
    const { agentId } = await newOwnedTrader(thief, owner)
    const stolen = await signedIntent({ agentId, account: thief }, 'submitTradeIntent', {
      symbol: 'NVDA',
      usdcAmount: '250',
    })
    const { body } = await sendAsOwner(owner, 'setSigner', { agentId, newSigner: signer.address })
    expect(body).toMatchObject({ signer: signer.address, owner: owner.address })
    expect(await call('submitTradeIntent', stolen)).toMatchObject(refusal('INVALID_SIGNATURE'))
    await openPosition({ agentId, account: signer })
  })

  it('an owner replaces the signer, and what the former signer executed stays reported', async () => {
    const [former, signer, owner] = [newAccount(), newAccount(), newAccount()]
    const trader = await newOwnedTrader(former, owner)
    const [executed, other] = [
      await signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '250' }),
      await signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '100' }),
    ]
    const opened = await call('submitTradeIntent', executed)
    expect(opened).toMatchObject({ status: 201 })
    await sendAsOwner(owner, 'setSigner', { agentId: trader.agentId, newSigner: signer.address })

    const { positionId, transactionHash } = opened.body
    expect(await call('submitTradeIntent', executed)).toMatchObject({ body: { positionId, transactionHash } })
    const forged = { ...executed, signature: other.signature }
    expect(await call('submitTradeIntent', forged)).toMatchObject(refusal('INVALID_SIGNATURE'))
    expect(await call('submitTradeIntent', other)).toMatchObject(refusal('INVALID_SIGNATURE'))
  })

  it('an owner offers its agent, which changes hands when the new owner accepts', async () => {
    const [signer, owner, newOwner, newSigner] = [newAccount(), newAccount(), newAccount(), newAccount()]
    const { agentId } = await newOwnedTrader(signer, owner)
    expect(await call('getAcceptanceQuote', { agentId })).toMatchObject(refusal('NO_OWNERSHIP_OFFER'))
    const offer = await signedByOwner(owner, 'offerOwnership', { agentId, newOwner: newOwner.address })
    const offered = await call('offerOwnership', offer)
    expect(offered).toMatchObject({ status: 201, body: { owner: owner.address, pendingOwner: newOwner.address } })
    const acceptance = await signedByOwner(newOwner, 'acceptOwnership', { agentId, newSigner: newSigner.address })
    const accepted = await call('acceptOwnership', acceptance)
    expect(accepted).toMatchObject({
      status: 201,
      body: { owner: newOwner.address, signer: newSigner.address, pendingOwner: null },
    })
    expect(await call('acceptOwnership', acceptance)).toMatchObject({
      status: 200,
      body: { transactionHash: accepted.body.transactionHash },
    })
    expect(await call('offerOwnership', offer)).toMatchObject({
      status: 200,
      body: { transactionHash: offered.body.transactionHash },
    })
    const late = await signedByOwner(owner, 'setSigner', { agentId, newSigner: owner.address })
    expect(await call('setSigner', late)).toMatchObject(refusal('INVALID_SIGNATURE'))
  })

  it('an owner that accepts is warned of a new signer that changes, owns the agent or has code, and has no other name for it', async () => {
    const [signer, owner, newOwner] = [newAccount(), newAccount(), newAccount()]
    const { agentId } = await newOwnedTrader(signer, owner)
    await sendAsOwner(owner, 'offerOwnership', { agentId, newOwner: newOwner.address })
    const warningsFor = async (newSigner: Address) =>
      (await call('getAcceptanceQuote', { agentId, newSigner })).body.warnings as string[]
    const changes = (to: Address) => expect.stringContaining(`changes from ${signer.address} to ${to}`)
    expect(await warningsFor(newOwner.address)).toEqual([
      changes(newOwner.address),
      expect.stringContaining('would be the owner'),
    ])
    expect(await warningsFor(GENESIS)).toEqual([changes(GENESIS), expect.stringContaining('is a contract')])
    expect(await warningsFor(signer.address)).toEqual([expect.stringContaining('may still have')])
    const ofSigner = await call('getSignerQuote', { agentId, newSigner: GENESIS })
    expect(ofSigner.body).toMatchObject({ signer: owner.address, warnings: [expect.stringContaining('is a contract')] })
    const former = await call('getAcceptanceQuote', { agentId, signer: newOwner.address })
    expect(former).toMatchObject(refusal('INVALID_REQUEST'))
    expect(former.body.error).toContain('newSigner')
  })

  it('an owner withdraws an offer', async () => {
    const { agentId, account: owner } = await newTrader()
    await sendAsOwner(owner, 'offerOwnership', { agentId, newOwner: newAccount().address })
    const { body } = await sendAsOwner(owner, 'offerOwnership', { agentId, newOwner: zeroAddress })
    expect(body.pendingOwner).toBeNull()
  })

  it('an owner voids what the agent has signed', async () => {
    const trader = await newTrader()
    const { agentId, account: owner } = trader
    const intent = await signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '250' })
    const { body } = await sendAsOwner(owner, 'cancelIntents', { agentId })
    expect(body.intentNonce).toBe('1')
    expect(await call('submitTradeIntent', intent)).toMatchObject(refusal('INVALID_NONCE'))
    await openPosition(trader)
    const far = await call('cancelIntents', await signedByOwner(owner, 'cancelIntents', { agentId, untilNonce: '99' }))
    expect(far).toMatchObject(refusal('INVALID_CANCELLATION'))
  })

  it('an owner is refused with a used nonce, an expired deadline and an unknown agent', async () => {
    const { agentId, account: owner } = await newTrader()
    const first = await signedByOwner(owner, 'stopAgent', { agentId, action: 'reduceOnly' })
    const second = await signedByOwner(owner, 'setMandate', { agentId, mode: 'trade' })
    expect((await call('stopAgent', first)).status).toBe(201)
    expect(await call('setMandate', second)).toMatchObject(refusal('INVALID_NONCE'))
    const expired = await signedByOwner(owner, 'setMandate', { agentId, mode: 'trade' }, { deadline: '1' })
    expect((await call('setMandate', expired)).status).toBe(400)
    expect(await call('getMandate', { agentId: '999999' })).toMatchObject({ status: 404 })
  })
})

describe('a signature of an owner', () => {
  it('a signature of an owner is explained', async () => {
    const { agentId, account: owner } = await newTrader()
    const body = await signedByOwner(owner, 'setMandate', { agentId, mode: 'trade', maxTradeUsdc: '100' })
    const { signature, agentId: _, ...intent } = body
    const verify = (changes: object) =>
      call('verifySignature', { primaryType: 'SetMandate', agentId, intent, signature, ...changes })
    expect((await verify({})).body).toMatchObject({ valid: true, signer: owner.address })
    expect((await verify({ intent: { ...intent, maxTradeUsdc: '100000000' } })).body).toMatchObject({
      valid: false,
      mistake: 'amountNotScaled',
    })
    const stop = await signedByOwner(owner, 'stopAgent', { agentId, action: 'flatten' })
    const { signature: stopSignature, agentId: __, ...stopIntent } = stop
    expect(
      (await verify({ primaryType: 'CloseAll', intent: stopIntent, signature: stopSignature })).body,
    ).toMatchObject({ valid: true })
    expect(
      (await verify({ primaryType: 'StopBuying', intent: stopIntent, signature: stopSignature })).body,
    ).toMatchObject({ valid: false, mistake: 'otherPrimaryType' })
  })
})

it('the messages of an owner that were executed are listed, newest first, a page at a time', async () => {
  const owner = newAccount()
  const { agentId } = await newOwnedTrader(newAccount(), owner)
  await sendAsOwner(owner, 'setMandate', { agentId, mode: 'trade', maxTradeUsdc: '500', allowedTokens: ['NVDA'] })
  await sendAsOwner(owner, 'stopAgent', { agentId, action: 'reduceOnly' })
  await env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
  // HTTP only: an owner looks at the list on a page, and no tool has it.
  const page = await callOverHttp('listOwnerEvents', { agentId, limit: '1' })
  expect(page).toMatchObject({ status: 200, body: { events: [{ type: 'BuyingStopped', mode: 'reduceOnly' }] } })
  const { body } = await callOverHttp('listOwnerEvents', { agentId, limit: '1', cursor: page.body.nextCursor })
  expect(body.events).toMatchObject([
    {
      type: 'MandateUpdated',
      owner: owner.address,
      mandate: { mode: 'trade', maxTradeUsdc: '500000000', allowedTokens: [deployment.tokens.NVDA] },
    },
  ])
  expect(body.nextCursor).toBe(null)
  expect(await callOverHttp('listOwnerEvents', { agentId: '999999' })).toMatchObject({ status: 404 })
})

it('the agents that are offered to an address are listed from the block of the offer on, until it ends', async () => {
  const [owner, buyer] = [newAccount(), newAccount()]
  const { agentId } = await newOwnedTrader(newAccount(), owner)
  // HTTP only: a buyer looks at the list on a page, and no tool has it.
  const offered = async () => {
    const { status, body } = await callOverHttp('listOffers', { owner: buyer.address })
    expect(status).toBe(200)
    return body.offers.map(({ agentId }: { agentId: string }) => agentId)
  }
  expect(await offered()).toEqual([])
  await sendAsOwner(owner, 'offerOwnership', { agentId, newOwner: buyer.address })
  expect(await offered()).toEqual([agentId])
  await sendAsOwner(owner, 'offerOwnership', { agentId, newOwner: zeroAddress })
  expect(await offered()).toEqual([])
  await sendAsOwner(owner, 'offerOwnership', { agentId, newOwner: buyer.address })
  await sendAsOwner(buyer, 'acceptOwnership', { agentId, newSigner: newAccount().address })
  expect(await offered()).toEqual([])
})
