import { createEndpoint, type Endpoint, isTimeout, type RpcResponse } from './endpoint-client.ts'
import { isNodeFault, RefusedByNode, unreachable } from './node-errors.ts'
import type { RpcRequest } from './requests.ts'
import { retryLatest } from './retry-latest.ts'

/** The responses to a list of requests, in the same order; undefined in the place of an undefined request. */
export type RpcResponses<Requests extends readonly (RpcRequest | undefined)[]> = {
  [index in keyof Requests]: ResponseTo<Requests[index]>
}
type ResponseTo<Request> = Request extends RpcRequest<infer Result> ? RpcResponse<Result> : undefined

/** JSON-RPC over one or more nodes of a chain. Its errors contain neither URLs nor what a node said. */
export type RpcTransport = {
  /**
   * Returns the result of a request that succeeds on every healthy node: any error makes it query the next node. Throws
   * CHAIN_UNREACHABLE when no node returns a result; the cause is RefusedByNode if the last one returned an error.
   */
  read<Result>(request: RpcRequest<Result>): Promise<Result>
  /**
   * Returns the first response that does not report a fault of the node: an error is a value, for callers to which it
   * means something, such as a revert. Throws CHAIN_UNREACHABLE when every node fails.
   */
  call<Result>(request: RpcRequest<Result>): Promise<RpcResponse<Result>>
  /**
   * Returns the responses of one node to all requests, in order; errors are values. A node whose responses `accept`
   * rejects counts as failed. Throws CHAIN_UNREACHABLE when every node fails.
   */
  batch<const Requests extends readonly (RpcRequest | undefined)[]>(
    requests: Requests,
    accept?: (responses: RpcResponses<Requests>) => boolean,
  ): Promise<RpcResponses<Requests>>
  /** Returns the node to query next; undefined without nodes. */
  preferred(): Endpoint | undefined
  /** Makes a node that failed the last choice for two seconds. */
  rest(endpoint: Endpoint): void
}

const DEFAULT_TIMEOUT_MS = 10_000
const REST_MS = 2_000
const READ_ROUNDS = 2
const ROUND_PAUSE_MS = 100

/** Creates a transport over nodes in order of preference. Every HTTP request ends after `timeoutMs`. */
export function createTransport(urls: readonly string[], timeoutMs = DEFAULT_TIMEOUT_MS): RpcTransport {
  const endpoints = urls.map(createEndpoint)

  function inOrder(): Endpoint[] {
    const now = Date.now()
    return endpoints.toSorted((a, b) => Math.max(a.restUntil - now, 0) - Math.max(b.restUntil - now, 0))
  }

  function rest(endpoint: Endpoint): void {
    endpoint.restUntil = Date.now() + REST_MS
  }

  const send = <Result>(endpoint: Endpoint, request: RpcRequest<Result>): Promise<RpcResponse<Result>> =>
    retryLatest(request, () => resendOnce(() => endpoint.send(request, timeoutMs)))

  async function read<Result>(request: RpcRequest<Result>): Promise<Result> {
    let refusal: RefusedByNode | undefined
    for (let round = 1; round <= READ_ROUNDS; round++) {
      let isTransient = true
      for (const endpoint of inOrder()) {
        try {
          const { result, error } = await send(endpoint, request)
          if (error === undefined) return result
          refusal = new RefusedByNode(request.method, error.code)
          if (isNodeFault(error)) rest(endpoint)
          else isTransient = false
        } catch (error) {
          refusal = undefined
          rest(endpoint)
          if (isTimeout(error)) isTransient = false
        }
      }
      if (!isTransient) break
      if (round < READ_ROUNDS) await new Promise(resolve => setTimeout(resolve, ROUND_PAUSE_MS))
    }
    throw unreachable(refusal ?? `no node answered ${request.method}`)
  }

  async function call<Result>(request: RpcRequest<Result>): Promise<RpcResponse<Result>> {
    for (const endpoint of inOrder()) {
      const response = await send(endpoint, request).catch(() => undefined)
      if (response && !(response.error && isNodeFault(response.error))) return response
      rest(endpoint)
    }
    throw unreachable(`no node answered ${request.method}`)
  }

  async function batch<const Requests extends readonly (RpcRequest | undefined)[]>(
    requests: Requests,
    accept: (responses: RpcResponses<Requests>) => boolean = () => true,
  ): Promise<RpcResponses<Requests>> {
    const sent = requests.filter(request => request !== undefined)
    for (const endpoint of inOrder()) {
      const received = await resendOnce(() => endpoint.sendBatch(sent, timeoutMs)).catch(() => undefined)
      const responses = received && inPlaceOf(requests, received)
      if (responses && accept(responses)) return responses
      rest(endpoint)
    }
    throw unreachable('no node answered a batch')
  }

  return { read, call, batch, preferred: () => inOrder()[0], rest }
}

/** Puts the responses to the defined requests in the places of these requests. */
function inPlaceOf<Requests extends readonly (RpcRequest | undefined)[]>(
  requests: Requests,
  received: readonly RpcResponse[],
): RpcResponses<Requests> {
  const rest = received.values()
  const responses: unknown = requests.map(request => request && rest.next().value)
  return responses as RpcResponses<Requests>
}

/** Sends again after a failure other than a timeout: a kept-alive connection may close just as it is reused. */
async function resendOnce<Response>(send: () => Promise<Response>): Promise<Response> {
  try {
    return await send()
  } catch (error) {
    if (isTimeout(error)) throw error
    return send()
  }
}
