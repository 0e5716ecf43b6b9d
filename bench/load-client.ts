import { Agent, request } from 'node:http'
import { performance } from 'node:perf_hooks'

/** One request of a load; those of one `order` are sent one after another. */
export type Shot = { method: 'GET' | 'POST'; path: string; body?: string; order?: string }

/** A load: as many clients as stated, each sending its next shot when the last one is answered; or shots at a fixed pace. */
export type Load = { origin: string; shots: Shot[]; clients: number; perSecond?: number; keepBodies?: boolean }

/** What became of a shot: status 0 is a connection that broke. Milliseconds since the load began. */
export type Hit = { status: number; at: number; ms: number; body: string }

export type Report = { hits: Hit[]; seconds: number; cpuSeconds: number }

/** Fires a load and answers what came back, in the order of the shots. */
async function fire({ origin, shots, clients, perSecond, keepBodies = true }: Load): Promise<Report> {
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity, scheduling: 'fifo' })
  const { hostname, port } = new URL(origin)
  const began = performance.now()
  const cpu = process.cpuUsage()

  const send = ({ method, path, body }: Shot) =>
    new Promise<Hit>(resolve => {
      const at = performance.now() - began
      const end = (status: number, text: string) =>
        resolve({ status, at, ms: performance.now() - began - at, body: text })
      const headers =
        body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
      const sent = request({ agent, hostname, port, method, path, headers }, response => {
        const chunks: Buffer[] = []
        response.on('data', chunk => chunks.push(chunk))
        response.on('end', () => end(response.statusCode ?? 0, keepBodies ? Buffer.concat(chunks).toString() : ''))
        response.on('error', () => end(0, ''))
      })
      sent.on('error', () => end(0, ''))
      sent.end(body)
    })

  const earlier = new Map<string, Promise<Hit>>()
  const inOrder = (shot: Shot): Promise<Hit> => {
    if (shot.order === undefined) return send(shot)
    const hit = (earlier.get(shot.order) ?? Promise.resolve()).then(() => send(shot))
    earlier.set(shot.order, hit)
    return hit
  }

  const hits: Hit[] = new Array(shots.length)
  let next = 0
  const client = async () => {
    for (let index = next++; index < shots.length; index = next++) hits[index] = await inOrder(shots[index] as Shot)
  }
  if (perSecond === undefined) await Promise.all(Array.from({ length: clients }, client))
  else {
    await Promise.all(
      shots.map(async (shot, index) => {
        const due = (index * 1_000) / perSecond - (performance.now() - began)
        await new Promise(resolve => setTimeout(resolve, Math.max(0, due)))
        hits[index] = await inOrder(shot)
      }),
    )
  }
  const seconds = (performance.now() - began) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  agent.destroy()
  return { hits, seconds, cpuSeconds: (user + system) / 1e6 }
}

// A process of its own, so that making the load and what is measured do not share a thread.
process.on('message', async (load: Load) => {
  process.send?.(await fire(load))
})
process.once('disconnect', () => process.exit())
