import { type Hex, hexToNumber } from 'viem'
import type { RpcResponse } from '../rpc/endpoint-client.ts'
import { isRefusedForNow, mayBeTruncated } from '../rpc/log-range-size.ts'
import { inOrder, isSelectedBy, readProvedLogs } from '../rpc/proved-logs.ts'
import {
  blockRequest,
  headerRequest,
  type LogFilter,
  logsRequest,
  type NodeLog,
  type RpcRequest,
} from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import { readAgainIfRefused } from './range-reader.ts'
import type { IndexCursor } from './tables/cursor.ts'

/** The newest events up to a block. `newest` is the last log of all, which may be a transfer. */
type NewEvents = { last: { number: number; hash: Hex; timestamp: number }; logs: NodeLog[]; newest: NodeLog }

/** After this many responses in a row without the newest known log, the node does not lag: the chain has changed. */
const MAX_DOUBTS = 3
/** After this many refusals in a row, the head is read: from a node that refuses every other request, almost never. */
const MAX_REFUSALS = 16
/** How long nodes get, within a read, to learn of a block that another one has. */
export const LAGGING_NODE_MS = 500

/** Creates the reader of the newest events, which needs no header of the blocks without any. */
export function createNewEventsReader(rpc: RpcTransport) {
  let doubts = 0
  let refusals = 0

  const doubt = () => (++doubts < MAX_DOUBTS ? 'nothing' : 'unusable')

  /**
   * Reads the logs from the newest `known` one on, with one request whose response proves itself: a node that lists a
   * log has its block and those before it, and one that lists the known log is on the index's branch. So the index
   * moves to the last block with a log and never beyond: without logs, nothing is proved. Tokens' transfers are listed
   * too, and prove as much. A node that lags lists nothing new, and delays events. Before the index moves, the earlier
   * blocks are listed a second time, by another node if there are several, and the last one, which may be listed in
   * part, is read with proof. `needsEvents` leaves the index where it is if nothing but transfers has come. Returns
   * `unusable` if the head must be read: the response proves nothing, or the chain may have changed. Throws
   * CHAIN_UNREACHABLE.
   */
  async function read(
    { block, hash }: IndexCursor,
    {
      known,
      filters,
      needsEvents,
    }: { known: { number: number; hash: Hex } | undefined; filters: readonly LogFilter[]; needsEvents: boolean },
  ): Promise<NewEvents | 'nothing' | 'unusable'> {
    // In a batch, because the refusal of a single request would count as a failure of its node.
    const [{ result, error }] = await rpc.batch([
      logsRequest(union(filters), { fromBlock: known?.number ?? block, toBlock: 'latest' }),
    ])
    refusals = isRefusedForNow(error) ? refusals + 1 : 0
    if (refusals > 0 && refusals < MAX_REFUSALS) return 'nothing'
    if (result === undefined || mayBeTruncated(result.length)) return 'unusable'
    const isSelected = (log: NodeLog) => filters.some(filter => isSelectedBy(filter)(log))
    const old = result.filter(log => numberOf(log) <= block)
    const hashes = new Map([known, { number: block, hash }].map(each => [each?.number, each?.hash]))
    if (old.some(log => (hashes.get(numberOf(log)) ?? log.blockHash) !== log.blockHash)) return 'unusable'
    if (known && old.some(log => numberOf(log) > known.number && isSelected(log))) return 'unusable'
    if (known && !old.some(log => numberOf(log) === known.number)) return doubt()

    const fresh = inOrder(result.filter(log => numberOf(log) > block))
    const isLast = ({ blockNumber }: NodeLog) => blockNumber === fresh.at(-1)?.blockNumber
    const events = fresh.filter(isSelected)
    const newest = events.some(isLast) ? fresh.at(-1) : fresh.findLast(log => !isLast(log))
    if (newest === undefined || (needsEvents && events.length === 0)) {
      doubts = 0
      return 'nothing'
    }
    const to = numberOf(newest)
    const earlier = { fromBlock: block + 1, toBlock: to - 1 }
    const second = earlier.toBlock > block ? await readTwice(logsRequest(union(filters), earlier)) : undefined
    const [header, own] = await rpc.batch([headerRequest(to), known ? undefined : blockRequest(block)])
    if (own && own.result?.hash !== hash) return 'unusable'
    const before = events.filter(log => numberOf(log) < to)
    const isSame = !second || placesOf(second.result?.filter(isSelected)) === placesOf(before)
    if (!isSame || !header.result || header.result.hash !== newest.blockHash) return doubt()
    const range = { after: { number: to - 1, hash: header.result.parentHash }, to, newest: header.result }
    const { last, logs } = await readProvedLogs(rpc, filters, range, LAGGING_NODE_MS)
    if (last === undefined) return doubt()
    doubts = 0
    return { last, logs: [...before, ...logs], newest }
  }

  /** Requests logs that were listed once: from the second choice of several nodes, if it responds. */
  async function readTwice(request: RpcRequest<NodeLog[]>): Promise<RpcResponse<NodeLog[]>> {
    const other =
      rpc.nodes > 1
        ? await rpc
            .abortAfter(LAGGING_NODE_MS, async ({ signal }) => rpc.preferred(1)?.send(request, signal))
            .catch(() => undefined)
        : undefined
    return other?.result ? other : ((await readAgainIfRefused(rpc, [request]))[0] as RpcResponse<NodeLog[]>)
  }

  return { read }
}

const numberOf = ({ blockNumber }: NodeLog): number => hexToNumber(blockNumber)

/** Returns a filter that selects what any of them does, and more. */
const union = (filters: readonly LogFilter[]): LogFilter => ({
  address: filters.flatMap(({ address }) => address),
  topics: [filters.flatMap(({ topics: [first] }) => first ?? [])],
})

/** Returns where logs are, to compare lists of them; undefined for no list. */
const placesOf = (logs: readonly NodeLog[] | undefined): string | undefined =>
  logs &&
  inOrder(logs)
    .map(({ blockHash, logIndex }) => `${blockHash} ${hexToNumber(logIndex)}`)
    .join()
