import { type Address, type Hex, hexToBigInt } from 'viem'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { eventTopic } from '../protocol/decode-event.ts'
import { getLogs } from '../rpc/get-logs.ts'
import type { TradingChain } from './configured-chain.ts'

/** Events of the position manager that change what decides about exits; their first topic is the position. */
const POSITION_TOPICS = (
  [
    'PositionOpened',
    'PositionIncreased',
    'PositionReduced',
    'PositionLadderExitApplied',
    'PositionLadderExitPartlyApplied',
    'PositionExitLadderUpdated',
    'PositionExitDue',
    'PositionClosed',
  ] as const
).map(name => eventTopic(positionManagerAbi, name))

/** Events of OwnerControls after which all positions of an agent are sold, or no longer; their first topic is the agent. */
const AGENT_TOPICS = (['CloseAllStarted', 'CloseAllEnded'] as const).map(name => eventTopic(ownerControlsAbi, name))

/** Returns the positions that events of a range of blocks name, and the agents whose positions they change. Throws CHAIN_UNREACHABLE. */
export async function readChangedPositions(
  { rpc, trading }: TradingChain,
  { ownerControls, ...range }: { ownerControls: Address | undefined; fromBlock: bigint; toBlock: bigint },
): Promise<{ positionIds: Set<bigint>; agentIds: Set<bigint> }> {
  const addresses = ownerControls === undefined ? [trading.PositionManager] : [trading.PositionManager, ownerControls]
  const logs = await getLogs(rpc, { address: addresses, topics: [[...POSITION_TOPICS, ...AGENT_TOPICS]] }, range)
  const idsOf = (topics: readonly Hex[]) =>
    new Set(logs.filter(log => topics.includes(log.topics[0] ?? '0x')).map(log => hexToBigInt(log.topics[1] ?? '0x0')))
  return { positionIds: idsOf(POSITION_TOPICS), agentIds: idsOf(AGENT_TOPICS) }
}
