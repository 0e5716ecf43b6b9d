import { eventTopic } from '@agent-trading-service/protocol/decode-event'
import { type Address, type Hex, hexToBigInt } from 'viem'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { getLogs } from '../rpc/logs.ts'
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

/** A position, or an agent with all of its positions, that an event of a block changes. */
export type PositionChange = { kind: 'position' | 'agent'; id: bigint; blockNumber: bigint; blockHash: Hex }

/** Returns what the events of a range of blocks change. Throws CHAIN_UNREACHABLE. */
export async function readChangedPositions(
  { rpc, trading }: TradingChain,
  { ownerControls, ...range }: { ownerControls: Address | undefined; fromBlock: bigint; toBlock: bigint },
): Promise<PositionChange[]> {
  const addresses = ownerControls === undefined ? [trading.PositionManager] : [trading.PositionManager, ownerControls]
  const logs = await getLogs(rpc, { address: addresses, topics: [[...POSITION_TOPICS, ...AGENT_TOPICS]] }, range)
  return logs.map(({ topics: [topic = '0x', id = '0x0'], blockNumber, blockHash }) => ({
    kind: AGENT_TOPICS.includes(topic) ? 'agent' : 'position',
    id: hexToBigInt(id),
    blockNumber,
    blockHash,
  }))
}
