import type { RpcResponse } from '../rpc/endpoint-client.ts'
import {
  createLogRangeSize,
  isOverload,
  isRefusedForNow,
  isTopicLimit,
  mayBeTruncated,
  REFUSED_SENDS,
} from '../rpc/log-range-size.ts'
import { unreachable } from '../rpc/node-errors.ts'
import { inOrder } from '../rpc/proved-logs.ts'
import {
  blockRequest,
  type LogFilter,
  logsRequest,
  type NodeBlock,
  type NodeLog,
  type RpcRequest,
  toHeader,
} from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import { FOLLOWED_TOPICS } from './followed-events.ts'
import type { IndexCursor } from './tables/cursor.ts'

type SettledLogs = { target: NonNullable<ReturnType<typeof toHeader>>; logs: NodeLog[] }

export type RangeReader = ReturnType<typeof createRangeReader>

/** How long ranges are not trusted after a node lacked a settled block. */
const DISTRUST_MS = 600_000
/** Several ranges are read at once if the node accepts only ranges as small as this. */
const SMALL_RANGE_BLOCKS = 100
const MAX_SMALL_RANGES = 24

/** Creates the reader of settled blocks, which learns how many blocks and topics the node takes per request. */
export function createRangeReader(rpc: RpcTransport) {
  let size = createLogRangeSize()
  /** How many topics a filter has at most: fewer once a node has limited them. */
  let maxTopics = FOLLOWED_TOPICS.length
  /** The first block of the last range whose request failed without a response. */
  let failedFrom = -1
  let distrustedUntil = 0

  /**
   * Reads the logs of blocks up to a settled one, as far as the node takes them at once. A range that the audit does
   * not cover is read twice, because another node may return it the second time. After them it reads the cursor's
   * block: if a reorg happens in between, it no longer matches. Returns `limited` if the node takes less at once,
   * `forked` if the cursor's block is no longer on the chain, and `behind` if some node lacked a block or a log. Throws
   * CHAIN_UNREACHABLE.
   */
  async function read(
    from: number,
    settled: number,
    {
      filters,
      cursor,
      auditedBlocks,
    }: { filters: readonly LogFilter[]; cursor: IndexCursor | undefined; auditedBlocks: number },
  ): Promise<SettledLogs | 'limited' | 'forked' | 'behind'> {
    const blocks = size.blocks()
    const to = Math.min(settled, from + blocks * (blocks > SMALL_RANGE_BLOCKS ? 1 : MAX_SMALL_RANGES) - 1)
    const ranges = Array.from({ length: Math.ceil((to - from + 1) / blocks) }, (_, index) => ({
      fromBlock: from + index * blocks,
      toBlock: Math.min(to, from + (index + 1) * blocks - 1),
    }))
    const isAudited = to - from < auditedBlocks
    const twice = ranges.length === 1 && !isAudited ? [...ranges, ...ranges] : ranges
    const requests = [blockRequest(to), ...twice.flatMap(range => filters.map(filter => logsRequest(filter, range)))]
    const [first, ...rest] = await readAgainIfRefused(
      rpc,
      cursor ? [...requests, blockRequest(cursor.block)] : requests,
    ).catch(error => {
      const [{ fromBlock, toBlock } = { fromBlock: to, toBlock: to }] = ranges
      const isThrottled = (rpc.preferred()?.throttledUntil ?? 0) > Date.now()
      // The response may have been too large; a connection that breaks once says nothing.
      if (!isThrottled && failedFrom === fromBlock) size.reject(toBlock - fromBlock + 1, '')
      failedFrom = fromBlock
      throw error
    })
    const own = rest[twice.length * filters.length]?.result as NodeBlock | null | undefined
    if (own && cursor && own.hash !== cursor.hash) return 'forked'
    const responses = twice.map((_, index) =>
      combined(rest.slice(index * filters.length, (index + 1) * filters.length) as RpcResponse<NodeLog[]>[]),
    )
    for (const [index, { result, error }] of responses.entries()) {
      const { fromBlock = from, toBlock = to } = ranges[index % ranges.length] ?? {}
      const isTruncated = result !== undefined && toBlock > fromBlock && mayBeTruncated(result.length)
      if (error !== undefined || isTruncated) return acceptLimit(toBlock - fromBlock + 1, error?.message ?? '')
    }
    const target = toHeader(first?.result as NodeBlock | null | undefined)
    const isSame = responses
      .slice(ranges.length)
      .every(({ result }, index) => result?.length === responses[index]?.result?.length)
    if (target === undefined || own === null || !isSame) {
      distrustedUntil = Date.now() + DISTRUST_MS // a node is far behind
      return 'behind'
    }
    for (const [index, { fromBlock, toBlock }] of ranges.entries())
      size.accept(toBlock - fromBlock + 1, responses[index]?.result?.length ?? 0)
    return { target, logs: inOrder(responses.slice(0, ranges.length).flatMap(({ result }) => result ?? [])) }
  }

  /** Takes a limit of the node. Throws CHAIN_UNREACHABLE if it returns no logs at all. */
  function acceptLimit(blocks: number, message: string) {
    if (isTopicLimit(message) && maxTopics > 1) maxTopics = Math.ceil(maxTopics / 2)
    else if (isOverload(message) || !size.reject(blocks, message)) throw unreachable('the node returns no logs')
    return 'limited' as const
  }

  return {
    read,
    /** How many blocks the node takes at once. */
    blocks: (): number => size.blocks(),
    /** Begins with the range that the node took earlier. */
    restore(blocks: number): void {
      size = createLogRangeSize(blocks)
    },
    maxTopics: (): number => maxTopics,
    isTrusted: (): boolean => Date.now() >= distrustedUntil,
  }
}

/**
 * Sends a batch, and again what the node refuses for no reason, with the last request: it shows whether the chain has
 * changed since the others.
 */
export async function readAgainIfRefused(rpc: RpcTransport, requests: readonly RpcRequest[]): Promise<RpcResponse[]> {
  const responses: RpcResponse[] = [...(await rpc.batch<RpcRequest[]>([...requests]))]
  for (let sends = 1; sends < REFUSED_SENDS; sends++) {
    if (!responses.some(({ error }) => isRefusedForNow(error))) break
    const again = [...responses.keys()].filter(
      index => index === responses.length - 1 || isRefusedForNow(responses[index]?.error),
    )
    const repeated = await rpc.batch<RpcRequest[]>(again.map(index => requests[index] as RpcRequest))
    for (const [at, index] of again.entries()) responses[index] = repeated[at] as RpcResponse
  }
  return responses
}

/** Returns the logs of one range by all filters; failed if one of them failed. */
function combined(responses: readonly RpcResponse<NodeLog[]>[]): RpcResponse<NodeLog[]> {
  const failed = responses.find(({ result }) => result === undefined)
  return failed ?? { result: responses.flatMap(({ result }) => result ?? []) }
}
