import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import {
  decodeFunctionData,
  encodeFunctionResult,
  type Hex,
  hexToNumber,
  numberToHex,
  parseAbi,
  parseTransaction,
  slice,
  toFunctionSelector,
} from 'viem'
import { randomOf } from '../support/seeded-random.ts'
import type { ProviderProfile } from './profiles.ts'

export type ProviderProxy = {
  url: string
  /** How many calls and HTTP requests came in, how many bytes they had, and how often each limit was hit. */
  counts: { calls: Map<string, number>; requests: number; bytes: number; limits: Map<string, number> }
  /** Makes it behave as another provider from now on. */
  become(profile: ProviderProfile): void
  /** Starts and ends the time in which L1 is expensive. */
  setSpike(isOn: boolean): void
  /** Sets how far the provider's clock, which its responses show, is ahead of ours. */
  setClock(secondsAhead: number): void
  /** Lets it answer otherwise from now on: `distort` gets a call and its reply, and returns what to reply instead. */
  distort(distort: Distortion | undefined): void
  /**
   * Stops a replica at its newest block, or at one that it has yet to reach, as a node whose consensus client has
   * stopped; without one, all go on.
   */
  freeze(replica?: number, block?: number): Promise<void>
  /** Lets it refuse every transaction with these words, or none. */
  refuseSends(words: string | undefined): void
  /** Lets the next transaction arrive just after L1 has become expensive. */
  spikeAtNextSend(): void
  stop(): Promise<void>
}

export type Call = { id: unknown; method: string; params?: unknown[] }
export type Reply = { result?: unknown; error?: { code: number; message: string; data?: unknown } }
type Distortion = (call: Call, reply: Reply) => Reply
type Block = { number: Hex } | null

/** Where a method's parameters have the block that it reads. */
const BLOCK_PARAMETER: Record<string, number> = {
  eth_call: 1,
  eth_estimateGas: 1,
  eth_getBalance: 1,
  eth_getCode: 1,
  eth_getTransactionCount: 1,
  eth_getStorageAt: 2,
  eth_feeHistory: 1,
  eth_getBlockByNumber: 0,
}
const NODE_INTERFACE = '0x00000000000000000000000000000000000000c8'
const nodeInterfaceAbi = parseAbi([
  'function gasEstimateComponents(address to, bool contractCreation, bytes data) view returns (uint64 gasEstimate, uint64 gasEstimateForL1, uint256 baseFee, uint256 l1BaseFeeEstimate)',
  'function gasEstimateL1Component(address to, bool contractCreation, bytes data) view returns (uint64 gasEstimateForL1, uint256 baseFee, uint256 l1BaseFeeEstimate)',
])
const [ESTIMATE_COMPONENTS, ESTIMATE_L1_COMPONENT] = nodeInterfaceAbi.map(toFunctionSelector)
const PLAIN_TRANSFER_GAS = 21_000

