import { vi } from 'vitest'
import type { Body } from './body.ts'

/** A request that a webhook's receiver got. */
export type ReceivedDelivery = { id: string; url: string; headers: Record<string, string>; text: string; body: Body }

const RESOLVER = 'cloudflare-dns.com'
const A = '1'

/**
 * Answers requests to the resolver and to `*.hooks.example` in place of the internet; everything else goes out as
 * before. A host responds with status 200 unless `respond` says something else, and has a public address unless
 * `addresses` does; the resolver fails for the address `unreachable`.
 */
export function interceptWebhooks() {
  const deliveries: ReceivedDelivery[] = []
  const respond = new Map<string, () => Response | Promise<Response>>()
  const addresses = new Map<string, string>()
  const forward = globalThis.fetch.bind(globalThis)
  const spy = vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const request = new Request(input as string, init as RequestInit)
    const { hostname, searchParams } = new URL(request.url)
    if (hostname === RESOLVER) {
      const [name = '', type] = [searchParams.get('name') ?? '', searchParams.get('type')]
      const data = addresses.get(name) ?? '93.184.216.34'
      if (data === 'unreachable') return new Response(null, { status: 502 })
      return Response.json({ Status: 0, Answer: type === A ? [{ name, type: Number(type), data }] : [] })
    }
    if (!hostname.endsWith('.hooks.example')) return forward(input as RequestInfo, init as RequestInit)
    const text = await request.text()
    const headers = Object.fromEntries(request.headers)
    deliveries.push({ id: headers['webhook-id'] ?? '', url: request.url, headers, text, body: JSON.parse(text) })
    return (await respond.get(hostname)?.()) ?? new Response('ok')
  })
  return {
    deliveries,
    respond,
    addresses,
    /** The deliveries to one host, oldest first. */
    of: (host: string) => deliveries.filter(({ url }) => new URL(url).hostname === host),
    restore: () => spy.mockRestore(),
  }
}
