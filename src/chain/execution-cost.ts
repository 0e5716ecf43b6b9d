import type { ExecutionCost } from '@agent-trading-service/protocol/check'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import { type CallResult, tryDecodeResult } from './encode-and-decode-call.ts'

const BPS = 10_000n

/** Decodes an agent's execution cost with the budgets of its track; zeros in a deployment that does not count it. */
export function decodeExecutionCost(
  { executionCost, riskTerms }: { executionCost: CallResult; riskTerms: CallResult },
  cap: bigint,
): ExecutionCost {
  const [todayUsdc, onTrackUsdc] = tryDecodeResult(allocationManagerAbi, 'executionCostOf', executionCost) ?? [0n, 0n]
  const terms = tryDecodeResult(vaultTrackRegistryAbi, 'riskTermsOf', riskTerms)
  const budget = (bps = 0) => (bps === 0 ? undefined : (cap * BigInt(bps)) / BPS)
  return {
    todayUsdc,
    maxTodayUsdc: budget(terms?.maxDailyCostBps),
    onTrackUsdc,
    maxOnTrackUsdc: budget(terms?.maxTrackCostBps),
  }
}
