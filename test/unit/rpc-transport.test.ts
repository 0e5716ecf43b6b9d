import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Hex } from 'viem'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { takeDeltas } from '../../src/metrics/recorder.ts'
import { createRequestBatcher } from '../../src/rpc/batcher.ts'
import { compareNodes } from '../../src/rpc/compare-nodes.ts'
import { nodeNames } from '../../src/rpc/endpoint-client.ts'
import { isCallFailure, type RpcError, redact } from '../../src/rpc/node-errors.ts'
import {
  aboutStrangers,
  blockNumberRequest,
  blockReceiptsRequest,
  blockRequest,
  callRequest,
  chainIdRequest,
  type RpcRequest,
  receiptRequest,
  transactionRequest,
} from '../../src/rpc/requests.ts'
import { sendBatchSize, submit, submitBatch } from '../../src/rpc/submit.ts'
import { traceRevertData } from '../../src/rpc/trace-revert-data.ts'
import { createTransport, ROUNDS, type RpcTransport } from '../../src/rpc/transport.ts'
import { type BadNode, startBadNode } from '../support/bad-node.ts'
import { ADDRESS, BLOCK_HASH, nodeReceipt } from '../support/node-receipt.ts'

type JsonRpcCall = { id: number; method: string; params: unknown[] }
type Reply = object | string | number | 'close'
type FakeNode = { url: string; requests: JsonRpcCall[][]; server: Server }

const nodes: FakeNode[] = []
afterEach(async () => {
  vi.useRealTimers()
  await Promise.all(nodes.splice(0).map(({ server }) => new Promise(resolve => server.close(resolve))))
})

/**
 * Starts a node. `reply` gets the calls of one HTTP request and returns its JSON body, text, a status, or 'close',
 * after a delay.
 */
