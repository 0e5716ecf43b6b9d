import { eventTopic } from '@agent-trading-service/protocol/decode-event'
import { decodeExit, type ExecutedExit } from '@agent-trading-service/protocol/exit-results'
import { type Address, type Hex, numberToHex } from 'viem'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { getLogs } from '../rpc/logs.ts'
import type { TradingChain } from './configured-chain.ts'

const EXIT_TOPICS = [eventTopic(tradeRouterAbi, 'ExitExecuted'), eventTopic(tradeRouterAbi, 'OwnerCloseExecuted')]

/** Returns the completed exits of positions in a range of blocks, oldest first, by any keeper. Throws CHAIN_UNREACHABLE. */
export async function readExecutedExits(
  { rpc, trading }: TradingChain,
  { positionIds, ...range }: { positionIds: readonly bigint[]; fromBlock: bigint; toBlock: bigint },
): Promise<(ExecutedExit & { positionId: bigint; keeper: Address; transactionHash: Hex })[]> {
  const topics = [EXIT_TOPICS, positionIds.map(id => numberToHex(id, { size: 32 }))]
  const logs = await getLogs(rpc, { address: trading.TradeRouter, topics }, range)
  return logs.flatMap(log => {
    const exit = decodeExit(log)
    return exit ? [{ ...exit, transactionHash: log.transactionHash }] : []
  })
}
