import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Body } from '../support/body.ts'

export type ProxiedResponse = { status: number; headers: Record<string, string>; body: Body }
export type ProxiedRequest = { method: string; path: string; body: string }

export type ServiceProxy = {
  url: string
  /** Every request that came, oldest first. */
  requests: ProxiedRequest[]
  /** Sets what happens to the next requests; the service has handled them already when `onResponse` is called. */
  set(behaviour: Behaviour): void
  stop(): Promise<void>
}

export type Behaviour = {
  /** Answers instead of the service. */
  onRequest?(request: ProxiedRequest): ProxiedResponse | 'reset' | undefined
  /** Changes a response, or drops it: the connection is reset without an answer. */
  onResponse?(request: ProxiedRequest, response: ProxiedResponse): ProxiedResponse | 'reset' | undefined
}

/** Starts a server in front of the service that lies or loses answers as a test says. */
export async function startProxy(target: string): Promise<ServiceProxy> {
  const requests: ProxiedRequest[] = []
  let behaviour: Behaviour = {}
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const request = {
      method: incoming.method ?? 'GET',
      path: incoming.url ?? '/',
      body: Buffer.concat(chunks).toString(),
    }
    requests.push(request)
    const instead = behaviour.onRequest?.(request)
    const response = instead ?? (await forward(target, request, incoming.headers['payment-signature']))
    const changed = response === 'reset' ? response : (behaviour.onResponse?.(request, response) ?? response)
    if (changed === 'reset') {
      incoming.socket.destroy()
      return
    }
    outgoing.writeHead(changed.status, changed.headers)
    outgoing.end(JSON.stringify(changed.body))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    set: next => {
      behaviour = next
    },
    stop: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function forward(
  target: string,
  { method, path, body }: ProxiedRequest,
  payment: string | string[] | undefined,
): Promise<ProxiedResponse> {
  const response = await fetch(target + path, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(payment !== undefined && { 'payment-signature': `${payment}` }),
    },
    ...(body !== '' && { body }),
  })
  const kept = ['content-type', 'retry-after', 'x-request-id', 'payment-required', 'payment-response']
  const headers = Object.fromEntries([...response.headers].filter(([name]) => kept.includes(name)))
  return { status: response.status, headers, body: await response.json() }
}
