import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pad, toEventSelector } from 'viem'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { getLogs } from '../../src/rpc/get-logs.ts'
import { blockNumberRequest } from '../../src/rpc/requests.ts'
import { createTransport, type RpcTransport } from '../../src/rpc/transport.ts'

// A node that gives logs of few blocks at a time, as hosted ones do.

const deployment = inject('deployment')
let mostBlocks = Number.POSITIVE_INFINITY
let asked: number[] = []
const server: Server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks).toString()
  const { id, method, params } = JSON.parse(body)
  const range = method === 'eth_getLogs' ? Number(params[0].toBlock) - Number(params[0].fromBlock) + 1 : 0
  if (range > 0) asked.push(range)
  const answer =
    range > mostBlocks
      ? JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32005, message: 'query exceeds max block range' } })
      : await fetch(deployment.rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body }).then(
          answered => answered.text(),
        )
  response.writeHead(200, { 'content-type': 'application/json' }).end(answer)
})
let rpc: RpcTransport

beforeAll(async () => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  rpc = createTransport([`http://127.0.0.1:${(server.address() as AddressInfo).port}`])
})
afterAll(() => new Promise(resolve => server.close(resolve)))

const roleGranted = toEventSelector('RoleGranted(bytes32,address,address)')
const read = async (limit: number) => {
  mostBlocks = limit
  asked = []
  const toBlock = BigInt(await rpc.read(blockNumberRequest))
  const { AgentRegistry: address } = deployment.contracts
  return getLogs(rpc, { address, topics: [roleGranted] }, { fromBlock: 0n, toBlock })
}

it('logs are read at once where the node allows it', async () => {
  const logs = await read(Number.POSITIVE_INFINITY)
  expect(logs.length).toBeGreaterThan(0)
  expect(asked).toHaveLength(1)
})

it('logs are read in ever smaller ranges until the node gives them, each block once', async () => {
  const all = await read(Number.POSITIVE_INFINITY)
  const paged = await read(20)
  expect(paged).toEqual(all)
  const given = asked.filter(range => range <= 20)
  const blocks = Number(await rpc.read(blockNumberRequest)) + 1
  expect(given.reduce((sum, range) => sum + range, 0)).toBeGreaterThanOrEqual(blocks - 5)
  // A range that was refused is not asked for again.
  expect(new Set(asked.filter(range => range > 20)).size).toBe(asked.filter(range => range > 20).length)
})

it('a node that gives no logs at all is unreachable', async () => {
  await expect(read(0)).rejects.toMatchObject({ status: 502, body: { code: 'CHAIN_UNREACHABLE' } })
})

it('only what the filter names is answered', async () => {
  mostBlocks = Number.POSITIVE_INFINITY
  const { AgentRegistry: address } = deployment.contracts
  const topics = [roleGranted, null, pad(deployment.accounts.treasury.address)]
  expect(await getLogs(rpc, { address, topics }, { fromBlock: 0n, toBlock: 50n })).toEqual([])
})
