import { type Hex, hexToNumber, numberToHex } from 'viem'
import { unreachable } from '../chain/client.ts'
import { type RpcError, Unreachable } from './json-rpc.ts'

export type Request = { method: string; params: readonly unknown[] }
export type Answer = { result: unknown; error?: undefined } | { result?: undefined; error: RpcError }

/** A log as nodes write it; not every node tells the time of its block with it. */
export type NodeLog = {
  address: Hex
  topics: Hex[]
  data: Hex
  blockNumber: Hex
  blockHash: Hex
  transactionHash: Hex
  logIndex: Hex
  blockTimestamp?: Hex | null
}

/** A header as nodes write it, as far as the history needs it. */
type NodeBlock = { number: Hex; hash: Hex; timestamp: Hex }

/** The nodes of a chain, asked several things at once. */
export type Node = {
  /** All answers of one node, in one HTTP request where it takes batches; throws Unreachable where none answers. */
  ask(requests: readonly Request[]): Promise<Answer[]>
}

const TIMEOUT_MS = 10_000

/** JSON-RPC as the history needs it: refusals are answers, for they tell how large a range of logs may be. */
export function createNode(urls: readonly string[]): Node {
  const endpoints = urls.map(url => ({ url, takesBatches: true }))
  let id = 0

  async function post(url: string, body: unknown): Promise<unknown> {
    const controller = new AbortController()
    const timer = setTimeout(() => controller.abort(), TIMEOUT_MS)
    try {
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(url, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
        signal: controller.signal,
      })
      return await response.json()
    } finally {
      clearTimeout(timer) // a timer that is left would keep the Durable Object in memory
    }
  }

  async function askOne(endpoint: (typeof endpoints)[number], requests: readonly Request[]): Promise<Answer[]> {
    const bodies = requests.map(({ method, params }) => ({ jsonrpc: '2.0', id: ++id, method, params }))
    if (endpoint.takesBatches && bodies.length > 1) {
      const replies = await post(endpoint.url, bodies)
      if (Array.isArray(replies) && replies.length === bodies.length)
        return bodies.map(body => toAnswer(replies.find(reply => reply?.id === body.id)))
      endpoint.takesBatches = false
    }
    const answers: Answer[] = []
    for (const body of bodies) answers.push(toAnswer(await post(endpoint.url, body)))
    return answers
  }

  async function ask(requests: readonly Request[]): Promise<Answer[]> {
    for (const endpoint of [...endpoints]) {
      try {
        return await askOne(endpoint, requests)
      } catch {
        // the next node may answer, and is asked first from now on
        endpoints.push(...endpoints.splice(endpoints.indexOf(endpoint), 1))
      }
    }
    throw new Unreachable()
  }

  return { ask }
}

function toAnswer(reply: unknown): Answer {
  if (typeof reply !== 'object' || reply === null) throw new Unreachable()
  if ('error' in reply && typeof reply.error === 'object' && reply.error !== null) {
    const { code, message } = reply.error as Record<string, unknown>
    const error = { code: typeof code === 'number' ? code : 0, message: typeof message === 'string' ? message : '' }
    return { error }
  }
  if (!('result' in reply)) throw new Unreachable()
  return { result: reply.result }
}

export const blockRequest = (block: number | 'latest' | 'finalized'): Request => ({
  method: 'eth_getBlockByNumber',
  params: [typeof block === 'number' ? numberToHex(block) : block, false],
})

/** The block that a node answered; undefined where it has none such. */
export function blockOf(answer: Answer | undefined): { number: number; hash: Hex; timestamp: number } | undefined {
  if (!answer?.result) return undefined
  const { number, hash, timestamp } = answer.result as NodeBlock
  return { number: hexToNumber(number), hash, timestamp: hexToNumber(timestamp) }
}

const HEADERS = 100

/**
 * Times of the logs' blocks in Unix seconds: from the logs, or else from the headers, where a node's logs have none.
 * Throws CHAIN_UNREACHABLE where the node has logs of a block and not the block.
 */
export async function timesOf(node: Node, logs: readonly NodeLog[]): Promise<(log: NodeLog) => number> {
  const times = new Map(logs.map(({ blockNumber, blockTimestamp }) => [blockNumber, blockTimestamp]))
  const missing = [...times].flatMap(([number, time]) => (time ? [] : [number]))
  for (let from = 0; from < missing.length; from += HEADERS) {
    const some = missing.slice(from, from + HEADERS)
    const answers = await node.ask(some.map(number => blockRequest(hexToNumber(number))))
    for (const [index, number] of some.entries())
      times.set(number, (answers[index]?.result as NodeBlock | null | undefined)?.timestamp)
  }
  return ({ blockNumber }) => {
    const time = times.get(blockNumber)
    if (!time) throw unreachable(new Error(`the node has logs of block ${blockNumber}, and not it`))
    return hexToNumber(time)
  }
}
