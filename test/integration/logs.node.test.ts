import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pad, toEventSelector } from 'viem'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { findSettlement } from '../../src/payments/settlement-lookup.ts'
import { getLogs } from '../../src/rpc/logs.ts'
import { blockNumberRequest } from '../../src/rpc/requests.ts'
import { createTransport, type RpcTransport } from '../../src/rpc/transport.ts'

// A node that limits the range of eth_getLogs, as hosted nodes do.

const deployment = inject('deployment')
let maxBlocks = Number.POSITIVE_INFINITY
/** Sizes of the requested ranges in blocks. */
let requested: number[] = []
const server: Server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks).toString()
  const { id, method, params } = JSON.parse(body)
  const range = method === 'eth_getLogs' ? Number(params[0].toBlock) - Number(params[0].fromBlock) + 1 : 0
  if (range > 0) requested.push(range)
  const answer =
    range > maxBlocks
      ? JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32005, message: 'query exceeds max block range' } })
      : await fetch(deployment.rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body }).then(
          answered => answered.text(),
        )
  response.writeHead(200, { 'content-type': 'application/json' }).end(answer)
})
let rpc: RpcTransport
/** The last block that every test reads; the chain grows meanwhile. */
let toBlock: bigint

beforeAll(async () => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  rpc = createTransport([`http://127.0.0.1:${(server.address() as AddressInfo).port}`])
  toBlock = BigInt(await rpc.read(blockNumberRequest))
})
afterAll(() => new Promise(resolve => server.close(resolve)))

const roleGranted = toEventSelector('RoleGranted(bytes32,address,address)')
const read = (limit: number) => {
  maxBlocks = limit
  requested = []
  const { AgentRegistry: address } = deployment.contracts
  return getLogs(rpc, { address, topics: [roleGranted] }, { fromBlock: 0n, toBlock })
}

it('logs are read in one request if the node allows it', async () => {
  const logs = await read(Number.POSITIVE_INFINITY)
  expect(logs.length).toBeGreaterThan(0)
  expect(requested).toHaveLength(1)
})

it('ranges are halved until the node accepts them, and every block is read once', async () => {
  const all = await read(Number.POSITIVE_INFINITY)
  const paged = await read(20)
  expect(paged).toEqual(all)
  const returned = requested.filter(range => range <= 20)
  expect(returned.reduce((sum, range) => sum + range, 0)).toBe(Number(toBlock) + 1)
  // A size that was rejected is not requested again.
  expect(new Set(requested.filter(range => range > 20)).size).toBe(requested.filter(range => range > 20).length)
})

it('a node that returns no logs at all counts as unreachable', async () => {
  await expect(read(0)).rejects.toMatchObject({ status: 502, body: { code: 'CHAIN_UNREACHABLE' } })
})

it('only logs that match the filter are returned', async () => {
  maxBlocks = Number.POSITIVE_INFINITY
  const { AgentRegistry: address } = deployment.contracts
  const topics = [roleGranted, null, pad(deployment.accounts.treasury.address)]
  expect(await getLogs(rpc, { address, topics }, { fromBlock: 0n, toBlock: 50n })).toEqual([])
})

it('a settlement is looked up in ranges that the node allows', async () => {
  maxBlocks = 20
  requested = []
  const { USDC: asset } = deployment.contracts
  const [payer, payTo] = [deployment.accounts.payer.address, deployment.accounts.treasury.address]
  const payment = { asset, payer, payTo, amount: 1n, nonce: pad('0x99'), fromBlock: 0n, validSeconds: 3_600n }
  expect(await findSettlement(rpc, [payment])).toBeUndefined()
  expect(requested.filter(range => range <= 20).reduce((sum, range) => sum + range, 0)).toBeGreaterThan(Number(toBlock))
})
