import type { Hex } from 'viem'
import { isRevertData } from './endpoint-client.ts'
import { traceRequest } from './requests.ts'
import type { RpcTransport } from './transport.ts'

/** Returns the revert data of a mined transaction from the node's trace; undefined when the node has no trace of it. */
export async function traceRevertData(rpc: RpcTransport, hash: Hex): Promise<Hex | undefined> {
  const response = await rpc.call(traceRequest(hash)).catch(() => undefined)
  const { failed, returnValue } = response?.result ?? {}
  if (failed !== true || returnValue === undefined) return undefined
  const data = returnValue.startsWith('0x') ? returnValue : `0x${returnValue}`
  return isRevertData(data) ? data : undefined
}
