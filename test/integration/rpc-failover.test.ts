import { afterEach, describe, expect, it, vi } from 'vitest'
import { newTrader } from '../support/actors.ts'
import { appWith, callOverHttp as call, deployment } from '../support/surfaces.ts'

// HTTP only: counts the requests to the node.
// The service's response when the node does not support its reads.

/** The tested app's own URL of the node, to tell its requests from background work. */
const OWN_URL = `${deployment.rpcUrl}/operations`
const app = (changes: Record<string, string> = {}) => appWith({ ...changes, RPC_URL: OWN_URL })

type JsonRpc = { id: number; method: string; params: unknown[] }
const original = globalThis.fetch.bind(globalThis)
afterEach(() => vi.restoreAllMocks())

/** Replaces the node's response to a call; undefined leaves it to the node. Returns the log. */
function mockNode(reply: (call: JsonRpc) => object | undefined) {
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const sent = new Request(input as RequestInfo, init as RequestInit)
    if (!sent.url.startsWith(OWN_URL)) return original(sent)
    const body = (await sent.json()) as JsonRpc | JsonRpc[]
    const answer = async (call: JsonRpc) => {
      const replaced = reply(call)
      if (replaced) return { jsonrpc: '2.0', id: call.id, ...replaced }
      const headers = { 'content-type': 'application/json' }
      return (await original(deployment.rpcUrl, { method: 'POST', headers, body: JSON.stringify(call) })).json()
    }
    return Response.json(Array.isArray(body) ? await Promise.all(body.map(answer)) : await answer(body))
  })
  return vi.spyOn(console, 'error').mockImplementation(() => {})
}

describe('a node', () => {
  it.each([
    [{ error: { code: -32602, message: 'too many arguments, want at most 2' } }, '-32602'],
    [{ error: { code: -32601, message: 'the method does not exist' } }, '-32601'],
    [{ result: '0x' }, 'ignores'],
  ])(
    'a node that supports no state override (%o) counts as unreachable without a deployed reader, and the log says why',
    async (reply, problem) => {
      const { agentId } = await newTrader()
      const log = mockNode(({ method, params }) => (method === 'eth_call' && params[2] ? reply : undefined))
      const { ServiceReader: _, ...contracts } = deployment.contracts
      const tested = app({ CONTRACTS: JSON.stringify(contracts) })
      for (const id of ['listPositions', 'getRiskState', 'getTradeIntentQuote'] as const) {
        const { status, body } = await call(id, { agentId }, tested)
        expect({ id, status, body }).toMatchObject({
          status: 502,
          body: { code: 'CHAIN_UNREACHABLE', retryable: true },
        })
      }
      const logged = log.mock.calls.map(([line]) => String(line)).filter(line => line.includes('refused the read'))
      expect(logged).toHaveLength(3)
      expect(logged.every(line => line.includes(problem) && !line.includes(deployment.rpcUrl))).toBe(true)
    },
  )

  it.each([
    ['a number', { result: 7 }],
    ['an object', { result: {} }],
    ['null', { result: null }],
    ['text', { result: 'pending' }],
    ['half a byte', { result: '0x123' }],
    ['other data', { result: '0x1234' }],
  ])('a node that returns %s as the result of a call counts as unreachable', async (_, reply) => {
    const { agentId } = await newTrader()
    mockNode(() => reply)
    const tested = app()
    const requests = [
      ['listPositions', { agentId }],
      ['getRiskState', { agentId }],
      ['getTradeIntentQuote', { agentId }],
      ['getTradeHistory', { agentId }],
      ['getTransaction', { txHash: `0x${'5f'.repeat(32)}` }],
    ] as const
    for (const [id, input] of requests) {
      const { status, body } = await call(id, input, tested)
      expect({ id, status, body }).toMatchObject({ status: 502, body: { code: 'CHAIN_UNREACHABLE', retryable: true } })
    }
  })

  it('a node of another chain counts as unreachable', async () => {
    const { agentId } = await newTrader()
    mockNode(() => undefined)
    const { status, body } = await call('listPositions', { agentId }, app({ CHAIN_ID: `${deployment.chainId + 1}` }))
    expect({ status, body }).toMatchObject({ status: 502, body: { code: 'CHAIN_UNREACHABLE' } })
  })

  it('a node that loses the newest block during a read is queried again', async () => {
    const { agentId } = await newTrader()
    let refused = 0
    mockNode(({ method }) =>
      method === 'eth_call' && refused++ < 2
        ? { error: { code: -32602, message: 'BlockOutOfRangeError: block height is 8 but requested was 7' } }
        : undefined,
    )
    expect((await call('listPositions', { agentId }, app())).status).toBe(200)
    // More if anvil loses a block, too.
    expect(refused).toBeGreaterThanOrEqual(3)
  })
})