async function startNode(reply: (calls: JsonRpcCall[], isBatch: boolean) => Reply, delayMs = 0): Promise<FakeNode> {
  const requests: JsonRpcCall[][] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = JSON.parse(Buffer.concat(chunks).toString())
    const calls: JsonRpcCall[] = [body].flat()
    requests.push(calls)
    const answer = reply(calls, Array.isArray(body))
    if (delayMs > 0) await sleep(delayMs)
    if (answer === 'close') return request.socket.destroy()
    if (typeof answer === 'number') return response.writeHead(answer, { connection: 'close' }).end('host not allowed')
    response.writeHead(200, { connection: 'close' }).end(typeof answer === 'string' ? answer : JSON.stringify(answer))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const node = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/secret-key`, requests, server }
  nodes.push(node)
  return node
}

type FakeAnswer = { status: number; headers?: Record<string, string>; body: string }

/** Starts a node that refuses its first requests, and notes when each arrives. */
async function startLimitedNode(limit: () => FakeAnswer, count: number): Promise<{ url: string; times: number[] }> {
  const times: number[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    times.push(Date.now())
    const { status, headers, body } = limit()
    if (times.length <= count) return response.writeHead(status, { ...headers, connection: 'close' }).end(body)
    const calls = JSON.parse(Buffer.concat(chunks).toString())
    response
      .writeHead(200, { connection: 'close' })
      .end(JSON.stringify(result('0x10')([calls].flat(), Array.isArray(calls))))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  nodes.push({ url, requests: [], server })
  return { url, times }
}

const requests = {
  read: (rpc: RpcTransport) => rpc.read(blockNumberRequest),
  call: async (rpc: RpcTransport) => (await rpc.call(blockNumberRequest)).result,
  batch: async (rpc: RpcTransport) => (await rpc.batch([blockNumberRequest]))[0].result,
}

/**
 * Stops the clock of the transport until the test ends: however busy the machine is, no node is slow and no rest ends.
 */
const stopClock = () => void vi.useFakeTimers({ toFake: ['Date', 'setTimeout'] })

const result = (value: unknown) => (calls: JsonRpcCall[], isBatch: boolean) => {
  const replies = calls.map(({ id }) => ({ jsonrpc: '2.0', id, result: value }))
  return isBatch ? replies : (replies[0] as object)
}
const error = (code: number, message: string, data?: string) => (calls: JsonRpcCall[], isBatch: boolean) => {
  const replies = calls.map(({ id }) => ({ jsonrpc: '2.0', id, error: { code, message, data } }))
  return isBatch ? replies : (replies[0] as object)
}
const urlsOf = (...nodes: FakeNode[]) => nodes.map(({ url }) => url)
const call = callRequest({ to: '0x0000000000000000000000000000000000000001', data: '0x' })

const HASH = `0x${'ab'.repeat(32)}` as const
const signed = (raw: string) => ({ raw: raw as Hex, hash: HASH })
const OTHER_HASH = `0x${'cd'.repeat(32)}` as const
const logOf = (transactionHash: Hex) => ({
  address: ADDRESS,
  topics: [],
  data: '0x',
  blockNumber: '0x7',
  blockHash: BLOCK_HASH,
  transactionHash,
  logIndex: '0x0',
})
const receiptOf = (transactionHash: Hex, logs = [logOf(transactionHash)]) => nodeReceipt(transactionHash, logs)

it('of several nodes, one of another chain is asked for nothing but its chain, and gets no signed bytes', async () => {
  const onChain = (id: string) => (calls: JsonRpcCall[]) =>
    calls[0]?.method === 'eth_chainId' ? { id: calls[0].id, result: id } : { id: calls[0]?.id, result: '0x10' }
  const [other, right] = [await startNode(onChain('0x5')), await startNode(onChain('0x7a69'))]
  const rpc = createTransport(urlsOf(other, right), { chainId: 31_337 })
  expect(await rpc.read(blockNumberRequest)).toBe('0x10')
  expect(await rpc.call(blockNumberRequest)).toEqual({ result: '0x10' })
  for (const turn of [0, 1]) await submit(rpc, { raw: '0x02', hash: HASH }, { waitMs: 1_000, sync: false, turn })
  expect(other.requests.flat().map(({ method }) => method)).toEqual(['eth_chainId'])
  expect(right.requests.flat().map(({ method }) => method)).toContain('eth_sendRawTransaction')
})

describe('a read', () => {
  it('a read ends the request to a silent node once another has responded', async () => {
    const ended = Promise.withResolvers<void>()
    const silent = createServer(request => void request.socket.once('close', ended.resolve))
    await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
    nodes.push({ url: `http://127.0.0.1:${(silent.address() as AddressInfo).port}`, requests: [], server: silent })
    const rpc = createTransport(urlsOf(...nodes, await startNode(result('0x10'))))
    expect(await rpc.read(blockNumberRequest)).toBe('0x10')
    await ended.promise
  })

  it.each([
    ['closes the connection', () => 'close' as const],
    ['returns text', () => '<html>Too many requests</html>'],
    ['limits the rate', error(-32005, 'rate limit exceeded')],
    ['does not know the method', error(-32601, 'the method does not exist')],
    ['returns an error that is not about the request', error(-32000, 'database is corrupt')],
    ['returns no digits', result('0x')],
    ['returns the name of a block', result('pending')],
    ['returns a negative number', result('-0x1')],
    ['returns a decimal number', result('16')],
    ['returns a number', result(16)],
    ['returns null', result(null)],
    ['returns an object', result({ number: '0x10' })],
    ['returns more than the largest exact integer', result('0x20000000000000')],
    ['returns more than 16 MiB', result(`0x${'0'.repeat(17 * 2 ** 20)}10`)],
  ])('a read queries the next node if one %s', async (_, reply) => {
    const [first, second] = [await startNode(reply), await startNode(result('0x10'))]
    expect(await createTransport(urlsOf(first, second)).read(blockNumberRequest)).toBe('0x10')
    expect(second.requests).toHaveLength(1)
  })

  it('a read queries a node that failed after the others, for two seconds', async () => {
    const [first, second] = [await startNode(() => 'close'), await startNode(result('0x10'))]
    const rpc = createTransport(urlsOf(first, second))
    await rpc.read(blockNumberRequest)
    stopClock()
    const failed = first.requests.length
    await rpc.read(blockNumberRequest)
    expect([first.requests.length - failed, second.requests.length]).toEqual([0, 2])
  })

  it('a read of many that fail together counts as one failure, so that the node rests for two seconds', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    let isDown = true
    const first = await startNode((...args) => (isDown ? 'close' : result('0x10')(...args)))
    const rpc = createTransport(urlsOf(first, await startNode(result('0x20'))))
    const reads = () => Promise.all(Array.from({ length: 5 }, () => rpc.read(blockNumberRequest)))
    expect(await reads()).toEqual(Array(5).fill('0x20'))
    isDown = false
    vi.setSystemTime(Date.now() + 2_500)
    expect(await reads()).toEqual(Array(5).fill('0x10'))
  })

  it.each<[string, RpcRequest, unknown, unknown]>([
    ['the receipt of another transaction', receiptRequest(HASH), receiptOf(OTHER_HASH), receiptOf(HASH)],
    [
      'a receipt with the log of another transaction',
      receiptRequest(HASH),
      receiptOf(HASH, [logOf(OTHER_HASH)]),
      receiptOf(HASH),
    ],
    ['the receipts of another block', blockReceiptsRequest(8, () => true), [receiptOf(HASH)], []],
    [
      'another transaction',
      transactionRequest(HASH),
      { hash: OTHER_HASH, from: ADDRESS, to: null, input: '0x', blockNumber: null },
      null,
    ],
    ['another block', blockRequest(8), { number: '0x7', hash: HASH, timestamp: '0x2' }, null],
  ])('a read queries the next node if one returns %s', async (_, request, wrong, right) => {
    const [first, second] = [await startNode(result(wrong)), await startNode(result(right))]
    expect(await createTransport(urlsOf(first, second)).read(request)).toEqual(right)
  })

  it('a read tries all nodes once more if none returned a result', async () => {
    let requests = 0
    const node = await startNode((...args) => (++requests <= 2 ? 'close' : result('0x10')(...args)))
    expect(await createTransport(urlsOf(node)).read(blockNumberRequest)).toBe('0x10')
  })

  it('a read does not repeat a request that every node refuses', async () => {
    const node = await startNode(error(-32602, 'too many arguments'))
    await expect(createTransport(urlsOf(node)).read(call)).rejects.toMatchObject({
      body: { code: 'CHAIN_UNREACHABLE' },
      cause: { code: -32602 },
    })
    expect(node.requests).toHaveLength(1)
  })

  it('a read throws an error without URL and without the response of the node', async () => {
    const node = await startNode(error(-32000, 'see https://node.example/secret-key'))
    const refusal = await createTransport(urlsOf(node))
      .read(blockNumberRequest)
      .catch((error: Error) => error)
    const { cause } = refusal as Error
    expect(`${refusal} ${cause}`).not.toMatch(/secret|http/)
  })
})

describe('a node that responds', () => {
  let bad: BadNode
  beforeAll(async () => {
    bad = await startBadNode()
  })
  afterAll(() => bad.stop())

  describe.each(['with headers and then one byte at a time', 'never'] as const)('%s', fault => {
    beforeEach(() => {
      bad.fault = fault
    })

    it.each(Object.entries(requests))('ends a %s in time', async (_, send) => {
      await expect(send(createTransport([bad.url], { timeoutMs: 100 }))).rejects.toMatchObject({ status: 502 })
    })

    it.each(Object.entries(requests))(
      'leaves a %s to the next node, and is queried last from then on',
      async (_, send) => {
        const healthy = await startNode(result('0x10'))
        const rpc = createTransport([bad.url, healthy.url])
        const before = bad.requests
        expect(await send(rpc)).toBe('0x10')
        stopClock()
        for (let count = 0; count < 2; count++) expect(await send(rpc)).toBe('0x10')
        expect(bad.requests - before).toBe(1)
      },
    )

    it('ends a send in time, whose outcome is unknown, and the send is not repeated', async () => {
      const healthy = await startNode(result(HASH))
      const rpc = createTransport([bad.url, healthy.url])
      expect(await submit(rpc, signed('0x02'), { waitMs: 100, sync: true })).toEqual({ kind: 'unknown' })
      expect(healthy.requests).toHaveLength(0)
    })
  })

  it('a node that responds late is not replaced while the next one is later', async () => {
    const [first, second] = [await startNode(result('0x10'), 700), await startNode(result('0x20'), 700)]
    expect(await createTransport(urlsOf(first, second)).read(blockNumberRequest)).toBe('0x10')
  })
})

