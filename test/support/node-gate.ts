import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export type NodeGate = Awaited<ReturnType<typeof startNodeGate>>

/** Starts an RPC URL that forwards to a node, and can be closed: then it ends every connection. */
export async function startNodeGate(node: string) {
  let isOpen = true
  const server = createServer(async (request, response) => {
    if (!isOpen) return void request.socket.destroy()
    try {
      const forwarded = await fetch(node, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: await text(request),
      })
      const body = await forwarded.text()
      if (!isOpen) return void request.socket.destroy()
      response.writeHead(forwarded.status, { 'content-type': 'application/json' }).end(body)
    } catch {
      request.socket.destroy()
    }
  })
  await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    /** The node's name in metrics. */
    name: `127.0.0.1:${port}`,
    open() {
      isOpen = true
    },
    close() {
      isOpen = false
      server.closeAllConnections()
    },
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}
