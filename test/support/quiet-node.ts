import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { numberToHex } from 'viem'
import type { Devnet } from '../../devnet/index.ts'

const EXECUTING = ['eth_call', 'eth_estimateGas']

/**
 * Starts a node in front of an embedded chain that executes calls at the time of the newest block, as the nodes of
 * chains do that make blocks on demand, or `ageSeconds` before it; anvil executes them at the present.
 */
export async function startQuietNode({ client, rpcUrl }: Pick<Devnet, 'client' | 'rpcUrl'>, ageSeconds = 0n) {
  const server = createServer(async (request, response) => {
    const body: unknown = JSON.parse(await text(request))
    const { timestamp } = await client.getBlock()
    const time = numberToHex(timestamp - ageSeconds)
    const aged = [body].flat().map(each => {
      const { method, params } = each as { method: string; params: unknown[] }
      const [call, tag, override = {}, others] = params
      return EXECUTING.includes(method) && others === undefined && tag !== 'pending'
        ? { ...(each as object), params: [call, tag, override, { time }] }
        : each
    })
    const headers = { 'content-type': 'application/json' }
    const sent = JSON.stringify(Array.isArray(body) ? aged : aged[0])
    const answered = await fetch(rpcUrl, { method: 'POST', headers, body: sent })
    response.writeHead(200, headers).end(await answered.text())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => new Promise(resolve => server.close(resolve)),
  }
}
