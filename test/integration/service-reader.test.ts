import { afterEach, describe, expect, it, vi } from 'vitest'
import { newTrader } from '../support/actors.ts'
import { appWith, callOverHttp as call, deployment } from '../support/surfaces.ts'

// HTTP only: counts the requests to the node.
// How the reads of several contracts reach the node: through the deployed reader, or with its code in the request.

type JsonRpc = { id: number; method: string; params: [{ to?: string }, string, object?] }
type Sent = { url: string; bytes: number; calls: JsonRpc[] }

const NODE = `${deployment.rpcUrl}/reads`
const OTHER_NODE = `${deployment.rpcUrl}/other-reads`
const { ServiceReader, ...withoutReader } = deployment.contracts
const noReader = { CONTRACTS: JSON.stringify(withoutReader) }

const original = globalThis.fetch.bind(globalThis)
afterEach(() => vi.restoreAllMocks())

/**
 * Watches the app's requests to its nodes. `reply` replaces the response to a call; undefined leaves it to the node.
 */
function watchNode(reply: (call: JsonRpc, url: string) => object | undefined = () => undefined): Sent[] {
  const sent: Sent[] = []
  vi.spyOn(console, 'error').mockImplementation(() => {})
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const { url, ...request } = { url: String(input instanceof Request ? input.url : input), ...init }
    if (url !== NODE && url !== OTHER_NODE) return original(input as RequestInfo, init as RequestInit)
    const text = String(request.body)
    const body = JSON.parse(text) as JsonRpc | JsonRpc[]
    sent.push({ url, bytes: text.length, calls: [body].flat() })
    const respond = async (one: JsonRpc) => {
      const replaced = reply(one, url)
      if (replaced instanceof Response) return replaced
      if (replaced) return { jsonrpc: '2.0', id: one.id, ...replaced }
      const forwarded = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(one) }
      return (await original(deployment.rpcUrl, forwarded)).json()
    }
    if (Array.isArray(body)) return Response.json(await Promise.all(body.map(respond)))
    const response = await respond(body)
    return response instanceof Response ? response : Response.json(response)
  })
  return sent
}

const hasOverride = ({ params }: JsonRpc) => params.length > 2
const refuseOverrides = (one: JsonRpc) =>
  hasOverride(one) ? { error: { code: -32602, message: 'too many arguments, want at most 2' } } : undefined
const quote = (agentId: string, app: ReturnType<typeof appWith>) =>
  call('getTradeIntentQuote', { agentId, symbol: 'NVDA', usdcAmount: '50' }, app)

describe('the deployed reader', () => {
  it('the deployed reader is called by its address, so that a quote sends less than 2 KiB to the node', async () => {
    const { agentId } = await newTrader()
    const sent = watchNode()
    const app = appWith({ RPC_URL: NODE })
    expect((await quote(agentId, app)).status).toBe(200)
    sent.length = 0
    expect((await quote(agentId, app)).status).toBe(200)
    expect(sent.flatMap(({ calls }) => calls).map(({ params }) => params[0].to)).toEqual([ServiceReader])
    expect(sent.reduce((total, { bytes }) => total + bytes, 0)).toBeLessThan(2_048)
  })

  it('the deployed reader serves quotes on a node without state overrides, and readiness says so', async () => {
    const { agentId } = await newTrader()
    watchNode(refuseOverrides)
    const app = appWith({ RPC_URL: NODE })
    expect((await quote(agentId, app)).status).toBe(200)
    const { status, body } = await call('getReadiness', {}, app)
    expect({ status, body }).toMatchObject({ status: 200, body: { reader: { path: 'deployed', problem: null } } })
  })

  it('the deployed reader is not used if its code is not ours', async () => {
    const { agentId } = await newTrader()
    const sent = watchNode()
    const foreign = deployment.contracts.TradeRouterLens
    const app = appWith({
      RPC_URL: NODE,
      CONTRACTS: JSON.stringify({ ...deployment.contracts, ServiceReader: foreign }),
    })
    expect((await quote(agentId, app)).status).toBe(200)
    expect((await quote(agentId, app)).status).toBe(200)
    const calls = sent.flatMap(({ calls }) => calls).filter(({ method }) => method === 'eth_call')
    expect(calls.filter(({ params }) => params[0].to === foreign)).toHaveLength(1) // in the request that reads its code
    expect(calls.filter(hasOverride)).toHaveLength(2)
    const { body } = await call('getReadiness', {}, app)
    expect(body.reader).toEqual({ path: 'override', problem: null })
    expect(body.problems).toContainEqual(expect.stringContaining('ServiceReader'))
  })
})

describe('a deployment without a reader', () => {
  it('a deployment without a reader sends its code with each quote, and readiness says so', async () => {
    const { agentId } = await newTrader()
    watchNode()
    const app = appWith({ RPC_URL: NODE, ...noReader })
    expect((await quote(agentId, app)).status).toBe(200)
    expect((await call('getReadiness', {}, app)).body.reader).toEqual({ path: 'override', problem: null })
  })

  it.each([
    ['an error', { error: { code: -32602, message: 'too many arguments, want at most 2' } }, 'error -32602'],
    ['an empty result', { result: '0x' }, 'an empty result'],
    ['a limit on the size of requests', new Response('<html>413</html>', { status: 413 }), 'error 413'],
  ])('a deployment without a reader is not ready if its node has %s for quotes', async (_, reply, problem) => {
    const { agentId } = await newTrader()
    watchNode(one => (hasOverride(one) ? (reply instanceof Response ? reply.clone() : reply) : undefined))
    const app = appWith({ RPC_URL: NODE, ...noReader })
    expect((await quote(agentId, app)).status).toBe(502)
    const { status, body } = await call('getReadiness', {}, app)
    expect({ status, reader: body.details?.reader }).toEqual({ status: 503, reader: { path: 'none', problem } })
    expect(body.details.problem).toContain(problem)
  })

  it('a deployment without a reader learns once which node has no state overrides', async () => {
    const { agentId } = await newTrader()
    const sent = watchNode((one, url) => (url === NODE ? refuseOverrides(one) : undefined))
    const app = appWith({ RPC_URL: `${NODE},${OTHER_NODE}`, ...noReader })
    for (let index = 0; index < 3; index++) expect((await quote(agentId, app)).status).toBe(200)
    const refused = sent.filter(({ url, calls }) => url === NODE && calls.some(hasOverride))
    expect(refused).toHaveLength(1)
  })
})