describe('a node that is the only one', () => {
  const html = { status: 502, body: '<html>Bad Gateway</html>' }
  it.each<[string, () => FakeAnswer, number]>([
    ['has a bad gateway for a moment', () => html, 3],
    ['returns nothing for a moment', () => ({ status: 200, body: '' }), 3],
    ['returns half of a response three times', () => ({ status: 200, body: '{"jsonrpc":"2.0","id":1,"resu' }), 3],
    ['limits the rate twice', () => ({ status: 429, body: '' }), 2],
  ])('that %s gets a read, a call and a batch again', async (_, refusal, count) => {
    await Promise.all(
      Object.values(requests).map(async send => {
        const node = await startLimitedNode(refusal, count)
        expect(await send(createTransport([node.url]))).toBe('0x10')
      }),
    )
  })

  it.each(['missing trie node 0xab (path )', 'Internal error', 'upstream is temporarily unavailable'])(
    'that has the error "%s" for a moment gets a read and a call again',
    async message => {
      for (const send of [requests.read, requests.call]) {
        const node = await startLimitedNode(
          () => ({ status: 200, body: JSON.stringify({ id: 1, error: { code: -32000, message } }) }),
          3,
        )
        expect(await send(createTransport([node.url]))).toBe('0x10')
      }
    },
  )

  it('that stays broken gets no more than four requests for a call', async () => {
    const node = await startLimitedNode(() => html, 99)
    await expect(createTransport([node.url]).call(call)).rejects.toMatchObject({ status: 502 })
    expect(node.times).toHaveLength(4)
  })
})

describe('a node that limits the rate', () => {
  const limits: [string, () => FakeAnswer][] = [
    ['429 with HTML', () => ({ status: 429, headers: { 'retry-after': '1' }, body: '<html>Too Many Requests</html>' })],
    [
      '429 with a JSON-RPC error',
      () => ({ status: 429, headers: { 'retry-after': '1' }, body: '{"error":{"code":429,"message":"slow down"}}' }),
    ],
    [
      '429 with a date',
      () => ({ status: 429, headers: { 'retry-after': new Date(Date.now() + 2_000).toUTCString() }, body: '' }),
    ],
    ['503 that names a pause', () => ({ status: 503, headers: { 'retry-after': '1' }, body: '<html></html>' })],
    ['a JSON-RPC error', () => ({ status: 200, body: '{"error":{"code":-32005,"message":"rate limit exceeded"}}' })],
    ...[
      'Too many request, try again later',
      "You've exceeded the RPS limit available on the current plan.",
      '50/second request limit reached - reduce calls per second or upgrade your account',
      'Your app has exceeded its throughput limit',
    ].map((message): [string, () => FakeAnswer] => [
      `the error "${message}"`,
      () => ({ status: 200, body: JSON.stringify({ error: { code: -32_007, message } }) }),
    ]),
  ]
  describe.each(limits)('by %s', (_, limit) => {
    it('gets a read, a call and a batch again once its pause is over, and not before', async () => {
      await Promise.all(
        Object.values(requests).map(async send => {
          const node = await startLimitedNode(limit, 1)
          expect(await send(createTransport([node.url]))).toBe('0x10')
          const [limited = 0, repeated = 0] = node.times
          expect(node.times).toHaveLength(2)
          expect(repeated - limited).toBeGreaterThanOrEqual(limit().headers ? 990 : 490)
        }),
      )
    })

    it('gets nothing more from background work in its pause, which is longer', async () => {
      const node = await startLimitedNode(limit, 1)
      const rpc = createTransport([node.url], { isBackground: true })
      for (let step = 0; step < 3; step++)
        await expect(rpc.batch([blockNumberRequest])).rejects.toMatchObject({ body: { code: 'CHAIN_UNREACHABLE' } })
      expect(node.times).toHaveLength(1)
      const endpoint = rpc.preferred()
      expect((endpoint?.throttledUntil ?? 0) - Date.now()).toBeGreaterThan(limit().headers ? 1_000 : 500)
    })

    it('leaves a read to the next node', async () => {
      const [limited, healthy] = [await startLimitedNode(limit, 9), await startNode(result('0x20'))]
      const rpc = createTransport([limited.url, healthy.url])
      for (let read = 0; read < 3; read++) expect(await rpc.read(blockNumberRequest)).toBe('0x20')
      expect(limited.times).toHaveLength(1)
    })
  })
})

