import type { Waste } from '@agent-trading-service/protocol/check'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { type CallResult, tryDecodeResult } from './encode-and-decode-call.ts'

/** Decodes what of an agent's waste counts; none in a deployment that does not count it. */
export function decodeWaste(result: CallResult): Waste {
  const [usdc, maxUsdc, endsAt] = tryDecodeResult(allocationManagerAbi, 'wasteOf', result) ?? [0n, 0n, 0n]
  return { usdc, maxUsdc, endsAt }
}
