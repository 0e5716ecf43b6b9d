import { type Client, createClient, custom } from 'viem'
import { isData } from './json-type-guards.ts'
import { redact } from './node-errors.ts'
import { aboutStrangers } from './requests.ts'
import type { RpcTransport } from './transport.ts'

/**
 * Returns a viem client over a transport, for viem's actions that read data: `readContract`, `getCode`. Its errors have
 * the node's code and revert data, and a redacted message. What it calls may be a stranger's contract.
 */
export function createViemClient(rpc: RpcTransport): Client {
  async function request({ method, params = [] }: { method: string; params?: readonly unknown[] }): Promise<unknown> {
    const { result, error } = await rpc.call(aboutStrangers({ method, params, isResult: isData }))
    if (error === undefined) return result
    const { code, message, data } = error
    throw Object.assign(new Error(redact(message)), { code, data })
  }
  return createClient({ transport: custom({ request }, { retryCount: 0 }), cacheTime: 0 })
}