describe('a call', () => {
  it.each([401, 403, 502, 503, 520])(
    'a call is sent to the next node if one has the status %i, whatever error is in its body',
    async status => {
      const refusal = { id: 1, error: { code: -32000, message: 'no healthy upstream' } }
      const first = await startLimitedNode(() => ({ status, body: JSON.stringify(refusal) }), 9)
      const rpc = createTransport([first.url, (await startNode(result('0x01'))).url])
      expect(await rpc.call(call)).toEqual({ result: '0x01' })
    },
  )

  it.each([400, 404, 500])('a call returns an error of the node with the status %i', async status => {
    const missing = { id: 1, error: { code: -32601, message: 'Method not found' } }
    const node = await startLimitedNode(() => ({ status, body: JSON.stringify(missing) }), 9)
    expect(await createTransport([node.url]).call(call)).toEqual({ error: missing.error })
  })

  it('a call returns an error of the call itself from the first node', async () => {
    const [first, second] = [await startNode(error(3, 'execution reverted', '0x1234')), await startNode(result('0x'))]
    stopClock()
    const response = await createTransport(urlsOf(first, second)).call(call)
    expect(response).toEqual({ error: { code: 3, message: 'execution reverted', data: '0x1234' } })
    expect(second.requests).toHaveLength(0)
  })

  it.each([
    'rate limit',
    'Too Many Requests',
    'header not found',
    'internal error',
    'insufficient funds',
    'gas required exceeds allowance (1)',
    'method eth_call not supported',
  ])('a contract that reverts with the reason %o says nothing about its node', async reason => {
    const data = `0x08c379a0${Buffer.from(reason).toString('hex')}`
    const errors = [error(3, `execution reverted: ${reason}`, data), error(-32_000, `Execution reverted (${reason})`)]
    for (const revert of errors) {
      const [first, second] = [await startNode(revert), await startNode(result('0x'))]
      stopClock()
      const rpc = createTransport(urlsOf(first, second))
      for (let count = 1; count <= 3; count++) {
        expect((await rpc.call(call)).error?.message).toMatch(/^execution reverted/i)
        expect((await rpc.batch([call])).at(0)?.error?.message).not.toContain(reason)
      }
      expect([first.requests.length, second.requests.length]).toEqual([6, 0])
    }
  })

  it.each([
    ['as it is', '0x1234'],
    ['after a word', 'Reverted 0x1234'],
    ['in an object', { message: 'execution reverted', data: '0x1234' }],
    ['in the original error', { originalError: { code: 3, message: 'execution reverted', data: '0x1234' } }],
  ])('a call has the revert data that a node returns %s', async (_, data) => {
    const node = await startNode(calls => ({ id: calls[0]?.id, error: { code: -32_015, message: 'VM error', data } }))
    const { error } = await createTransport(urlsOf(node)).call(call)
    expect(error?.data).toBe('0x1234')
    expect(isCallFailure(error as RpcError)).toBe(true)
  })

  it('a call returns no revert data above 64 KiB, and neither does a trace', async () => {
    const responseTo = async (bytes: number) => {
      const data = '2a'.repeat(bytes)
      const node = await startNode((calls, isBatch) =>
        calls[0]?.method === 'eth_call'
          ? error(3, 'execution reverted', `0x${data}`)(calls, isBatch)
          : result({ failed: true, returnValue: data })(calls, isBatch),
      )
      const rpc = createTransport(urlsOf(node))
      return [(await rpc.call(call)).error?.data, await traceRevertData(rpc, HASH)].map(found => found?.length)
    }
    expect(await responseTo(2 ** 16)).toEqual([2 + 2 ** 17, 2 + 2 ** 17])
    expect(await responseTo(2 ** 16 + 1)).toEqual([undefined, undefined])
  })

  it('a call of a contract that returns megabytes has failed as a call, and the node has not', async () => {
    const [normal, long] = [`0x${'2a'.repeat(2 ** 18)}`, `0x${'2a'.repeat(2 ** 20)}`]
    const isLong = (calls: JsonRpcCall[]) => calls.some(({ params }) => JSON.stringify(params).includes('long'))
    const reply = (calls: JsonRpcCall[], isBatch: boolean) => result(isLong(calls) ? long : normal)(calls, isBatch)
    const [first, second] = [await startNode(reply), await startNode(reply)]
    const rpc = createTransport(urlsOf(first, second))
    const tooLong = aboutStrangers({ ...call, params: ['long'] })
    expect((await rpc.call(aboutStrangers(call))).result).toBe(normal)
    expect(isCallFailure((await rpc.call(tooLong)).error as RpcError)).toBe(true)
    const batch = await rpc.batch([tooLong, tooLong])
    expect(batch.map(({ error }) => isCallFailure(error as RpcError))).toEqual([true, true])
    expect((await rpc.batch([tooLong, call])).map(({ result }) => result)).toEqual([long, long])
    expect([first.requests.length, second.requests.length]).toEqual([4, 0])
  })

  it.each([
    ['latest', 7, 10],
    [7n, 7, 1],
    [9n, 9, 10],
  ] as const)(
    'a call of block %s, for which a node at block 8 lacks block %i, is sent %i times',
    async (block, lacking, count) => {
      const node = await startNode(
        error(-32602, `BlockOutOfRangeError: block height is 8 but requested was ${lacking}`),
      )
      const request = callRequest({ data: '0x' }, { block })
      await expect(createTransport(urlsOf(node)).call(request)).rejects.toMatchObject({ status: 502 })
      expect(node.requests).toHaveLength(count)
    },
  )

  it.each<[string, (rpc: RpcTransport, request: RpcRequest) => Promise<unknown>]>([
    ['read', (rpc, request) => rpc.read(request)],
    ['call', async (rpc, request) => (await rpc.call(request)).result],
  ])('a %s of a block that the first node lacks goes to the next one at once', async (_, send) => {
    const [first, second] = [await startNode(error(-32000, 'header not found')), await startNode(result('0x01'))]
    stopClock()
    expect(await send(createTransport(urlsOf(first, second)), callRequest({ data: '0x' }, { block: 9n }))).toBe('0x01')
    expect(first.requests).toHaveLength(1)
  })

  it.each([
    'header for hash not found',
    'Unknown block',
    'block not found: 0x9',
    'Block requested not found. Request might be querying historical state that is not available.',
    'One of the blocks specified in filter (fromBlock, toBlock or blockHash) cannot be found.',
    'block range extends beyond current head block',
    'request beyond head block: requested 9, head 8',
    'Received invalid block tag 9. Latest block number is 8',
  ])('a call of a block that one replica does not know yet is sent again after "%s"', async message => {
    let requests = 0
    const node = await startNode((calls, isBatch) =>
      (++requests < 3 ? error(-32_000, message) : result('0x01'))(calls, isBatch),
    )
    expect(await createTransport(urlsOf(node)).call(callRequest({ data: '0x' }, { block: 9n }))).toEqual({
      result: '0x01',
    })
  })
})

