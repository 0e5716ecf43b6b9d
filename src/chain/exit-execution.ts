import { type Address, type Hex, numberToHex } from 'viem'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { eventTopic } from '../protocol/decode-event.ts'
import { decodeExit, type ExecutedExit } from '../protocol/exit-results.ts'
import { type ExitVerdict, verdictOfRevert, verdictOfStatus } from '../protocol/exit-verdict.ts'
import { getLogs } from '../rpc/get-logs.ts'
import type { TradingChain } from './chain.ts'
import { tradeRouter } from './contracts.ts'
import { encodeCall } from './function-call.ts'
import { attempt, call, readTree } from './read-tree.ts'

/** Returns what the router would do with each position now, from one `eth_call`. Throws CHAIN_UNREACHABLE. */
export async function simulateExits(
  chain: TradingChain,
  positionIds: readonly bigint[],
  takesBatches: boolean,
): Promise<ExitVerdict[]> {
  if (!takesBatches) {
    const { values } = await readTree(
      chain,
      positionIds.map(id => attempt(call(tradeRouter(chain), 'executeExit', [id]))),
    )
    return values.map(({ revertData }) =>
      revertData === undefined ? { status: 'executed', revertData } : verdictOfRevert(revertData),
    )
  }
  const { values: batch } = await readTree(chain, attempt(call(tradeRouter(chain), 'executeExits', [positionIds])))
  if (batch.value === undefined) return positionIds.map(() => ({ status: 'failed', revertData: batch.revertData }))
  const [statuses, reasons] = batch.value
  return positionIds.map((_, index) => verdictOfStatus(statuses[index], reasons[index]))
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

const EXIT_EXECUTED = eventTopic(tradeRouterAbi, 'ExitExecuted')

/** Returns the exits of positions in a range of blocks, oldest first, by any keeper. Throws CHAIN_UNREACHABLE. */
export async function findExits(
  { rpc, trading }: TradingChain,
  { positionIds, ...range }: { positionIds: readonly bigint[]; fromBlock: bigint; toBlock: bigint },
): Promise<(ExecutedExit & { positionId: bigint; keeper: Address; transactionHash: Hex })[]> {
  const topics = [EXIT_EXECUTED, positionIds.map(id => numberToHex(id, { size: 32 }))]
  const logs = await getLogs(rpc, { address: trading.TradeRouter, topics }, range)
  return logs.flatMap(log => {
    const exit = decodeExit(log)
    return exit ? [{ ...exit, transactionHash: log.transactionHash }] : []
  })
}
