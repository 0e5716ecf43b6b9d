import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Hex, parseTransaction, recoverTransactionAddress, type TransactionSerialized } from 'viem'
import type { Fate, Plan } from './plan.ts'

export type RpcProxy = {
  /** The URLs of the node, as the service knows them; each holds a secret that must never be seen. */
  urls: string[]
  /** Begins to be unkind as the plan says; until then, and after `calm`, everything passes. */
  follow(plan: Plan): void
  calm(): void
  /** How often each fate has befallen a request. */
  counts: Map<string, number>
  stop(): Promise<void>
}

type Call = { id: unknown; method: string; params: unknown[] }

/** Nitro keeps a future nonce for this long. */
const FUTURE_NONCE_MS = 1_000
const OVERTAKEN_MS = 250
const ANOTHER_CHAIN = '0x1'
const NO_HASH = `0x${'0'.repeat(64)}`
const isSend = ({ method }: Call) => method.startsWith('eth_sendRawTransaction')

/** Stands between the service and the node, and does to each request what the seed says. */
export async function startProxy(node: string, { urls, secret }: { urls: number; secret: string }): Promise<RpcProxy> {
  let plan: Plan | undefined
  const seen = new Map<string, number>()
  const counts = new Map<string, number>()
  let calmed = Promise.withResolvers<void>()

  const ask = async (body: unknown): Promise<unknown> => {
    const response = await fetch(node, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return response.json()
  }
  const askOne = async (method: string, params: unknown[]) =>
    ((await ask({ jsonrpc: '2.0', id: 0, method, params })) as { result?: unknown }).result

  /** What the node says, in the manner of the plan's node. */
  async function answer(body: Call | Call[]): Promise<unknown> {
    const calls = [body].flat()
    if (!calls.some(isSend)) return lie(calls, await ask(body))
    const answers = await Promise.all(calls.map(call => (isSend(call) ? accept(call) : ask(call))))
    return Array.isArray(body) ? answers : answers[0]
  }

  function lie(calls: Call[], answers: unknown): unknown {
    const isLie = (method: string) => {
      if (plan === undefined || !calls.some(call => call.method === method)) return false
      return plan.liesAbout(method, next(`lie ${method}`))
    }
    const isStale = isLie('eth_getTransactionCount')
    const isForeign = isLie('eth_chainId')
    if (!isStale && !isForeign) return answers
    count(isStale ? 'stale nonce' : 'wrong chain')
    const replies = [answers].flat() as { id: unknown; result?: Hex }[]
    const told = replies.map(reply => {
      const method = calls.find(({ id }) => id === reply.id)?.method
      if (isStale && method === 'eth_getTransactionCount' && Number(reply.result) > 0)
        return { ...reply, result: `0x${(Number(reply.result) - 1).toString(16)}` }
      return isForeign && method === 'eth_chainId' ? { ...reply, result: ANOTHER_CHAIN } : reply
    })
    return Array.isArray(answers) ? told : told[0]
  }

  async function accept({ id, method, params }: Call): Promise<unknown> {
    const reply = (content: object) => ({ jsonrpc: '2.0', id, ...content })
    const raw = params[0] as TransactionSerialized
    const isSync = method === 'eth_sendRawTransactionSync'
    if (plan?.isSequencer) {
      const refusal = await refusalOfNonce(raw)
      if (refusal !== undefined) return reply({ error: { code: -32000, message: refusal } })
    }
    // A sequencer answers either way only when the transaction is in a block.
    const waits = isSync || plan?.isSequencer
    const sent = (await ask({ jsonrpc: '2.0', id, method: waits ? 'eth_sendRawTransactionSync' : method, params })) as {
      result?: { transactionHash: Hex }
    }
    if (typeof sent.result !== 'object') return sent
    if (!isSync) return reply({ result: sent.result.transactionHash })
    return plan?.hasZeroHash ? reply({ result: { ...sent.result, blockHash: NO_HASH } }) : sent
  }

  /** Waits a little for the predecessors of a transaction, as a sequencer without a pool does. */
  async function refusalOfNonce(raw: TransactionSerialized): Promise<string | undefined> {
    const sender = await recoverTransactionAddress({ serializedTransaction: raw as never })
    const { nonce = 0 } = parseTransaction(raw)
    const until = Date.now() + FUTURE_NONCE_MS
    for (;;) {
      const state = Number(await askOne('eth_getTransactionCount', [sender, 'pending']))
      if (nonce <= state) return undefined
      if (Date.now() > until) return `nonce too high: address ${sender}, tx: ${nonce} state: ${state}`
      await sleep(40)
    }
  }

  const next = (content: string) => {
    const ordinal = seen.get(content) ?? 0
    seen.set(content, ordinal + 1)
    return ordinal
  }
  const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1)

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = JSON.parse(await text(request)) as Call | Call[]
    const content = `${request.url} ${JSON.stringify([body].flat().map(({ method, params }) => [method, params]))}`
    const fate: Fate = plan?.fateOf(content, next(content)) ?? { is: 'forward' }
    if (fate.is !== 'forward') count(fate.is)
    const json = (status: number, content: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(content))
    }
    switch (fate.is) {
      case 'drop':
        return void request.socket.end()
      case 'reset':
        return void request.socket.resetAndDestroy()
      case 'cut':
        await answer(body)
        return void request.socket.destroy()
      case 'hang':
        await Promise.race([sleep(fate.ms), once(response, 'close'), calmed.promise])
        return void request.socket.destroy()
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
        answer(body).catch(() => {})
        return json(200, await answer(body))
      case 'overtaken':
        await sleep(OVERTAKEN_MS)
        return json(200, await answer(body))
      case 'late':
        await sleep(fate.ms)
        return json(200, await answer(body))
      case 'forward':
        return json(200, await answer(body))
    }
  }

  const server = createServer((request, response) => {
    // A request that the service has given up leaves nobody to tell.
    serve(request, response).catch(() => request.socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const calm = () => {
    plan = undefined
    calmed.resolve()
  }
  return {
    urls: Array.from({ length: urls }, (_, index) => `http://127.0.0.1:${port}/${index}/${secret}`),
    follow(next) {
      plan = next
      calmed = Promise.withResolvers()
      seen.clear()
    },
    calm,
    counts,
    async stop() {
      calm()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
