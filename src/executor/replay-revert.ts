import { type Address, type Hex, numberToHex } from 'viem'
import { callRequest } from '../rpc/requests.ts'
import { traceRevertData } from '../rpc/trace-revert-data.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import type { Attempt } from './attempt-table.ts'
import { ignoreUnreachable } from './background-errors.ts'
import type { Call } from './relay-types.ts'

/**
 * Returns the revert data of a mined call: replays it on the state before its block and on that of its block, and
 * traces it if it passes on both. Undefined if the node returns no revert data.
 */
export async function replayRevert(
  rpc: RpcTransport,
  { from, call, attempt, blockNumber }: { from: Address; call: Call; attempt: Attempt; blockNumber: number },
): Promise<Hex | undefined> {
  const parameters = { from, to: call.to, data: call.data, gas: numberToHex(attempt.gas) }
  for (const block of [blockNumber - 1, blockNumber]) {
    const response = await rpc.call(callRequest(parameters, block)).catch(ignoreUnreachable)
    if (response?.error?.data !== undefined) return response.error.data
  }
  return traceRevertData(rpc, attempt.hash)
}
