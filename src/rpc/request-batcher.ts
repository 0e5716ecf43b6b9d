import { createBatcher } from './batcher.ts'
import type { RpcResponse } from './endpoint-client.ts'
import { isNodeFault } from './node-errors.ts'
import type { RpcRequest } from './requests.ts'
import type { RpcTransport } from './transport.ts'

const MAX_CALLS_PER_BATCH = 32

type WaitingCall = { request: RpcRequest; response: PromiseWithResolvers<RpcResponse> }

/**
 * Returns a function like `rpc.call` whose concurrent requests share one batch. A request without a usable response in
 * the batch is sent by itself.
 */
export function createRequestBatcher(
  rpc: Pick<RpcTransport, 'call' | 'batch' | 'preferred'>,
): <Result>(request: RpcRequest<Result>) => Promise<RpcResponse<Result>> {
  const add = createBatcher<WaitingCall>(callAll, MAX_CALLS_PER_BATCH)

  async function callAll(waiting: WaitingCall[]): Promise<void> {
    const responses = await batchOf(waiting.map(({ request }) => request))
    await Promise.all(
      waiting.map(({ request, response }, index) => {
        const received = responses[index]
        if (received && !(received.error && isNodeFault(received.error))) return response.resolve(received)
        return rpc.call(request).then(response.resolve, response.reject)
      }),
    )
  }

  async function batchOf(requests: readonly RpcRequest[]): Promise<readonly RpcResponse[]> {
    if (requests.length === 1 || !rpc.preferred()?.acceptsBatches) return []
    return rpc.batch(requests).catch(() => [])
  }

  return <Result>(request: RpcRequest<Result>) => {
    const response = Promise.withResolvers<RpcResponse>()
    add({ request, response })
    return response.promise as Promise<RpcResponse<Result>>
  }
}
