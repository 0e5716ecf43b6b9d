import { Agent, request } from 'node:http'
import { performance } from 'node:perf_hooks'

/** One request of a load. Requests with the same `order` are sent one after another. */
export type LoadRequest = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  path: string
  body?: string
  /** Sends a body of this many bytes that is not JSON, instead of `body`. */
  bodyBytes?: number
  order?: string
  headers?: Record<string, string>
  /** Whether the request completes with the headers of its response and stays open until the load ends. */
  staysOpen?: boolean
}

/**
 * A load: a closed loop of `clients` that each wait for their response, at most `maxPerSecond` requests together; or a
 * fixed rate of `perSecond` requests.
 */
export type Load = {
  origin: string
  requests: LoadRequest[]
  clients: number
  maxPerSecond?: number
  perSecond?: number
  keepBodies?: boolean
  /** No request starts after this time. */
  maxSeconds?: number
  /** Whether the clients repeat the requests until `maxSeconds`. Results are then in the order of completion. */
  repeats?: boolean
}

/** The result of a request; status 0 is a broken connection. `at` is in milliseconds since the load began. */
export type LoadResult = { status: number; at: number; ms: number; body: string }

export type LoadReport = { results: LoadResult[]; seconds: number; cpuSeconds: number }

/** Runs a load and returns the results in the order of the requests. */
async function run({
  origin,
  requests,
  clients,
  maxPerSecond = Infinity,
  perSecond,
  keepBodies = true,
  maxSeconds = Infinity,
  repeats = false,
}: Load): Promise<LoadReport> {
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity, scheduling: 'fifo' })
  const { hostname, port } = new URL(origin)
  const began = performance.now()
  const cpu = process.cpuUsage()

  const send = ({ method, path, body: text, bodyBytes, headers: more, staysOpen }: LoadRequest) =>
    new Promise<LoadResult>(resolve => {
      const at = performance.now() - began
      const body = bodyBytes === undefined ? text : fillerOf(bodyBytes)
      const end = (status: number, text: string) =>
        resolve({ status, at, ms: performance.now() - began - at, body: text })
      const headers = {
        ...(body !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
        ...more,
      }
      const sent = request({ agent, hostname, port, method, path, headers }, response => {
        if (staysOpen) {
          response.resume()
          response.on('error', () => {})
          return end(response.statusCode ?? 0, '')
        }
        const chunks: Buffer[] = []
        response.on('data', chunk => chunks.push(chunk))
        response.on('end', () => end(response.statusCode ?? 0, keepBodies ? Buffer.concat(chunks).toString() : ''))
        response.on('error', () => end(0, ''))
      })
      sent.on('error', () => end(0, ''))
      sent.end(body)
    })

  const fillers = new Map<number, Buffer>()
  function fillerOf(bytes: number): Buffer {
    const filler = fillers.get(bytes) ?? Buffer.alloc(bytes, 'x')
    fillers.set(bytes, filler)
    return filler
  }

  const earlier = new Map<string, Promise<LoadResult>>()
  const inOrder = (request: LoadRequest): Promise<LoadResult> => {
    if (request.order === undefined) return send(request)
    const result = (earlier.get(request.order) ?? Promise.resolve()).then(() => send(request))
    earlier.set(request.order, result)
    return result
  }

  const results: LoadResult[] = []
  let next = 0
  const isOver = () => (!repeats && next >= requests.length) || performance.now() - began >= maxSeconds * 1_000
  let nextDue = 0
  /** Waits until the next request may start. */
  const waitForTurn = async () => {
    const now = performance.now() - began
    const due = Math.max(nextDue, now)
    nextDue = due + 1_000 / maxPerSecond
    if (due > now) await new Promise(resolve => setTimeout(resolve, due - now))
  }
  const client = async () => {
    while (!isOver()) {
      await waitForTurn()
      const index = next++
      const result = await inOrder(requests[index % requests.length] as LoadRequest)
      if (repeats) results.push(result)
      else results[index] = result
    }
  }
  if (perSecond === undefined) await Promise.all(Array.from({ length: clients }, client))
  else {
    await Promise.all(
      requests.map(async (request, index) => {
        const due = (index * 1_000) / perSecond - (performance.now() - began)
        await new Promise(resolve => setTimeout(resolve, Math.max(0, due)))
        results[index] = await inOrder(request)
      }),
    )
  }
  const seconds = (performance.now() - began) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  agent.destroy()
  return { results, seconds, cpuSeconds: (user + system) / 1e6 }
}

// Runs as a separate process, so that the load and what it measures do not share a thread.
process.on('message', async (load: Load) => {
  process.send?.(await run(load))
})
process.once('disconnect', () => process.exit())
