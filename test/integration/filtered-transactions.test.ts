import { type Hex, keccak256 } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, expect, it, vi } from 'vitest'
import { openPosition, sign, signedIntent, submit } from '../support/actors.ts'
import { listen } from '../support/event-stream.ts'
import { newOwnedTrader } from '../support/owner.ts'
import { callOverHttp, request } from '../support/surfaces.ts'
import { interceptWebhooks } from '../support/webhook-receiver.ts'

// A sequencer that leaves transactions out, which it tells nobody: it accepts them and no node knows them afterwards.
// HTTP only: every request to a node goes through `fetch`, and the events are those of one stream.

const receiver = interceptWebhooks()
afterAll(() => receiver.restore())
const WAIT = { timeout: 120_000, interval: 200 }

type Call = { id: number; method: string; params: unknown[] }

/** Filters the transactions whose bytes contain these, until the test ends. */
function filterTransactions(part: string): () => void {
  const forward = globalThis.fetch
  vi.stubGlobal('fetch', async (input: RequestInfo, init?: RequestInit) => {
    const { body } = init ?? {}
    if (typeof body !== 'string' || !body.includes('eth_sendRawTransaction')) return forward(input, init)
    const calls = [JSON.parse(body)].flat() as Call[]
    const isFiltered = ({ method, params: [raw] }: Call) =>
      method.startsWith('eth_sendRawTransaction') && `${raw}`.includes(part)
    const filtered = calls.filter(isFiltered)
    if (filtered.length === 0) return forward(input, init)
    const replies = filtered.map(({ id, params: [raw] }) => ({ jsonrpc: '2.0', id, result: keccak256(raw as Hex) }))
    return Response.json(Array.isArray(JSON.parse(body)) ? replies : replies[0])
  })
  return () => vi.unstubAllGlobals()
}

it('an intent that the sequencer filters ends as dropped: stream, webhook of the owner and state say so, and the agent trades on', async () => {
  const [signer, owner] = [privateKeyToAccount(generatePrivateKey()), privateKeyToAccount(generatePrivateKey())]
  const { agentId } = await newOwnedTrader(signer, owner)
  const trader = { agentId, account: signer }
  const quote = (await callOverHttp('getWebhookQuote', { agentId, url: 'https://owner.hooks.example/' })).body
  const created = await callOverHttp('createWebhook', {
    agentId,
    ...quote.body,
    signature: await sign(owner, quote.typedData),
  })
  expect(created).toMatchObject({ status: 201, body: { webhook: { createdBy: 'owner' } } })
  const stream = listen(await request(`/agents/${agentId}/events`))
  await stream.open()

  const body = await signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '100' })
  const stop = filterTransactions((body.signature as string).slice(2))
  const sent = await callOverHttp('submitTradeIntent', { agentId, ...body })
  expect(sent).toMatchObject({ status: 502, body: { code: 'SUBMISSION_UNKNOWN' } })
  const { digest } = sent.body.details
  const dropped = { digest, state: 'dropped', refusal: { code: 'TRANSACTION_DROPPED' } }
  const told = await stream.until(() =>
    stream.events.find(({ event, data }) => event === 'intent' && data.state === 'dropped'),
  )
  expect(told.data).toMatchObject(dropped)
  expect((await callOverHttp('getIntent', { digest })).body).toMatchObject({
    ...dropped,
    attempts: [
      { purpose: 'call', state: 'replaced' },
      { purpose: 'cancel', state: 'mined' },
    ],
  })
  const delivery = () => receiver.of('owner.hooks.example').find(({ body }) => body.data.state === 'dropped')
  await vi.waitFor(() => expect(delivery()?.body).toMatchObject({ type: 'intent', data: dropped }), WAIT)
  stop()
  await stream.leave()

  // The nonces of the agent and of the account are free.
  const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '100' })
  expect((await submit(trader, 'submitReduceIntent', { positionId, exitBps: 10_000 })).status).toBe(201)
})
