import { type Hex, hexToNumber } from 'viem'
import { batchesOf, sleep } from '../concurrency.ts'
import { areAllLogs, hasBloom, mayHaveLogs } from './logs-bloom.ts'
import { isNodeFault } from './node-errors.ts'
import {
  aboutStrangers,
  blockLogsRequest,
  headerRequest,
  type LogFilter,
  logsRequest,
  type NodeHeader,
  type NodeLog,
} from './requests.ts'
import type { RpcTransport } from './transport.ts'

/** The block up to which the logs are complete; undefined if no node had the first one. */
type ProvedLogs = {
  last: { number: number; hash: Hex; timestamp: number } | undefined
  logs: NodeLog[]
  /** Whether the block after the known one is on another branch. */
  isForked: boolean
}

const MAX_HEADERS_PER_BATCH = 25
const MAX_BLOCKS_PER_BATCH = 10
/** How long nodes get to learn of a block that another one has. */
const RETRY_PAUSE_MS = 100

/**
 * Returns the logs that any of the filters selects of the blocks after a known one up to `to`, oldest first, as far as
 * nodes have proved that they know them. Behind a load balancer every request may reach another node, and one that lags
 * behind returns an empty list for a range of blocks that it does not have. So a block counts only if its header names
 * the block before it as its parent, and its logs are requested by its hash, unless the bloom filter of the header
 * excludes them. A node may know a block before its logs, or not know logs by hash: then all logs of the block are
 * requested, which count if they have the header's filter. What a node did not know yet is requested again for
 * `patienceMs`. `newest` is a header that the caller has read. Throws CHAIN_UNREACHABLE.
 */
export async function readProvedLogs(
  rpc: RpcTransport,
  filters: readonly LogFilter[],
  { after, to, newest }: { after: { number: number; hash: Hex | undefined }; to: number; newest?: NodeHeader },
  patienceMs = 0,
): Promise<ProvedLogs> {
  const until = Date.now() + patienceMs
  const numbers = Array.from({ length: Math.max(0, to - after.number) }, (_, index) => after.number + 1 + index)
  const headers = new Map(newest && [[hexToNumber(newest.number), newest]])
  const logsOf = new Map<Hex, NodeLog[]>()
  for (;;) {
    await readMissingHeaders(rpc, numbers, headers)
    const branch = linked(after, numbers, headers)
    await readMissingLogs(rpc, filters, branch.headers, logsOf)
    const unread = branch.headers.findIndex(({ hash }) => !logsOf.has(hash))
    const proved = unread < 0 ? branch.headers : branch.headers.slice(0, unread)
    if (proved.length === numbers.length || branch.isForked || Date.now() >= until) {
      const last = proved.at(-1)
      return {
        last: last && { number: hexToNumber(last.number), hash: last.hash, timestamp: hexToNumber(last.timestamp) },
        logs: proved.flatMap(({ hash, timestamp }) =>
          (logsOf.get(hash) ?? []).map(log => ({ ...log, blockTimestamp: log.blockTimestamp ?? timestamp })),
        ),
        isForked: branch.isForked,
      }
    }
    await sleep(RETRY_PAUSE_MS)
  }
}

async function readMissingHeaders(
  rpc: RpcTransport,
  numbers: readonly number[],
  headers: Map<number, NodeHeader>,
): Promise<void> {
  const missing = numbers.filter(number => !headers.has(number))
  const pages = batchesOf(missing, MAX_HEADERS_PER_BATCH).map(async page => {
    for (const [index, { result }] of (await rpc.batch(page.map(headerRequest))).entries())
      if (result) headers.set(page[index] as number, result)
  })
  await Promise.all(pages)
}

