import type { RpcResponse } from './endpoint-client.ts'
import { isBlockLost } from './node-errors.ts'
import type { RpcRequest } from './requests.ts'

const MAX_ATTEMPTS = 3

/**
 * Retries a request if the node lost the newest block while reading it. anvil with `--prune-history` resolves `latest`
 * to a number first, and a block mined at that moment removes that number's state; behind a load balancer one node may
 * not have seen the block that another reported. A request for a numbered block is not repeated.
 */
export async function retryLatest<Result>(
  request: RpcRequest<Result>,
  send: () => Promise<RpcResponse<Result>>,
): Promise<RpcResponse<Result>> {
  for (let attempt = 1; ; attempt++) {
    const response = await send()
    const isLost = response.error !== undefined && isBlockLost(response.error)
    if (!isLost || !readsLatest(request) || attempt === MAX_ATTEMPTS) return response
  }
}

// A method with a single parameter, such as eth_estimateGas, reads the newest block.
const readsLatest = ({ params }: RpcRequest) => params.includes('latest') || params.length === 1
