import type { RpcResponse } from './endpoint-client.ts'
import { isNodeFault } from './node-errors.ts'
import type { RpcRequest } from './requests.ts'
import type { RpcTransport } from './transport.ts'

/** A stage that is busy for longer takes the next batch anyway, so that a slow node does not delay it. */
const MAX_WAIT_MS = 10

/**
 * Returns a function that hands items to `work` in batches (group commit). An idle stage takes all waiting items at
 * once; while it works, further items collect. `work` gets at most `maxItems`, resolves when the stage is idle again
 * and must not throw.
 */
export function createBatcher<Item>(work: (items: Item[]) => Promise<void>, maxItems: number): (item: Item) => void {
  let waiting: Item[] = []
  let inProgress = 0
  let isScheduled = false
  let timer: ReturnType<typeof setTimeout> | undefined

  function flush() {
    isScheduled = false
    clearTimeout(timer)
    timer = undefined
    while (waiting.length > 0) {
      const batch = waiting.slice(0, maxItems)
      waiting = waiting.slice(maxItems)
      inProgress++
      void work(batch).finally(() => {
        inProgress--
        if (inProgress === 0) flush()
      })
    }
  }

  return item => {
    waiting.push(item)
    if (inProgress > 0) {
      timer ??= setTimeout(flush, MAX_WAIT_MS)
      return
    }
    // Items of the same turn of the event loop share a batch.
    if (!isScheduled) queueMicrotask(flush)
    isScheduled = true
  }
}

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
