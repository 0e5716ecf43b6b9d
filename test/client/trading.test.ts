import { expect, it } from 'vitest'
import {
  RefusedError,
  type ServiceEvent,
  type StreamPosition,
  ValidationError,
} from '../../packages/client/src/index.ts'
import { clientOf, LADDER, newAccount, newAgent, newPayer, serviceUrl } from './support.ts'

const symbols = ['NVDA', 'AAPL']

it('an agent registers for a fee, opens, adds, changes its ladder, reduces and closes', async () => {
  const account = newAccount()
  const client = clientOf(account)
  const payer = newPayer()
  const { agentId } = await client.register({
    vault: 'genesis',
    name: 'first',
    metadataURI: 'https://agents.example/first.json',
    payer,
  })
  const agent = client.agent(agentId)
  const { positionId } = await agent.open({ symbol: 'NVDA', usdcAmount: '250.5', exits: LADDER })
  await agent.add({ positionId, usdcAmount: 100_000_000n })
  await agent.setLadder({ positionId, exits: [{ triggerBps: -500, exitBps: 10_000 }] })
  const { position } = await client.getPosition({ agentId, positionId })
  expect(position).toMatchObject({ usdcCostBasis: '350500000', pendingRules: [{ triggerBps: -500 }] })
  await agent.reduce({ positionId: BigInt(positionId), exitBps: 5_000 })
  const { transactionHash } = await agent.close({ positionId })
  expect(await client.getTransaction({ txHash: transactionHash })).toMatchObject({ status: 'success' })
  expect((await client.listPositions({ agentId })).positions).toEqual([])
  const { trades } = await client.getTradeHistory({ agentId, limit: 1 })
  expect(trades).toMatchObject([{ type: 'PositionReduced', transactionHash, positionPnlUsdc: expect.any(String) }])
})

it('a ladder in percent and the most that a stop may lose size a trade exactly', async () => {
  const account = newAccount()
  const agentId = await newAgent(account)
  const agent = clientOf(account).agent(agentId)
  const sized = { symbol: 'NVDA', maxLossUsdc: '8', stopLossPercent: '8', takeProfitPercent: '15.25' }
  const { quote, typedData, checks } = await agent.prepareOpen(sized)
  expect(typedData.message.usdcAmount).toBe('74349442')
  expect(quote.body?.exits).toEqual([
    { triggerType: 'StopLoss', triggerBps: -800, exitBps: 10_000 },
    { triggerType: 'TakeProfit', triggerBps: 1_525, exitBps: 10_000 },
  ])
  expect(checks.filter(({ pass }) => !pass)).toEqual([])
  const { positionId } = await agent.open(sized)
  const added = await agent.prepareAdd({ positionId, maxLossUsdc: '10' })
  expect(added.typedData.message.usdcAmount).toBe(`${92_936_802 - 74_349_442}`)
  expect(added.quote.lossAtStopUsdc).toBe('10000000')
  await agent.setLadder({ positionId, stopLossPercent: 2.5 })
  const { position } = await clientOf(account).getPosition({ agentId, positionId })
  expect(position.pendingRules).toMatchObject([{ triggerBps: -250, exitBps: 10_000 }])
  for (const wrong of [
    { symbol: 'NVDA', usdcAmount: '100', stopLossPercent: '8.125' },
    { symbol: 'NVDA', usdcAmount: '100', stopLossPercent: 0.1 + 0.2 },
    { symbol: 'NVDA', usdcAmount: '100', stopLossPercent: 100 },
    { symbol: 'NVDA', usdcAmount: '100', stopLossPercent: '8', exits: LADDER },
    { symbol: 'NVDA', usdcAmount: '100', maxLossUsdc: '8', exits: LADDER },
  ])
    await expect(agent.prepareOpen(wrong)).rejects.toBeInstanceOf(ValidationError)
})

it('concurrent calls for one agent run one after another, also after one that fails', async () => {
  const account = newAccount()
  const agentId = await newAgent(account)
  const agent = clientOf(account).agent(agentId)
  const open = (symbol: string, usdcAmount = '10') => agent.open({ symbol, usdcAmount, exits: LADDER })
  const outcomes = await Promise.allSettled([open('NVDA'), open('AAPL', '99999999'), open('AAPL'), open('MSFT')])
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
})

