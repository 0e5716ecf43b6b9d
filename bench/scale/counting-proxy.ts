import { Agent, createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What passed through the proxy: HTTP requests, and bytes of their bodies and of the responses. */
export type Traffic = { requests: number; bytesUp: number; bytesDown: number }

export type CountingProxy = { url: string; traffic(): Traffic; stop(): Promise<void> }

/** Starts a proxy in front of a node, which counts what passes. */
export async function startCountingProxy(nodeUrl: string): Promise<CountingProxy> {
  const agent = new Agent({ keepAlive: true })
  const traffic: Traffic = { requests: 0, bytesUp: 0, bytesDown: 0 }
  const server = createServer((incoming, response) => {
    traffic.requests++
    const { method, headers } = incoming
    const outgoing = send(nodeUrl, { method, headers, agent }, reply => {
      response.writeHead(reply.statusCode ?? 502, reply.headers)
      reply.on('data', (chunk: Buffer) => {
        traffic.bytesDown += chunk.length
      })
      reply.pipe(response)
    })
    outgoing.on('error', () => response.destroy())
    incoming.on('data', (chunk: Buffer) => {
      traffic.bytesUp += chunk.length
    })
    incoming.pipe(outgoing)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    traffic: () => ({ ...traffic }),
    async stop() {
      agent.destroy()
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
