import type { Hex } from 'viem'
import { traceRequest } from './requests.ts'
import type { RpcTransport } from './transport.ts'

/** Returns the revert data of a mined transaction from the node's trace; undefined when the node has no trace of it. */
export async function traceRevertData(rpc: RpcTransport, hash: Hex): Promise<Hex | undefined> {
  const response = await rpc.call(traceRequest(hash)).catch(() => undefined)
  const { failed, returnValue } = response?.result ?? {}
  if (failed !== true || returnValue === undefined) return undefined
  return returnValue.startsWith('0x') ? (returnValue as Hex) : `0x${returnValue}`
}
