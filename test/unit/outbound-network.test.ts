import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { afterEach, expect, test } from 'vitest'
import { outboundWorker, reachableAddresses } from '../../scripts/outbound-network.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(() => Promise.all(ends.splice(0).map(end => end())))

/** Starts a server on an address of this machine. Returns its URL. */
async function startServer(host: string): Promise<string> {
  const server: Server = createServer((_, response) => response.end('reached'))
  await new Promise<void>(resolve => server.listen(0, host, resolve))
  ends.push(() => new Promise(resolve => server.close(resolve)))
  return `http://${host}:${(server.address() as AddressInfo).port}/`
}

test('a service reaches its own nodes, and nothing else on private networks, whatever a webhook names', async () => {
  const [node, metadata] = [await startServer('127.0.0.1'), await startServer('127.0.0.2')]
  const allowed = await reachableAddresses({ RPC_URL: node }, [])
  expect(allowed).toEqual(['public', '127.0.0.1/32'])
  const script = `export default { async fetch(request) {
    const url = new URL(request.url).searchParams.get('url')
    return new Response(await fetch(url).then(response => response.text(), () => 'blocked'))
  } }`
  const service = {
    name: 'service',
    modules: true,
    script,
    compatibilityDate: '2026-01-01',
    outboundService: 'outbound',
  }
  const miniflare = new Miniflare(convertV4MiniflareOptions({ workers: [service, outboundWorker(allowed)] }))
  ends.push(() => miniflare.dispose())
  const visit = async (url: string) =>
    (await miniflare.dispatchFetch(`http://service/?url=${encodeURIComponent(url)}`)).text()
  expect(await visit(node)).toBe('reached')
  expect(await visit(metadata)).toBe('blocked')
  expect(await reachableAddresses({ RPC_URL: node }, ['10.0.0.0/8'])).toEqual([...allowed, '10.0.0.0/8'])
})
