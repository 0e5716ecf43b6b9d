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
] as const
export type NodeFault = (typeof nodeFaults)[number]

/** A JSON-RPC node on loopback that misbehaves. The number of HTTP requests includes those it has not answered. */
export type BadNode = { url: string; fault: NodeFault; requests: number; stop(): Promise<void> }

const DRIP_MS = 200

/** Starts a bad node. A test sets its fault. */
export async function startBadNode(): Promise<BadNode> {
  const server = createServer((request, response) => {
    node.requests++
    // The service may have closed the connection already.
    misbehave(node.fault, request, response).catch(() => request.socket.destroy())
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

async function misbehave(fault: NodeFault, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body: unknown = JSON.parse(await text(request))
  const calls = [body].flat() as { id: number }[]
  const reply = (content: object) => {
    const replies = calls.map(({ id }) => ({ jsonrpc: '2.0', id, ...content }))
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(Array.isArray(body) ? replies : replies[0]))
  }
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
  }
}
