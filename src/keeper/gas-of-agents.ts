import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { type Order, OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import type { AgentRecord } from '../chain/agent-record.ts'
import type { Block, TradingChain } from '../chain/configured-chain.ts'
import { allocationManager, positionManager } from '../chain/contracts.ts'
import { call, optional } from '../chain/read-tree.ts'
import { type GasSpend, TYPICAL_GAS } from '../executor/gas-budgets.ts'
import { requestingAgent } from '../executor/requester.ts'

/** The gas of one peak or record, one ended order and one exit in a batch. */
const NOTE_GAS = 60_000
const END_GAS = 20_000
const EXIT_GAS = 250_000
const KIND_OF_SIDE = { [OrderSide.Open]: 'open', [OrderSide.Add]: 'add', [OrderSide.Reduce]: 'reduce' } as const
const WHOLE = 10_000

/**
 * A trade on paper reads the prices of all positions that the agent has open on paper; each costs this much, as
 * measured.
 */
const PAPER_POSITION_GAS = 16_000

/**
 * Returns what the keeper spends to execute the next part of an order, to raise its peak or to record it as due, and
 * the budgets that pay for it: those of the same intent, signed at that moment. One signature may cause a hundred
 * transactions, so nothing else bounds what an agent costs.
 */
export function gasSpendOf(
  { agentId, side, exitBps, parts }: Order,
  {
    step,
    agent,
    block,
    paperPositions,
  }: { step: 'execute' | 'raise' | 'record'; agent: AgentRecord; block: Block; paperPositions: number },
): GasSpend {
  const kind = KIND_OF_SIDE[side as keyof typeof KIND_OF_SIDE]
  const protects = side === OrderSide.Reduce
  const closesPosition = step === 'execute' && protects && exitBps === WHOLE && parts === 1
  return {
    use: {
      kind,
      by: { as: 'signer', agent: requestingAgent(agentId, agent, block), account: agent.signer },
      protects,
      closesPosition,
    },
    gas: step === 'execute' ? (TYPICAL_GAS[kind] as number) + paperPositions * PAPER_POSITION_GAS : NOTE_GAS,
  }
}

/**
 * Returns the charge for an order that the keeper has ended or an exit that it has fired. Neither waits for a budget;
 * both delay the agent's next purchases, because a ladder may fire five times for one purchase.
 */
export const chargedAfterwards = (agentId: bigint, action: 'end' | 'exit', paperPositions = 0): GasSpend => ({
  use: { kind: 'exit', by: { as: 'keeper', agent: { id: agentId } } },
  gas: action === 'end' ? END_GAS : EXIT_GAS + paperPositions * PAPER_POSITION_GAS,
})

/** Returns the reads that say how many positions on paper an agent has open. */
export const paperReads = (chain: TradingChain, agentId: bigint) => ({
  openCount: call(positionManager(chain), 'openPositionCountByAgent', [agentId]),
  capitalMode: optional(call(allocationManager(chain), 'capitalModeOf', [agentId])),
})

/** Returns how many positions on paper an agent has open, from `paperReads`. */
export const paperPositionsIn = ({ openCount, capitalMode }: { openCount: bigint; capitalMode: number | undefined }) =>
  capitalMode === CapitalMode.Simulated ? Number(openCount) : 0