it.each<[keyof typeof ROUNDS, (rpc: RpcTransport) => Promise<unknown>]>([
  ['read', rpc => rpc.read(call)],
  ['call', rpc => rpc.call(call)],
  ['batch', rpc => rpc.batch([call, call])],
])('a %s that fails everywhere is sent to each node twice in each of its rounds', async (kind, send) => {
  const broken = [await startNode(() => 'close'), await startNode(() => 'close')]
  await expect(send(createTransport(urlsOf(...broken)))).rejects.toMatchObject({ body: { code: 'CHAIN_UNREACHABLE' } })
  expect(broken.map(({ requests }) => requests.length)).toEqual([2 * ROUNDS[kind], 2 * ROUNDS[kind]])
})

describe('a batch', () => {
  const requests = [chainIdRequest, undefined, blockNumberRequest] as const

  it('a batch is one HTTP request, with undefined in the place of an undefined request', async () => {
    const results: Record<string, string> = { eth_chainId: '0x1', eth_blockNumber: '0x10' }
    const node = await startNode(calls => calls.map(({ id, method }) => ({ id, result: results[method] })).reverse())
    expect(await createTransport(urlsOf(node)).batch(requests)).toEqual([
      { result: '0x1' },
      undefined,
      { result: '0x10' },
    ])
    expect(node.requests).toHaveLength(1)
  })

  it('a batch is sent one by one to a node that rejects batches, for a minute', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const node = await startNode((calls, isBatch) =>
      isBatch ? { error: { code: -32600, message: 'batches are not supported' } } : result('0x1')(calls, false),
    )
    const rpc = createTransport(urlsOf(node))
    for (const count of [3, 5]) {
      expect(await rpc.batch(requests)).toEqual([{ result: '0x1' }, undefined, { result: '0x1' }])
      expect(node.requests).toHaveLength(count)
    }
    vi.setSystemTime(Date.now() + 60_000)
    await rpc.batch(requests)
    expect(node.requests[5]).toHaveLength(2)
  })

  it.each<[string, (calls: JsonRpcCall[]) => Reply]>([
    ['lacks a response', calls => [{ id: calls[0]?.id, result: '0x2' }]],
    ['has a response twice', calls => calls.map(() => ({ id: calls[0]?.id, result: '0x2' }))],
    ['is no response', () => ({ message: 'Too Many Requests' })],
    ['is the error of a node', () => ({ error: { code: -32000, message: 'unauthorized' } })],
  ])('a batch goes to the next node if the reply %s, and later in one HTTP request again', async (_, reply) => {
    vi.useFakeTimers({ toFake: ['Date'] })
    let isBad = true
    const first = await startNode(calls => (isBad ? reply(calls) : result('0x1')(calls, true)))
    const rpc = createTransport(urlsOf(first, await startNode(result('0x1'))))
    expect(await rpc.batch(requests)).toEqual([{ result: '0x1' }, undefined, { result: '0x1' }])
    isBad = false
    vi.setSystemTime(Date.now() + 2_500)
    expect(await rpc.batch(requests)).toEqual([{ result: '0x1' }, undefined, { result: '0x1' }])
    expect(first.requests.every(({ length }) => length === 2)).toBe(true)
  })

  it('a batch is sent one by one to a node that returns as a list that it is too large', async () => {
    const node = await startNode((calls, isBatch) =>
      isBatch
        ? [{ id: calls[0]?.id, error: { code: -32600, message: 'batch too large' } }]
        : result('0x1')(calls, false),
    )
    expect(await createTransport(urlsOf(node)).batch([chainIdRequest, chainIdRequest])).toEqual([
      { result: '0x1' },
      { result: '0x1' },
    ])
  })

  it.each<[string, (calls: JsonRpcCall[]) => Reply]>([
    [
      'rejects batches with the code of a limit',
      () => ({ error: { code: -32005, message: 'Batched requests are not supported by this server' } }),
    ],
    ['allows fewer requests', () => ({ error: { code: -32005, message: 'Too many requests in one batch' } })],
    ['returns only the first response', calls => ({ id: calls[0]?.id, result: '0x1' })],
    ['returns a list of the first response', calls => [{ id: calls[0]?.id, result: '0x1' }]],
    ['returns one response twice', calls => calls.map(() => ({ id: calls[0]?.id, result: '0x1' }))],
  ])('a batch is sent one by one to the only node if that %s', async (_, reply) => {
    const node = await startNode((calls, isBatch) => (isBatch ? reply(calls) : result('0x1')(calls, false)))
    expect(await createTransport(urlsOf(node)).batch(requests)).toEqual([
      { result: '0x1' },
      undefined,
      { result: '0x1' },
    ])
    expect(node.requests.map(({ length }) => length)).toEqual([2, 1, 1])
  })

  it('a batch is sent one by one to a node whose proxy drops the connection on batches, for a minute', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const node = await startNode((calls, isBatch) => (isBatch ? 'close' : result('0x1')(calls, false)))
    const rpc = createTransport(urlsOf(node))
    for (const sizes of [
      [2, 2, 1, 1],
      [1, 1],
    ]) {
      expect(await rpc.batch(requests)).toEqual([{ result: '0x1' }, undefined, { result: '0x1' }])
      expect(node.requests.splice(0).map(({ length }) => length)).toEqual(sizes)
    }
    vi.setSystemTime(Date.now() + 60_000)
    await rpc.batch(requests)
    expect(node.requests.map(({ length }) => length)).toEqual([2, 2, 1, 1])
  })

  it('a batch of which a node drops every request is not taken for one that it rejects', async () => {
    let isDown = true
    const node = await startNode((calls, isBatch) => (isDown ? 'close' : result('0x1')(calls, isBatch)))
    const rpc = createTransport(urlsOf(node))
    await expect(rpc.batch(requests)).rejects.toMatchObject({ body: { code: 'CHAIN_UNREACHABLE' } })
    isDown = false
    node.requests.splice(0)
    await rpc.batch(requests)
    expect(node.requests.map(({ length }) => length)).toEqual([2])
  })

  it('a batch is sent one by one to a node for which it is too large', async () => {
    const limited = await startLimitedNode(() => ({ status: 413, body: '<html>Too Large</html>' }), 1)
    expect(await createTransport([limited.url]).batch(requests)).toEqual([
      { result: '0x10' },
      undefined,
      { result: '0x10' },
    ])
    expect(limited.times).toHaveLength(3)
  })

  it('a batch in which an error lacks the id of its request is an answer to all of them', async () => {
    const refusal = { code: -32000, message: 'no' }
    const node = await startNode(calls => [
      { id: calls[1]?.id, result: '0x2' },
      { id: null, error: refusal },
    ])
    expect(await createTransport(urlsOf(node)).batch(requests)).toEqual([
      { error: refusal },
      undefined,
      { result: '0x2' },
    ])
    expect(node.requests).toHaveLength(1)
  })

  it('a batch that confuses the receipts of two transactions is sent to the next node', async () => {
    const receiptsFor = (swap: boolean) => (calls: JsonRpcCall[]) =>
      calls.map(({ id, params }) => ({ id, result: receiptOf((params[0] === HASH) === swap ? OTHER_HASH : HASH) }))
    const rpc = createTransport(urlsOf(await startNode(receiptsFor(true)), await startNode(receiptsFor(false))))
    const responses = await rpc.batch([receiptRequest(HASH), receiptRequest(OTHER_HASH)])
    expect(responses.map(({ result }) => result?.transactionHash)).toEqual([HASH, OTHER_HASH])
  })

  it('a batch that is refused by a rate limit is not sent one by one', async () => {
    const limit = { code: -32005, message: 'rate limit exceeded' }
    const node = await startNode(() => ({ error: limit }))
    expect(await createTransport(urlsOf(node)).batch(requests)).toEqual([{ error: limit }, undefined, { error: limit }])
    expect(node.requests).toHaveLength(1)
  })

  it.each([
    ['number', 'latest'],
    ['timestamp', '0x'],
    ['baseFeePerGas', 7],
    ['hash', '0x12'],
  ])('a batch is sent to the next node if the %s of a block is %j', async (field, value) => {
    const block = { number: '0x1', hash: HASH, timestamp: '0x2', baseFeePerGas: '0x0' }
    const [first, second] = [await startNode(result({ ...block, [field]: value })), await startNode(result(block))]
    const rpc = createTransport(urlsOf(first, second))
    expect(await rpc.batch([blockRequest('latest'), blockRequest(1)])).toEqual([{ result: block }, { result: block }])
  })

  it('a batch is sent to the next node if its responses are not accepted', async () => {
    const [first, second] = [await startNode(result('0x1')), await startNode(result('0x2'))]
    const rpc = createTransport(urlsOf(first, second))
    expect(await rpc.batch([chainIdRequest], ([id]) => id.result === '0x2')).toEqual([{ result: '0x2' }])
  })
})

