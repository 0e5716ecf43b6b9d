import {
  type DecodedExitStatus,
  decodeExitRevert,
  decodeExitStatus,
} from '@agent-trading-service/protocol/decode-execute-exits-result'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import type { TradingChain } from './configured-chain.ts'
import { tradeRouter } from './contracts.ts'
import { encodeCall } from './encode-and-decode-call.ts'
import { attempt, call, readTree } from './read-tree.ts'

/** Returns what the router would do with each position now, from one `eth_call`. Throws CHAIN_UNREACHABLE. */
export async function simulateExits(
  chain: TradingChain,
  positionIds: readonly bigint[],
  takesBatches: boolean,
): Promise<DecodedExitStatus[]> {
  if (!takesBatches) {
    const { values } = await readTree(
      chain,
      positionIds.map(id => attempt(call(tradeRouter(chain), 'executeExit', [id]))),
    )
    return values.map(({ revertData }) =>
      revertData === undefined ? { status: 'executed', revertData } : decodeExitRevert(revertData),
    )
  }
  const { values: batch } = await readTree(chain, attempt(call(tradeRouter(chain), 'executeExits', [positionIds])))
  if (batch.value === undefined) return positionIds.map(() => ({ status: 'failed', revertData: batch.revertData }))
  const [statuses, reasons] = batch.value
  return positionIds.map((_, index) => decodeExitStatus(statuses[index], reasons[index]))
}

/** Returns the call that executes exits: the batch, or the single exit if the router does not support batches. */
export function exitCall({ trading }: TradingChain, positionIds: readonly bigint[], takesBatches: boolean) {
  const [first] = positionIds
  if (first === undefined) throw new Error('An exit call needs a position')
  const data = takesBatches
    ? encodeCall(tradeRouterAbi, 'executeExits', [positionIds])
    : encodeCall(tradeRouterAbi, 'executeExit', [first])
  return { to: trading.TradeRouter, data }
}