it('an owner who is not the signer consents, sets mandates, stops, and gives the agent away', async () => {
  const [signer, owner, heir] = [newAccount(), newAccount(), newAccount()]
  const client = clientOf(signer)
  const { agentId } = await client.register({
    vault: 'genesis',
    name: 'owned',
    metadataURI: 'https://agents.example/owned.json',
    owner,
    payer: newPayer(),
  })
  const owned = client.owner(agentId, owner)
  const mandate = { mode: 'trade', maxTradeUsdc: '100', allowedTokens: symbols } as const
  expect(await owned.setMandate(mandate)).toMatchObject({
    owner: owner.address,
    mandate: { mode: 'trade', maxTradeUsdc: '100000000', allowedTokens: symbols.map(symbol => ({ symbol })) },
  })
  const tooLarge = client.agent(agentId).open({ symbol: 'NVDA', usdcAmount: '101', exits: LADDER })
  await expect(tooLarge).rejects.toMatchObject({
    code: 'CHECKS_FAILED',
    kind: 'refused',
    message: expect.stringMatching(
      /^The check mandateTrade fails: 101.00 USDC after the trade, with a limit of 100.00 USDC/,
    ),
    remedy: expect.stringContaining('mandate'),
    details: { code: 'EXCEEDS_MANDATE_TRADE', rule: 'mandateTrade', remedy: expect.any(String) },
  })
  await client.agent(agentId).open({ symbol: 'NVDA', usdcAmount: '100', exits: LADDER })
  expect((await owned.cancel()).intentNonce).toBe('2')
  const newSigner = newAccount()
  expect((await owned.setSigner({ newSigner: newSigner.address })).signer).toBe(newSigner.address)
  await owned.transfer({ newOwner: heir.address })
  const accepted = await client.owner(agentId, heir).acceptTransfer({ newSigner: signer.address })
  expect(accepted).toMatchObject({ owner: heir.address, signer: signer.address, pendingOwner: null })
  expect((await client.owner(agentId, heir).stop({ action: 'reduceOnly' })).mandate.mode).toBe('reduceOnly')
  // The former owner's message is not even signed.
  await expect(owned.stop({ action: 'flatten' })).rejects.toMatchObject({ code: 'WRONG_ACCOUNT' })
})

it('a signer elsewhere gets what to sign and hands the signature in', async () => {
  const elsewhere = newAccount()
  const agentId = await newAgent(elsewhere)
  const client = clientOf(elsewhere, { account: undefined } as never)
  const prepared = await client.agent(agentId).prepareOpen({ symbol: 'AAPL', usdcAmount: '50', exits: LADDER })
  expect(prepared.signer).toBe(elsewhere.address)
  expect(prepared.checks.filter(({ pass }) => !pass)).toEqual([])
  await expect(prepared.sign()).rejects.toMatchObject({ code: 'NO_ACCOUNT' })
  const signature = await prepared.sign(elsewhere)
  const receipt = await prepared.submit(signature)
  // Handing it in again returns the same trade.
  expect(await prepared.submit(signature)).toEqual(receipt)
})

it('events resume by id after every dropped connection, without loss or repetition', async () => {
  const account = newAccount()
  const agentId = await newAgent(account)
  let connections = 0
  const client = clientOf(account, {
    // Cuts each stream after the first event that follows its position.
    async fetch(url, init) {
      const response = await fetch(url, init)
      if (!url.endsWith('/events') || !response.body) return response
      connections++
      return new Response(response.body.pipeThrough(cutAfterEvent()), response)
    },
  })
  const agent = client.agent(agentId)
  const { asOf } = await client.getMandate({ agentId })
  const positions: StreamPosition[] = []
  const lastEventId = `${asOf.blockNumber}-999999`
  const events = client.events({ agentId, lastEventId, onPosition: position => positions.push(position) })
  const { positionId } = await agent.open({ symbol: 'NVDA', usdcAmount: '20', exits: LADDER })
  await agent.reduce({ positionId, exitBps: 5_000 })
  await agent.close({ positionId })
  const received: ServiceEvent[] = []
  for await (const event of events) {
    if (event.type === 'trade') received.push(event)
    if (received.length === 3) break
  }
  expect(received.map(({ data }) => (data as { type: string }).type)).toEqual([
    'PositionOpened',
    'PositionReduced',
    'PositionReduced',
  ])
  expect(new Set(received.map(({ id }) => id)).size).toBe(3)
  expect(connections).toBeGreaterThanOrEqual(3)
  expect(positions[0]).toEqual({ id: lastEventId, blockNumber: asOf.blockNumber })
})

it('every read is a typed method, and an error says what to do', async () => {
  const client = clientOf(newAccount())
  const { tokens } = await client.listTokens()
  expect(tokens.map(({ symbol }) => symbol)).toEqual(expect.arrayContaining(symbols))
  expect((await client.getDiscovery()).chainId).toBe((await client.listTokens()).chainId)
  const missing = await client.getAgent({ agentId: 999_999n }).catch(error => error)
  expect(missing).toMatchObject({
    name: 'NotFoundError',
    kind: 'not-found',
    code: 'AGENT_NOT_FOUND',
    status: 404,
    retryable: false,
    requestId: expect.any(String),
    remedy: expect.any(String),
  })
  expect(missing.is('AGENT_NOT_FOUND') && missing.details.agentId).toBe('999999')
  const agent = client.agent('1')
  const open = (usdcAmount: never) => agent.open({ symbol: 'NVDA', usdcAmount, exits: LADDER })
  await expect(open(250.5 as never)).rejects.toThrow(/is a number; pass a decimal string/)
  await expect(open('0' as never)).rejects.toBeInstanceOf(ValidationError)
  await expect(open('1.0000001' as never)).rejects.toThrow(/more than 6 decimals/)
  expect(new RefusedError('X', 'y')).toBeInstanceOf(Error)
  expect(serviceUrl).toMatch(/^http/)
})

/** Ends a stream after the first event that is not its position. */
function cutAfterEvent(): TransformStream<Uint8Array, Uint8Array> {
  let text = ''
  return new TransformStream({
    transform(chunk, controller) {
      text += new TextDecoder().decode(chunk)
      const [event] = /[\s\S]*?event: (?!position)[\s\S]*?\n\n/.exec(text) ?? []
      if (event === undefined) return
      controller.enqueue(new TextEncoder().encode(event))
      controller.terminate()
    },
  })
}
