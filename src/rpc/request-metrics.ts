import { count, observe } from '../metrics/recorder.ts'
import { isTimeout } from './abort-after.ts'
import { isNodeFault, type RpcError } from './node-errors.ts'

/** One HTTP request to a node. `startedAt` is a time of `performance.now()`. */
type SentRequest = { node: string; methods: readonly string[]; startedAt: number }

type Outcome = { error?: RpcError | undefined }

/** Records a node's response. */
export function recordResponses(request: SentRequest, responses: readonly Outcome[]): void {
  const { node, methods } = request
  recordDuration(request)
  for (const [index, method] of methods.entries())
    count('ats_rpc_requests', { method, node, result: resultOf(responses[index]) })
}

/** Records that no valid response came. A request that was aborted because another node was faster is `canceled`. */
export function recordFailure(request: SentRequest, { aborted, reason }: AbortSignal): void {
  const { node, methods } = request
  recordDuration(request)
  const result = !aborted ? 'fault' : isTimeout(reason) ? 'timeout' : 'canceled'
  for (const method of methods) count('ats_rpc_requests', { method, node, result })
}

function recordDuration({ node, methods, startedAt }: SentRequest) {
  const [first = ''] = methods
  const method = methods.length > 1 ? 'batch' : first
  observe('ats_rpc_request_duration_seconds', { method, node }, (performance.now() - startedAt) / 1_000)
}

function resultOf(response: Outcome | undefined): string {
  if (response?.error === undefined) return 'ok'
  return isNodeFault(response.error) ? 'fault' : 'error'
}
