import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Hex, parseTransaction, recoverTransactionAddress, type TransactionSerialized } from 'viem'
import type { FaultPlan, RequestFate } from './plan.ts'

export type RpcProxy = {
  /** The RPC URLs for the service. Each contains a secret that must not leak. */
  urls: string[]
  /** Starts to inject the faults of a plan. Before that, and after `stopFaults`, all requests pass. */
  startFaults(plan: FaultPlan): void
  stopFaults(): void
  /** How often each fault was injected. */
  counts: Map<string, number>
  stop(): Promise<void>
}

type RpcCall = { id: unknown; method: string; params: unknown[] }

/** How long Nitro holds a transaction with a future nonce. */
const FUTURE_NONCE_MS = 1_000
const OVERTAKEN_MS = 250
const OTHER_CHAIN_ID = '0x1'
const ZERO_HASH = `0x${'0'.repeat(64)}`
const DRIP_MS = 100
const QUANTITIES = ['eth_getTransactionCount', 'eth_getBalance', 'eth_blockNumber', 'eth_estimateGas', 'eth_chainId']
const MALFORMED = ['0x', 'pending', 7, '-0x1', null, {}, '0xzz']
const previousNonce = (nonce: unknown) => (Number(nonce) > 0 ? `0x${(Number(nonce) - 1).toString(16)}` : nonce)
const isSend = ({ method }: RpcCall) => method.startsWith('eth_sendRawTransaction')