describe('concurrent calls', () => {
  const callTo = (digit: number) =>
    callRequest({ to: `0x${`${digit}`.padStart(40, '0')}`, data: '0x' }) as RpcRequest<Hex>
  const targetOf = ({ params }: JsonRpcCall) => Number((params[0] as { to: string }).to)

  it('concurrent calls leave at once while none is on its way, and together after that', async () => {
    const node = await startNode((calls, isBatch) => {
      const replies = calls.map(call => ({ id: call.id, result: `0x0${targetOf(call)}` }))
      return isBatch ? replies : (replies[0] as object)
    }, 5)
    const callNode = createRequestBatcher(createTransport(urlsOf(node)))
    expect(await callNode(callTo(1))).toEqual({ result: '0x01' })
    const first = callNode(callTo(2))
    await new Promise(setImmediate)
    const others = [3, 4, 5].map(digit => callNode(callTo(digit)))
    expect(await Promise.all([first, ...others])).toEqual(['0x02', '0x03', '0x04', '0x05'].map(result => ({ result })))
    expect(node.requests.map(calls => calls.map(targetOf))).toEqual([[1], [2], [3, 4, 5]])
  })

  it('concurrent calls that a batch does not answer are sent one by one; errors of calls are their responses', async () => {
    const revert = { code: 3, message: 'execution reverted', data: '0x2a' }
    const node = await startNode((calls, isBatch) => {
      const replies = calls.map(call => {
        const target = targetOf(call)
        if (target === 2) return { id: call.id, error: revert }
        if (target === 3 && isBatch) return { id: call.id, error: { code: -32005, message: 'rate limit exceeded' } }
        return { id: call.id, result: '0x01' }
      })
      return isBatch ? replies : (replies[0] as object)
    })
    const callNode = createRequestBatcher(createTransport(urlsOf(node)))
    const responses = await Promise.all([1, 2, 3].map(digit => callNode(callTo(digit))))
    expect(responses).toEqual([{ result: '0x01' }, { error: revert }, { result: '0x01' }])
    expect(node.requests.map(calls => calls.map(targetOf))).toEqual([[1, 2, 3], [3]])
  })

  it.each([
    ['closes the connection of', () => 'close' as const],
    ['responds with other JSON to', () => ({ error: { code: -32600, message: 'batches are not supported' } })],
  ])('concurrent calls are sent one by one to a node that %s a batch', async (_, reply) => {
    const node = await startNode((calls, isBatch) => (isBatch ? reply() : result('0x01')(calls, false)))
    const callNode = createRequestBatcher(createTransport(urlsOf(node)))
    const responses = await Promise.all([1, 2, 3].map(digit => callNode(callTo(digit))))
    expect(responses).toEqual([1, 2, 3].map(() => ({ result: '0x01' })))
  })
})

