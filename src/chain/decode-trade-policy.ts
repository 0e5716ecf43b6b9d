import type { TradePolicy } from '@agent-trading-service/protocol/trade-policy'
import { tradePolicyAbi } from '../../contracts-abi/trade-policy.ts'
import { type CallResult, tryDecodeResult } from './encode-and-decode-call.ts'

/** Returns the trade policy of a vault and track from the result of `limitsOf`; undefined without the extension. */
export function decodeTradePolicy(result: CallResult): TradePolicy | undefined {
  const limits = tryDecodeResult(tradePolicyAbi, 'limitsOf', result)
  return (
    limits && {
      maxEntrySlippageBps: BigInt(limits.maxEntrySlippageBps),
      maxExitSlippageBps: BigInt(limits.maxExitSlippageBps),
      exitSlippageStartBps: BigInt(limits.exitSlippageStartBps),
      exitWideningSeconds: BigInt(limits.exitWideningSeconds),
      minTradeUsdc: limits.minTradeUsdc,
      maxSpotDeviationBps: BigInt(limits.maxSpotDeviationBps),
      maxTwapDeviationBps: BigInt(limits.maxTwapDeviationBps),
      twapWindow: BigInt(limits.twapWindow),
      maxDeadlineSeconds: BigInt(limits.maxDeadlineSeconds),
    }
  )
}
