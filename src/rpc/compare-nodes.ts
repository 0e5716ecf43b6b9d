import type { Endpoint, RpcResponse } from './endpoint-client.ts'
import { blockRequest, chainIdRequest, type Head, type NodeBlock, toHeader } from './requests.ts'
import type { RpcTransport } from './transport.ts'

const TIMEOUT_MS = 2_000

/** `finalNumber` is that of the first block for a node that names no finalized one. */
type NodeView = { endpoint: Endpoint; chainId: number; head: Head; finalNumber: number }

/**
 * Compares the nodes with each other: their chain, how far each is, and the block at a height that is final for all. A
 * node whose final block differs from that of most, or of the first one, is disputed: one of them serves another chain.
 * Returns the place of each node in the configuration from 1 on, and what is wrong with it; nothing for a single node,
 * which has nothing to be compared with.
 */
export async function compareNodes({ endpoints, heads, abortAfter }: RpcTransport, chainId: number) {
  if (endpoints.length < 2) return []
  const ask = <Result>(work: (signal: AbortSignal) => Promise<Result>) =>
    abortAfter(TIMEOUT_MS, ({ signal }) => work(signal)).catch(() => undefined)
  const views = await Promise.all(endpoints.map(endpoint => ask(signal => viewOf(endpoint, signal))))
  const onChain = views.filter(view => view !== undefined && view.chainId === chainId) as NodeView[]
  const problems = heads.judge(onChain.map(({ endpoint, head }) => ({ endpoint, head })))
  const height = Math.min(...onChain.map(({ finalNumber }) => finalNumber))
  const finalBlocks = await Promise.all(
    onChain.map(({ endpoint }) => ask(signal => endpoint.send(blockRequest(height), signal))),
  )
  const hashes = new Map(onChain.map(({ endpoint }, index) => [endpoint, finalBlocks[index]?.result?.hash]))
  const expected = mostFrequent([...hashes.values()].filter(hash => hash !== undefined))
  return endpoints.map((endpoint, index) => {
    const view = views[index]
    const hash = hashes.get(endpoint)
    const isDisputed = hash !== undefined && hash !== expected
    const verdict = (problem: string | undefined) => ({ node: endpoint.name, place: index + 1, problem, isDisputed })
    if (view === undefined) return verdict(silenceOf(endpoint))
    if (view.chainId !== chainId) return verdict(`is on chain ${view.chainId}, not on ${chainId}`)
    if (isDisputed) return verdict(`has another block ${height} than the others, although that is final`)
    return verdict(problems[onChain.indexOf(view)])
  })
}

/** Says that a node does not respond, and with which status a gateway responds in its place, if one does. */
export const silenceOf = ({ gatewayStatus }: Endpoint): string =>
  gatewayStatus === undefined ? 'does not respond' : `is refused by a gateway with the status ${gatewayStatus}`

async function viewOf(endpoint: Endpoint, signal: AbortSignal): Promise<NodeView | undefined> {
  const responses = await endpoint.sendBatch(
    [chainIdRequest, blockRequest('latest'), blockRequest('finalized')],
    signal,
  )
  const [id, latest, final] = responses as [RpcResponse<string>, RpcResponse<NodeBlock>, RpcResponse<NodeBlock>]
  const head = toHeader(latest.result)
  if (!id.result || !head) return undefined
  return { endpoint, chainId: Number(id.result), head, finalNumber: toHeader(final.result)?.number ?? 0 }
}

/** Returns the most frequent value, and of equally frequent ones the first. */
function mostFrequent(values: readonly string[]): string | undefined {
  const groups = [...Map.groupBy(values, value => value).values()]
  return groups.sort((one, other) => other.length - one.length)[0]?.[0]
}