/** Returns the headers that follow a block without a gap, each the parent of the next one. */
function linked(
  after: { hash: Hex | undefined },
  numbers: readonly number[],
  headers: ReadonlyMap<number, NodeHeader>,
): { headers: NodeHeader[]; isForked: boolean } {
  const branch: NodeHeader[] = []
  let parent = after.hash
  for (const number of numbers) {
    const header = headers.get(number)
    if (header === undefined) break
    if (parent !== undefined && header.parentHash !== parent) return { headers: branch, isForked: true }
    branch.push(header)
    parent = header.hash
  }
  return { headers: branch, isForked: false }
}

async function readMissingLogs(
  rpc: RpcTransport,
  filters: readonly LogFilter[],
  headers: readonly NodeHeader[],
  logsOf: Map<Hex, NodeLog[]>,
): Promise<void> {
  const missing = headers.filter(({ hash }) => !logsOf.has(hash))
  const filtersFor = ({ logsBloom }: NodeHeader) => filters.filter(filter => mayHaveLogs(logsBloom, filter))
  const withoutLogs = missing.filter(header => filtersFor(header).length === 0)
  for (const { hash } of withoutLogs) logsOf.set(hash, [])
  const toRead = missing.filter(({ hash }) => !logsOf.has(hash))
  const pages = batchesOf(toRead, MAX_BLOCKS_PER_BATCH).map(async page => {
    const reads = page.flatMap(header => filtersFor(header).map(filter => ({ header, filter })))
    const responses = await rpc.batch(reads.map(({ header, filter }) => blockLogsRequest(filter, header.hash)))
    const doubtful: NodeHeader[] = []
    for (const header of page) {
      const ofHeader = responses.filter((_, index) => reads[index]?.header === header)
      const isRefused = ofHeader.some(({ error }) => error !== undefined && !isNodeFault(error))
      const isEmpty = ofHeader.some(({ result }) => result?.length === 0)
      const logs = ofHeader.flatMap(({ result }) => result ?? [])
      if (hasBloom(header.logsBloom) && (isRefused || isEmpty)) doubtful.push(header)
      else if (ofHeader.every(({ result }) => result)) logsOf.set(header.hash, inOrder(logs))
    }
    const isSelected = (log: NodeLog) => filters.some(filter => isSelectedBy(filter)(log))
    for (const [hash, logs] of await readAllLogs(rpc, doubtful)) logsOf.set(hash, logs.filter(isSelected))
  })
  await Promise.all(pages)
}

/** Returns logs of several filters in the order of the chain. */
export const inOrder = (logs: readonly NodeLog[]): NodeLog[] =>
  logs.toSorted(
    (one, other) =>
      hexToNumber(one.blockNumber) - hexToNumber(other.blockNumber) ||
      hexToNumber(one.logIndex) - hexToNumber(other.logIndex),
  )

/**
 * Returns the logs of those blocks of which a node has returned all, by hash: their bloom filter is the header's.
 * Throws CHAIN_UNREACHABLE.
 */
async function readAllLogs(rpc: RpcTransport, headers: readonly NodeHeader[]): Promise<Map<Hex, NodeLog[]>> {
  const found = new Map<Hex, NodeLog[]>()
  if (headers.length === 0) return found
  const requests = headers.map(({ number }) =>
    aboutStrangers(logsRequest({}, { fromBlock: BigInt(number), toBlock: BigInt(number) })),
  )
  for (const [index, { result }] of (await rpc.batch(requests)).entries()) {
    const { hash, logsBloom } = headers[index] as NodeHeader
    if (result?.every(({ blockHash }) => blockHash === hash) && areAllLogs(logsBloom, result)) found.set(hash, result)
  }
  return found
}

export function isSelectedBy({ address, topics }: LogFilter): (log: NodeLog) => boolean {
  const isOneOf = (choice: Hex | readonly Hex[] | null, value: Hex | undefined) =>
    choice === null || [choice].flat().some(each => each.toLowerCase() === value?.toLowerCase())
  return log => isOneOf(address, log.address) && topics.every((choice, index) => isOneOf(choice, log.topics[index]))
}