/** Starts a proxy between the service and the node that injects the faults of a plan. */
export async function startProxy(node: string, { urls, secret }: { urls: number; secret: string }): Promise<RpcProxy> {
  let plan: FaultPlan | undefined
  const seen = new Map<string, number>()
  const counts = new Map<string, number>()
  let faultsStopped = Promise.withResolvers<void>()

  const forward = async (body: unknown): Promise<unknown> => {
    const response = await fetch(node, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return response.json()
  }
  const request = async (method: string, params: unknown[]) =>
    ((await forward({ jsonrpc: '2.0', id: 0, method, params })) as { result?: unknown }).result

  /** Returns the node's response, changed as the plan's kind of node would respond. */
  async function respond(body: RpcCall | RpcCall[]): Promise<unknown> {
    const calls = [body].flat()
    if (!calls.some(isSend)) return distort(calls, await forward(body))
    const respondToOne = (call: RpcCall) => (isSend(call) ? accept(call) : forward(call))
    if (!Array.isArray(body)) return respondToOne(body)
    if (!plan?.isSequencer) return Promise.all(calls.map(respondToOne))
    // A sequencer works off a batch one by one.
    const responses: unknown[] = []
    for (const call of calls) responses.push(await respondToOne(call))
    return responses
  }

  /**
   * Replaces a nonce by the previous one, the chain id by another one, or quantities by something else, if the plan
   * says so.
   */
  function distort(calls: RpcCall[], responses: unknown): unknown {
    const distortions: [name: string, applies: (call: RpcCall) => boolean, change: (result: unknown) => unknown][] = [
      ['stale nonce', ({ method }) => method === 'eth_getTransactionCount', previousNonce],
      ['wrong chain', ({ method }) => method === 'eth_chainId', () => OTHER_CHAIN_ID],
      ['malformed quantity', ({ method }) => QUANTITIES.includes(method), () => malformed()],
    ]
    const wrong = distortions.filter(
      ([name, applies]) => calls.some(applies) && plan?.isResponseWrong(name, next(`lie ${name}`)),
    )
    if (wrong.length === 0) return responses
    for (const [name] of wrong) count(name)
    const replies = [responses].flat() as { id: unknown; result?: unknown }[]
    const distorted = replies.map(reply => {
      const call = calls.find(({ id }) => id === reply.id)
      if (call === undefined || !('result' in reply)) return reply
      const result = wrong.reduce<unknown>(
        (result, [, applies, change]) => (applies(call) ? change(result) : result),
        reply.result,
      )
      return { ...reply, result }
    })
    return Array.isArray(responses) ? distorted : distorted[0]
  }

  async function accept({ id, method, params }: RpcCall): Promise<unknown> {
    const reply = (content: object) => ({ jsonrpc: '2.0', id, ...content })
    const raw = params[0] as TransactionSerialized
    const isSync = method === 'eth_sendRawTransactionSync'
    if (plan?.isSequencer) {
      const message = await nonceErrorOf(raw)
      if (message !== undefined) return reply({ error: { code: -32000, message } })
    }
    // A sequencer responds to both methods only when the transaction is in a block.
    const waits = isSync || plan?.isSequencer
    const sent = (await forward({
      jsonrpc: '2.0',
      id,
      method: waits ? 'eth_sendRawTransactionSync' : method,
      params,
    })) as {
      result?: { transactionHash: Hex }
    }
    if (typeof sent.result !== 'object') return sent
    if (!isSync) return reply({ result: sent.result.transactionHash })
    return plan?.hasZeroHash ? reply({ result: { ...sent.result, blockHash: ZERO_HASH } }) : sent
  }

  /**
   * Waits for the predecessors of a transaction, as a sequencer without a pool does. Returns the error without them.
   */
  async function nonceErrorOf(raw: TransactionSerialized): Promise<string | undefined> {
    const sender = await recoverTransactionAddress({ serializedTransaction: raw as never })
    const { nonce = 0 } = parseTransaction(raw)
    const until = Date.now() + FUTURE_NONCE_MS
    for (;;) {
      const state = Number(await request('eth_getTransactionCount', [sender, 'pending']))
      if (nonce <= state) return undefined
      if (Date.now() > until) return `nonce too high: address ${sender}, tx: ${nonce} state: ${state}`
      await sleep(40)
    }
  }

  const malformed = () => MALFORMED[next('malformed') % MALFORMED.length]
  const next = (content: string) => {
    const ordinal = seen.get(content) ?? 0
    seen.set(content, ordinal + 1)
    return ordinal
  }
  const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1)

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = JSON.parse(await text(incoming)) as RpcCall | RpcCall[]
    const content = `${incoming.url} ${JSON.stringify([body].flat().map(({ method, params }) => [method, params]))}`
    const fate: RequestFate = plan?.fateOf(content, next(content)) ?? { kind: 'forward' }
    if (fate.kind !== 'forward') count(fate.kind)
    const json = (status: number, content: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(content))
    }
    switch (fate.kind) {
      case 'drop':
        return void incoming.socket.end()
      case 'reset':
        return void incoming.socket.resetAndDestroy()
      case 'cut':
        await respond(body)
        return void incoming.socket.destroy()
      case 'drip': {
        const bytes = Buffer.from(JSON.stringify(await respond(body)))
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length })
        for (const byte of bytes) {
          if (response.destroyed || plan === undefined) break
          response.write(Buffer.from([byte]))
          await sleep(DRIP_MS)
        }
        return void incoming.socket.destroy()
      }
      case 'hang':
        await Promise.race([sleep(fate.ms), once(response, 'close'), faultsStopped.promise])
        return void incoming.socket.destroy()
      case 'busy':
        return json(429, { error: 'Too Many Requests' })
      case 'broken':
        return void response.writeHead(500, { 'content-type': 'text/html' }).end('<h1>Internal Server Error</h1>')
      case 'limited': {
        const errors = [body]
          .flat()
          .map(({ id }) => ({ jsonrpc: '2.0', id, error: { code: -32005, message: 'rate limit exceeded' } }))
        return json(200, Array.isArray(body) ? errors : errors[0])
      }
      case 'twice':
        respond(body).catch(() => {})
        return json(200, await respond(body))
      case 'overtaken':
        await sleep(OVERTAKEN_MS)
        return json(200, await respond(body))
      case 'late':
        await sleep(fate.ms)
        return json(200, await respond(body))
      case 'forward':
        return json(200, await respond(body))
    }
  }

  const server = createServer((incoming, response) => {
    // The service may have closed the connection already.
    serve(incoming, response).catch(() => incoming.socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const stopFaults = () => {
    plan = undefined
    faultsStopped.resolve()
  }
  return {
    urls: Array.from({ length: urls }, (_, index) => `http://127.0.0.1:${port}/${index}/${secret}`),
    startFaults(next) {
      plan = next
      faultsStopped = Promise.withResolvers()
      seen.clear()
    },
    stopFaults,
    counts,
    async stop() {
      stopFaults()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