/** Starts a proxy that makes a node behave as a provider of the given profile. The same seed makes the same choices. */
export async function startProviderProxy(
  node: string,
  { profile: first, seed }: { profile: ProviderProfile; seed: number },
): Promise<ProviderProxy> {
  const counts: ProviderProxy['counts'] = { calls: new Map(), requests: 0, bytes: 0, limits: new Map() }
  let profile: ProviderProfile = first
  const replicas: number[] = []
  const frozenViews = new Map<number, number>()
  let ordinal = 0
  let secondsAhead = 0
  let isSpike = false
  let spikesAtSend = false
  let refusal: string | undefined
  let distort: Distortion = (_, reply) => reply
  const count = (map: Map<string, number>, name: string) => map.set(name, (map.get(name) ?? 0) + 1)
  const l1Gas = () => (isSpike ? profile.l1Gas.spike : profile.l1Gas.normal)

  async function forward(method: string, params: unknown[] = []): Promise<Reply> {
    const response = await fetch(node, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 0, method, params }),
    })
    return (await response.json()) as Reply
  }

  /** Returns the newest block that a replica knows. A replica never goes back. */
  async function viewOf(replica: number): Promise<number> {
    const head = hexToNumber((await forward('eth_blockNumber')).result as Hex)
    const frozen = frozenViews.get(replica)
    if (frozen !== undefined) return Math.min(frozen, head)
    const [least, most] = profile.lagBlocks
    const lag = randomOf('lag', seed, replica, head).integer(least, most)
    replicas[replica] = Math.max(replicas[replica] ?? 0, head - lag)
    return replicas[replica]
  }

  /** Returns the number of the block that a parameter names, as seen by a replica whose newest block is `view`. */
  function numberOf(block: unknown, view: number): number {
    if (block === 'earliest') return 0
    if (block === 'finalized' || block === 'safe') return Math.max(0, view - profile.finalizedBlocks)
    return typeof block === 'string' && block.startsWith('0x') ? hexToNumber(block as Hex) : view
  }

  const chooseReplica = () => randomOf('replica', seed, ordinal++).integer(0, profile.replicas - 1)

  async function respond({ method, params = [] }: Call, replica = chooseReplica()): Promise<Reply> {
    count(counts.calls, method)
    const rejected = rejectionOf(method, params)
    if (rejected) return rejected
    const view = await viewOf(replica)
    if (method === 'eth_getLogs' && randomOf('logs', seed, ordinal++).chance(profile.refusedLogs ?? 0)) {
      count(counts.limits, 'logs')
      return { error: { code: -32005, message: 'the request exceeds the capacity of the node' } }
    }
    if (method === 'eth_blockNumber') return { result: numberToHex(view) }
    if (method === 'eth_getLogs') return readLogs(params[0] as Record<string, unknown>, view)
    if (method.startsWith('eth_sendRawTransaction')) return send(method, params)
    if (method === 'eth_call' && isToNodeInterface(params[0])) return estimateComponents(params[0], view)

    const index = BLOCK_PARAMETER[method]
    if (index === undefined) return knownBy(view, method, await forward(method, params))
    const number = numberOf(params[index], view)
    if (number > view)
      return method === 'eth_getBlockByNumber'
        ? { result: null }
        : { error: { code: -32000, message: 'header not found' } }
    if (method !== 'eth_getBlockByNumber' && view - number > (profile.stateBlocks ?? Number.POSITIVE_INFINITY)) {
      count(counts.limits, 'state')
      return { error: { code: -32000, message: 'metadata is not found' } }
    }
    const reply = await forward(method, [...params.slice(0, index), numberToHex(number), ...params.slice(index + 1)])
    if (method === 'eth_estimateGas' && reply.result !== undefined)
      return { result: numberToHex(hexToNumber(reply.result as Hex) + l1Gas()) }
    return method === 'eth_getBlockByNumber' ? withArbitrumFields(reply) : reply
  }

  /** Returns the error of a call that the provider supports never or not in this form. */
  function rejectionOf(method: string, params: unknown[]): Reply | undefined {
    const reject = (limit: string, code: number, message: string): Reply => {
      count(counts.limits, limit)
      return { error: { code, message } }
    }
    if (method.startsWith('debug_') && !profile.hasTraces)
      return reject('traces', -32601, `the method ${method} does not exist/is not available`)
    if (method === 'eth_sendRawTransactionSync' && !profile.hasSyncSend)
      return reject('sync send', -32601, `the method ${method} does not exist/is not available`)
    if (method === 'eth_call' && params.length > 2 && !profile.acceptsOverrides)
      return reject('overrides', -32602, 'too many arguments, want at most 2')
    return undefined
  }

  /** Returns the logs that a replica knows: a range beyond its newest block ends there, without an error. */
  async function readLogs(filter: Record<string, unknown>, view: number): Promise<Reply> {
    if (filter.blockHash !== undefined) {
      const { result } = await forward('eth_getBlockByHash', [filter.blockHash, false])
      const block = result as Block
      if (block === null || hexToNumber(block.number) > view)
        return { error: { code: -32000, message: 'unknown block' } }
      return forward('eth_getLogs', [filter])
    }
    const from = numberOf(filter.fromBlock ?? 'latest', view)
    const to = numberOf(filter.toBlock ?? 'latest', view)
    if (profile.logs && to - from + 1 > profile.logs.maxBlocks) {
      count(counts.limits, 'log range')
      return { error: { code: -32600, message: profile.logs.message } }
    }
    if (from > view) return { result: [] }
    const reply = await forward('eth_getLogs', [
      { ...filter, fromBlock: numberToHex(from), toBlock: numberToHex(Math.min(to, view)) },
    ])
    if (((reply.result ?? []) as unknown[]).length <= (profile.maxLogs ?? Number.POSITIVE_INFINITY)) return reply
    count(counts.limits, 'log results')
    return { error: { code: -32005, message: `query returned more than ${profile.maxLogs} results` } }
  }

  /** Hands a transaction to the sequencer, which rejects one that cannot pay for its L1 data. */
  async function send(method: string, params: unknown[]): Promise<Reply> {
    if (refusal !== undefined) return { error: { code: -32000, message: refusal } }
    isSpike ||= spikesAtSend
    spikesAtSend = false
    const { gas = 0n } = parseTransaction(params[0] as Hex)
    if (Number(gas) < l1Gas() + PLAIN_TRANSFER_GAS) return { error: { code: -32000, message: 'intrinsic gas too low' } }
    return withArbitrumFields(await forward(method, params))
  }

  /** Hides what is in a block that the replica does not know yet. */
  function knownBy(view: number, method: string, reply: Reply): Reply {
    const block = (reply.result ?? null) as { number?: Hex; blockNumber?: Hex } | null
    const number = block?.blockNumber ?? (method === 'eth_getBlockByHash' ? block?.number : undefined)
    if (number && hexToNumber(number) > view) return { result: null }
    return method === 'eth_getTransactionReceipt' || method === 'eth_getBlockByHash' ? withArbitrumFields(reply) : reply
  }

  /** Adds the fields that blocks and receipts have on Arbitrum, or removes them. */
  function withArbitrumFields(reply: Reply): Reply {
    if (typeof reply.result !== 'object' || reply.result === null) return reply
    const content = reply.result as Record<string, unknown>
    if (!('gasUsed' in content)) return reply
    if (!profile.isArbitrum) {
      const { l1BlockNumber: _, ...standard } = content // anvil's, for the ids of Arbitrum chains
      return { ...reply, result: standard }
    }
    const isReceipt = 'transactionHash' in content
    const number = (isReceipt ? content.blockNumber : content.number) as Hex
    const l1BlockNumber = numberToHex(Math.floor(hexToNumber(number) / 48))
    if (!isReceipt)
      return { ...reply, result: { ...content, l1BlockNumber, sendCount: '0x0', gasLimit: '0x4000000000000' } }
    const gasUsed = numberToHex(hexToNumber(content.gasUsed as Hex) + l1Gas())
    return { ...reply, result: { ...content, gasUsed, gasUsedForL1: numberToHex(l1Gas()), l1BlockNumber } }
  }

  const isToNodeInterface = (call: unknown): call is { to: Hex; data: Hex; from?: Hex } =>
    profile.isArbitrum && (call as { to?: string }).to?.toLowerCase() === NODE_INTERFACE

  async function estimateComponents(call: { data: Hex; from?: Hex }, view: number): Promise<Reply> {
    if (slice(call.data, 0, 4) === ESTIMATE_L1_COMPONENT) {
      const result = encodeFunctionResult({
        abi: nodeInterfaceAbi,
        functionName: 'gasEstimateL1Component',
        result: [BigInt(l1Gas()), 10n ** 7n, 10n ** 9n],
      })
      return { result }
    }
    if (slice(call.data, 0, 4) !== ESTIMATE_COMPONENTS) return { error: { code: 3, message: 'execution reverted' } }
    const [to, , data] = decodeFunctionData({ abi: nodeInterfaceAbi, data: call.data }).args
    const estimate = await forward('eth_estimateGas', [{ ...call, to, data }, numberToHex(view)])
    if (estimate.error) return estimate
    const result = encodeFunctionResult({
      abi: nodeInterfaceAbi,
      functionName: 'gasEstimateComponents',
      result: [BigInt(estimate.result as Hex) + BigInt(l1Gas()), BigInt(l1Gas()), 10n ** 7n, 10n ** 9n],
    })
    return { result }
  }

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const content = await text(incoming)
    counts.requests++
    response.setHeader('date', new Date(Date.now() + 1_000 * secondsAhead).toUTCString())
    counts.bytes += content.length
    const body = JSON.parse(content) as Call | Call[]
    const json = (reply: unknown) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply))
    if (profile.throttle && randomOf('throttle', seed, counts.requests).chance(profile.throttle.share)) {
      count(counts.limits, '429')
      return refuse(response, profile.throttle)
    }
    if (randomOf('text', seed, counts.requests).chance(profile.textShare ?? 0)) {
      count(counts.limits, 'text')
      return void response.writeHead(200, { 'content-type': 'text/plain' }).end('Too many requests, slow down')
    }
    const replyTo = async (call: Call, replica?: number) => ({
      jsonrpc: '2.0',
      ...distort(call, await respond(call, replica)),
      id: call.id,
    })
    if (!Array.isArray(body)) return json(await replyTo(body))
    if (body.length > profile.maxBatch) {
      count(counts.limits, 'batch')
      return json({ jsonrpc: '2.0', id: null, error: { code: -32600, message: 'batch requests are not supported' } })
    }
    const replica = profile.splitsBatches ? undefined : chooseReplica()
    json(await Promise.all(body.map(call => replyTo(call, replica))))
  }

  function refuse(response: ServerResponse, { body, retryAfterSeconds }: NonNullable<ProviderProfile['throttle']>) {
    const headers = retryAfterSeconds === undefined ? {} : { 'retry-after': `${retryAfterSeconds}` }
    if (body === 'html')
      return void response
        .writeHead(429, { ...headers, 'content-type': 'text/html' })
        .end('<html><h1>429 Too Many Requests</h1></html>')
    const error = { code: 429, message: 'Your app has exceeded its compute units per second capacity.' }
    response
      .writeHead(429, { ...headers, 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: null, error }))
  }

  const server = createServer((incoming, response) => {
    serve(incoming, response).catch(() => incoming.socket.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    counts,
    become(next) {
      profile = next
      isSpike = false
    },
    setSpike(isOn) {
      isSpike = isOn
    },
    setClock(seconds) {
      secondsAhead = seconds
    },
    distort(next = (_, reply) => reply) {
      distort = next
    },
    async freeze(replica, block) {
      frozenViews.clear()
      if (replica !== undefined) frozenViews.set(replica, block ?? (await viewOf(replica)))
    },
    refuseSends(words) {
      refusal = words
    },
    spikeAtNextSend() {
      spikesAtSend = true
    },
    async stop() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
