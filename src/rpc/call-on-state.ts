import type { RpcResponse } from './endpoint-client.ts'
import { isCallFailure } from './node-errors.ts'
import type { CallState, RpcRequest } from './requests.ts'

/**
 * Makes a call on a state. A node that cannot replace the block's time gets the call on its pending block, and if it
 * has none, on the block itself. Throws like `call`.
 */
export async function callOnState<Result>(
  call: (request: RpcRequest<Result>) => Promise<RpcResponse<Result>>,
  state: CallState,
  requestAt: (state: CallState) => RpcRequest<Result>,
): Promise<RpcResponse<Result>> {
  const states: CallState[] = [{ block: state.block }]
  if (state.time !== undefined) states.unshift(state, { block: 'pending' })
  for (const next of states) {
    const response = await call(requestAt(next)).catch(error => {
      if (next.block === 'pending') return undefined // some nodes call it unavailable, like a fault
      throw error
    })
    if (response === undefined) continue
    if (response.error === undefined || isCallFailure(response.error) || next === states.at(-1)) return response
  }
  throw new Error('A call has no state')
}