describe('signed bytes in a batch', () => {
  const accepted = { kind: 'accepted' }

  it('signed bytes in a batch each get what the node replied to them', async () => {
    const node = await startNode(calls =>
      calls.map(({ id, params: [raw] }) =>
        raw === '0x02' ? { id, error: { code: -32000, message: 'nonce too low' } } : { id, result: HASH },
      ),
    )
    const rpc = createTransport(urlsOf(node))
    expect(await submitBatch(rpc, ['0x01', '0x02', '0x03'].map(signed))).toEqual([
      accepted,
      { kind: 'nonce-too-low', message: 'nonce too low' },
      accepted,
    ])
    expect(node.requests).toHaveLength(1)
  })

  it('signed bytes in a batch are of unknown outcome if the batch fails, and the next ones go to the next node', async () => {
    const [first, second] = [await startNode(() => 'close'), await startNode(result(HASH))]
    const rpc = createTransport(urlsOf(first, second))
    expect(await submitBatch(rpc, ['0x01', '0x02'].map(signed))).toEqual([{ kind: 'unknown' }, { kind: 'unknown' }])
    expect(await submitBatch(rpc, ['0x01', '0x02'].map(signed))).toEqual([accepted, accepted])
  })

  it('signed bytes in a batch grow in number while the node is quick, and go one by one to a node that holds each until its block', async () => {
    const reply = result(HASH)
    const [quick, slow] = [await startNode(reply), await startNode(reply, 400)]
    const sizesAfter = async (rpc: RpcTransport, raws: string[]) => {
      const sizes = [sendBatchSize(rpc)]
      for (let batch = 0; batch < 2; batch++) {
        await submitBatch(rpc, raws.map(signed))
        sizes.push(sendBatchSize(rpc))
      }
      return sizes
    }
    expect(await sizesAfter(createTransport(urlsOf(slow)), ['0x01', '0x02'])).toEqual([4, 4, 1])
    expect(await sizesAfter(createTransport(urlsOf(quick)), Array<string>(20).fill('0x01'))).toEqual([4, 8, 16])
  })
})

describe('signed bytes', () => {
  it.each([
    ['already known', 'accepted'],
    ['AlreadyKnown', 'accepted'],
    ['transaction is already in the mempool', 'accepted'],
    ['tx already in mempool', 'accepted'],
    ['confirmation timeout', 'accepted'],
    ['nonce too low: next nonce 5, tx nonce 4', 'nonce-too-low'],
    ['nonce too high', 'nonce-too-high'],
    ['replacement transaction underpriced', 'underpriced'],
    ['max fee per gas less than block base fee', 'fee-too-low'],
    ['transaction max fee per gas 1 is below the block base fee 2', 'fee-too-low'],
    ['FeeTooLow, MaxFeePerGas too low. MaxFeePerGas: 1, BaseFee: 2', 'fee-too-low'],
    ['insufficient funds for gas * price + value', 'unfunded'],
    ["Sender doesn't have enough funds to send tx. The max upfront cost is: 5", 'unfunded'],
    ['Upfront cost exceeds account balance', 'unfunded'],
    ['intrinsic gas too low', 'gas-too-low'],
    // In the words of geth 1.17.10: core/txpool, core/error.go and internal/ethapi/api.go.
    ['transaction gas price below minimum: gas tip cap 0, minimum needed 1', 'fee-too-low'],
    ['transaction underpriced', 'fee-too-low'],
    ['max fee per gas less than block base fee: address 0x01, maxFeePerGas: 1, baseFee: 2', 'fee-too-low'],
    ['txpool is full', 'no-room'],
    ['out of capacity', 'no-room'],
    ['account limit exceeded: pooled 16 txs', 'no-room'],
    ['in-flight transaction limit reached for delegated accounts', 'no-room'],
    ['address already reserved', 'no-room'],
    ['future transaction tries to replace pending', 'nonce-too-high'],
    ['gapped-nonce tx from delegated accounts', 'nonce-too-high'],
    ['nonce too high: tx nonce 9, gapped nonce 3', 'nonce-too-high'],
    ['insufficient gas for floor data gas cost: gas 1, minimum needed 2', 'gas-too-low'],
    ['transaction gas limit too high (cap: 16777216, tx: 20000000)', 'malformed'],
    ['exceeds block gas limit', 'malformed'],
    ['tx fee (1.20 ether) exceeds the configured cap (1.00 ether)', 'malformed'],
    ['insufficient funds for gas * price + value: balance 1, tx cost 2, overshot 1', 'unfunded'],
    ['rate limit exceeded', 'unknown'],
    ['invalid chain id for signer', 'unknown'],
    ['no idea', 'unclassified'],
  ])('signed bytes that a node rejects with "%s" are %s', async (message, kind) => {
    const node = await startNode(error(-32000, message))
    const submission = await submit(createTransport(urlsOf(node)), signed('0x02'), { waitMs: 1_000, sync: true })
    expect(submission.kind).toBe(kind)
    expect(node.requests).toHaveLength(1)
  })

  it.each<[string, unknown]>([
    ['the receipt', receiptOf(OTHER_HASH)],
    ['the hash', OTHER_HASH],
  ])('signed bytes are of unknown outcome if the node returns %s of another transaction', async (_, wrong) => {
    const rpc = createTransport(urlsOf(await startNode(result(wrong))))
    for (const sync of [true, false])
      expect(await submit(rpc, signed('0x02'), { waitMs: 1_000, sync })).toEqual({ kind: 'unknown' })
  })

  it('signed bytes are sent without waiting to a node that does not know eth_sendRawTransactionSync', async () => {
    const node = await startNode((calls, isBatch) =>
      calls[0]?.method === 'eth_sendRawTransaction'
        ? result(HASH)(calls, isBatch)
        : error(-32601, 'method not found')(calls, isBatch),
    )
    const rpc = createTransport(urlsOf(node))
    for (const count of [2, 3]) {
      expect(await submit(rpc, signed('0x02'), { waitMs: 1_000, sync: true })).toEqual({ kind: 'accepted' })
      expect(node.requests).toHaveLength(count)
    }
  })
})

it('a redacted message has neither URLs, paths, headers, further lines nor words that may be keys', () => {
  const message = `POST https://node.example/v2/key failed for 0x${'ab'.repeat(40)}\n    at /v2/key`
  expect(redact(message)).toBe('POST <url> failed for <data>')
  expect(redact('no room at /v2/key?key=q {"x-key":"k"} for 6f1d0c7a9b3e4f5a8c2d')).toBe(
    'no room at <url> <url> for <data>',
  )
  const words = `max fee per gas less than block base fee: address 0x${'ab'.repeat(20)}, maxFeePerGas: 1, baseFee: 2`
  expect(redact(words)).toBe(words)
  expect(redact('node '.repeat(100))).toHaveLength(201)
})

