import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What a pipe does with a request instead of passing it on: answers itself, or resets the connection. */
export type Interception = { status: number; body: unknown } | 'reset' | undefined

/** Starts a server that passes every byte on to another one, streams too, unless a test intercepts a request. */
export async function startPipe(target: string) {
  let intercept: (incoming: IncomingMessage) => Interception = () => undefined
  const { hostname, port } = new URL(target)
  const server = createServer((incoming, outgoing) => {
    const instead = intercept(incoming)
    if (instead === 'reset') return void incoming.socket.destroy()
    if (instead !== undefined) {
      incoming.resume()
      outgoing.writeHead(instead.status, { 'content-type': 'application/json' })
      return void outgoing.end(JSON.stringify(instead.body))
    }
    const { method, url, headers } = incoming
    const passed = request(
      { hostname, port, method, path: url, headers: { ...headers, host: `${hostname}:${port}` } },
      response => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers)
        response.pipe(outgoing)
      },
    )
    passed.on('error', () => outgoing.destroy())
    outgoing.on('close', () => passed.destroy())
    incoming.pipe(passed)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Sets what happens to the next requests. */
    set(next: typeof intercept) {
      intercept = next
    },
    stop: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
