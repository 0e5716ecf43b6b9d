import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** How a bad node responds to every request. */
export const nodeFaults = [
  'with headers and then one byte at a time',
  'never',
  'with a closed connection',
  'with text',
  'with results of another type',
  'with an internal error',
  'with 40 MB',
] as const

/** About what a bad node lies; everything else it takes from a healthy node. */
export const nodeLies = ['the data of calls', 'nonces', 'the genesis block', 'the transactions it accepts'] as const
export type NodeFault = (typeof nodeFaults)[number] | (typeof nodeLies)[number]

/** A JSON-RPC node on loopback that misbehaves. The number of HTTP requests includes those it has not answered. */
export type BadNode = { url: string; fault: NodeFault | undefined; requests: number; stop(): Promise<void> }

const DRIP_MS = 200
const LARGE_BYTES = 40_000_000
const CHUNK_BYTES = 65_536

/**
 * Starts a bad node in front of a healthy one, which only its lies need. A test sets its fault; without one it is
 * healthy.
 */
export async function startBadNode(healthyUrl?: string): Promise<BadNode> {
  const server = createServer((request, response) => {
    node.requests++
    // The service may have closed the connection already.
    misbehave(node.fault, healthyUrl, request, response).catch(() => request.socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const node: BadNode = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fault: 'never',
    requests: 0,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return node
}

type Call = { id: number; method: string; params: unknown[] }

async function misbehave(
  fault: NodeFault | undefined,
  healthyUrl: string | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body: unknown = JSON.parse(await text(request))
  const calls = [body].flat() as Call[]
  const respond = (replies: object[]) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(Array.isArray(body) ? replies : replies[0]))
  }
  const reply = (content: object) => respond(calls.map(({ id }) => ({ jsonrpc: '2.0', id, ...content })))
  switch (fault) {
    case 'never':
      return
    case 'with headers and then one byte at a time': {
      response.writeHead(200, { 'content-type': 'application/json' })
      const timer = setInterval(() => response.write(' '), DRIP_MS)
      response.once('close', () => clearInterval(timer))
      return
    }
    case 'with a closed connection':
      return void request.socket.destroy()
    case 'with text':
      return void response.end('<h1>Bad Gateway</h1>')
    case 'with results of another type':
      return reply({ result: 7 })
    case 'with an internal error':
      return reply({ error: { code: -32603, message: 'internal error' } })
    case 'with 40 MB': {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': `${LARGE_BYTES}` })
      while (!response.destroyed && response.write(' '.repeat(CHUNK_BYTES))) {} // until the service reads no more
      return
    }
    default:
      return respond(await Promise.all(calls.map(call => liedReply(fault, healthyUrl, call))))
  }
}

/** Returns the healthy node's reply to a call, with the lie in its place. */
async function liedReply(lie: NodeFault | undefined, healthyUrl: string | undefined, call: Call): Promise<object> {
  const { id, method, params } = call
  const isSend = method.startsWith('eth_sendRawTransaction')
  if (lie === 'the transactions it accepts' && isSend)
    return method === 'eth_sendRawTransaction'
      ? { jsonrpc: '2.0', id, result: `0x${'ab'.repeat(32)}` }
      : { jsonrpc: '2.0', id, error: { code: -32601, message: 'the method does not exist' } }
  if (lie === 'the data of calls' && method === 'eth_call') return { jsonrpc: '2.0', id, result: '0x' }
  if (lie === 'nonces' && method === 'eth_getTransactionCount') return { jsonrpc: '2.0', id, result: '0x' }
  const forwarded = await fetch(healthyUrl ?? '', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(call),
  })
  const reply = (await forwarded.json()) as { result?: object }
  const isGenesis = method === 'eth_getBlockByNumber' && params[0] === '0x0'
  if (lie !== 'the genesis block' || !isGenesis) return reply
  return { ...reply, result: { ...reply.result, hash: `0x${'9e'.repeat(32)}` } }
}
