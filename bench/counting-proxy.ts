import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A node's traffic: HTTP requests, JSON-RPC calls in them, and bytes in both directions. */
type RpcCounts = { requests: number; calls: number; bytes: number }
export type CountingProxy = { url: string; counts(): RpcCounts; stop(): Promise<void> }

/** Starts a proxy in front of a node and counts its requests. `rewrite` changes the text of a request. */
export async function startCountingProxy(
  target: string,
  rewrite: (body: string) => string = body => body,
): Promise<CountingProxy> {
  const counts: RpcCounts = { requests: 0, calls: 0, bytes: 0 }
  const server = createServer(async (request, response) => {
    try {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const body = rewrite(Buffer.concat(chunks).toString())
      const forwarded = await fetch(target, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
      const answer = Buffer.from(await forwarded.arrayBuffer())
      const parsed: unknown = JSON.parse(body)
      counts.requests++
      counts.calls += Array.isArray(parsed) ? parsed.length : 1
      counts.bytes += body.length + answer.length
      response.writeHead(forwarded.status, { 'content-type': 'application/json' }).end(answer)
    } catch {
      response.destroy() // the chain has stopped
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts: () => ({ ...counts }),
    async stop() {
      server.closeAllConnections()
      await new Promise<void>(resolve => server.close(() => resolve()))
    },
  }
}