it('the status of a gateway is logged once for its node, without URL and text, and known until the node responds', async () => {
  const logged = vi.spyOn(console, 'error').mockImplementation(() => {})
  let status: number | undefined = 403
  const node = await startNode((calls, isBatch) => status ?? result('0x1')(calls, isBatch))
  const rpc = createTransport(urlsOf(node))
  for (let turn = 0; turn < 2; turn++)
    await expect(rpc.call(chainIdRequest)).rejects.toMatchObject({ body: { code: 'CHAIN_UNREACHABLE' } })
  const lines = logged.mock.calls.map(([line]) => JSON.parse(line))
  expect(lines).toEqual([{ level: 'error', event: 'node refused by gateway', node: new URL(node.url).host, status }])
  expect(rpc.endpoints[0]?.gatewayStatus).toBe(403)
  status = undefined
  await rpc.call(chainIdRequest)
  expect(rpc.endpoints[0]?.gatewayStatus).toBeUndefined()
  logged.mockRestore()
})

it('of several nodes, one that a gateway refuses is named with its status', async () => {
  const logged = vi.spyOn(console, 'error').mockImplementation(() => {})
  const block = { number: '0x50', hash: HASH, timestamp: '0x2', baseFeePerGas: '0x0' }
  const healthy = await startNode((calls, isBatch) => {
    const replies = calls.map(({ id, method, params: [number] }) => ({
      id,
      result: method === 'eth_chainId' ? '0x1' : { ...block, ...(`${number}`.startsWith('0x') && { number }) },
    }))
    return isBatch ? replies : (replies[0] as object)
  })
  const refused = await startNode(() => 403)
  const verdicts = await compareNodes(createTransport(urlsOf(healthy, refused), { chainId: 1 }), 1)
  expect(verdicts.map(({ problem }) => problem)).toEqual([undefined, 'is refused by a gateway with the status 403'])
  logged.mockRestore()
})

describe('metrics of nodes', () => {
  it.each<[string, number, string, (calls: JsonRpcCall[]) => Reply]>([
    ['rejects as such', 1, 'error', () => ({ error: { code: -32600, message: 'batches are not supported' } })],
    ['refuses for its limit', 1, 'fault', () => ({ error: { code: -32005, message: 'rate limit exceeded' } })],
    ['drops', 2, 'fault', () => 'close'],
  ])('a batch that the node %s counts once each time, %i in all', async (_, times, outcome, reply) => {
    const node = await startNode((calls, isBatch) => (isBatch ? reply(calls) : result('0x1')(calls, false)))
    takeDeltas()
    await createTransport(urlsOf(node)).batch([chainIdRequest, blockNumberRequest, chainIdRequest])
    const counted = takeDeltas().filter(({ name, labels }) => name === 'ats_rpc_requests' && labels.includes('batch'))
    expect(counted).toMatchObject([{ labels: ['batch', new URL(node.url).host, outcome], values: [times] }])
  })

  it('metrics of nodes name them by host and port, without credentials, path, query, and parts of a host that are keys', () => {
    expect(
      nodeNames([
        'https://user:password@rpc.example:8545/v2/key?key=key',
        'https://rpc.example:8545/other',
        'https://0123456789abcdef0123456789abcdef.example/',
      ]),
    ).toEqual(['rpc.example:8545', 'rpc.example:8545 2', '*.example'])
  })

  it('metrics of nodes tell results, errors of requests, faults and timeouts apart', async () => {
    takeDeltas()
    const errorOf = (method: string) =>
      method === 'eth_call' ? { code: 3, message: 'execution reverted' } : { code: -32005, message: 'rate limit' }
    const node = await startNode(calls => {
      const [{ id, method } = { id: 0, method: '' }] = calls
      return method === 'eth_chainId'
        ? { jsonrpc: '2.0', id, result: '0x1' }
        : { jsonrpc: '2.0', id, error: errorOf(method) }
    })
    const silent = await startBadNode()
    const rpc = createTransport([node.url], { timeoutMs: 2_000 })
    await rpc.call(chainIdRequest)
    await rpc.call(callRequest({ to: '0x0000000000000000000000000000000000000001', data: '0x' }))
    await rpc.call(blockNumberRequest).catch(() => {})
    await createTransport([silent.url], { timeoutMs: 200 })
      .call(chainIdRequest)
      .catch(() => {})
    await silent.stop()
    const [host, silentHost] = [node, silent].map(({ url }) => new URL(url).host)
    const counted = takeDeltas().flatMap(({ name, labels }) => (name === 'ats_rpc_requests' ? [labels.join(' ')] : []))
    expect(counted.sort()).toEqual(
      [
        `eth_blockNumber ${host} fault`,
        `eth_call ${host} error`,
        `eth_chainId ${host} ok`,
        `eth_chainId ${silentHost} timeout`,
      ].sort(),
    )
  })
})

describe('the source', () => {
  const src = join(import.meta.dirname, '../../src')
  const filesWith = (pattern: RegExp) =>
    readdirSync(src, { recursive: true, encoding: 'utf8' })
      .filter(file => file.endsWith('.ts') && pattern.test(readFileSync(join(src, file), 'utf8')))
      .sort()

  it('the source names JSON-RPC methods only in rpc/', () => {
    expect(filesWith(/'(eth|debug|net|web3|anvil)_\w+'/)).toEqual(['rpc/requests.ts'])
  })

  it('the source calls fetch only for nodes, price providers, the hosted facilitator, webhooks and a rehearsal', () => {
    expect(filesWith(/^(?!.*\b(override|async fetch)\b).*(?<![.\w])fetch\(/m)).toEqual([
      'operations/rehearsal.ts',
      'payments/facilitator.ts',
      'price-providers/data-streams.ts',
      'price-providers/price-provider.ts',
      'price-providers/report-stream.ts',
      'rpc/endpoint-client.ts',
      'webhooks/attempt.ts',
      'webhooks/target.ts',
    ])
  })
})
