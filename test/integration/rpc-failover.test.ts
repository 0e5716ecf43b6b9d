import { afterEach, describe, expect, it, vi } from 'vitest'
import { newTrader } from '../support/actors.ts'
import { appWith, call, deployment } from '../support/surfaces.ts'

// What the service answers when the node does not do what its reads need.

/** The tested app's own address of the node: what runs beside it asks under another. */
const OWN = `${deployment.rpcUrl}/operations`
const app = (changes: Record<string, string> = {}) => appWith({ ...changes, RPC_URL: OWN })

type JsonRpc = { id: number; method: string; params: unknown[] }
const original = globalThis.fetch.bind(globalThis)
afterEach(() => vi.restoreAllMocks())

/** Lets `answer` stand in for the node on one call; undefined leaves it to the node. */
function nodeAnswers(answer: (call: JsonRpc) => object | undefined) {
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const asked = new Request(input as RequestInfo, init as RequestInit)
    if (!asked.url.startsWith(OWN)) return original(asked)
    const request = new Request(deployment.rpcUrl, asked)
    const body = (await request.clone().json()) as JsonRpc
    const own = answer(body)
    return own === undefined ? original(request) : Response.json({ jsonrpc: '2.0', id: body.id, ...own })
  })
  return vi.spyOn(console, 'error').mockImplementation(() => {})
}

describe('a node', () => {
  it.each([
    [{ error: { code: -32602, message: 'too many arguments, want at most 2' } }, '-32602'],
    [{ error: { code: -32601, message: 'the method does not exist' } }, '-32601'],
    [{ result: '0x' }, 'ignores'],
  ])('that takes no state override (%o) is unreachable for the reads, and the log says why', async (answer, said) => {
    const { agentId } = await newTrader()
    const log = nodeAnswers(({ method, params }) => (method === 'eth_call' && params[2] ? answer : undefined))
    const tested = app()
    for (const id of ['listPositions', 'getRiskState', 'getTradeIntentQuote'] as const) {
      const { status, body } = await call(id, { agentId }, tested)
      expect({ id, status, body }).toMatchObject({ status: 502, body: { code: 'CHAIN_UNREACHABLE', retryable: true } })
    }
    const logged = log.mock.calls.map(([line]) => String(line)).filter(line => line.includes('refused the read'))
    expect(logged).toHaveLength(3)
    expect(logged.every(line => line.includes(said) && !line.includes(deployment.rpcUrl))).toBe(true)
  })

  it('of another chain is unreachable for the reads', async () => {
    const { agentId } = await newTrader()
    nodeAnswers(() => undefined)
    const { status, body } = await call('listPositions', { agentId }, app({ CHAIN_ID: `${deployment.chainId + 1}` }))
    expect({ status, body }).toMatchObject({ status: 502, body: { code: 'CHAIN_UNREACHABLE' } })
  })

  it('that loses the newest block while it reads it is asked again', async () => {
    const { agentId } = await newTrader()
    let refused = 0
    nodeAnswers(({ method }) =>
      method === 'eth_call' && refused++ < 2
        ? { error: { code: -32602, message: 'BlockOutOfRangeError: block height is 8 but requested was 7' } }
        : undefined,
    )
    expect((await call('listPositions', { agentId }, app())).status).toBe(200)
    expect(refused).toBe(3)
  })
})
