import { type Order, OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import type { AgentRecord } from '../chain/agent-record.ts'
import type { Block } from '../chain/configured-chain.ts'
import { type GasSpend, TYPICAL_GAS } from '../executor/gas-budgets.ts'
import { requestingAgent } from '../executor/requester.ts'

/** The gas of one peak, one ended order and one exit in a batch. */
const RAISE_GAS = 60_000
const END_GAS = 20_000
const EXIT_GAS = 250_000
const KIND_OF_SIDE = { [OrderSide.Open]: 'open', [OrderSide.Add]: 'add', [OrderSide.Reduce]: 'reduce' } as const
const WHOLE = 10_000

/**
 * Returns what the keeper spends to execute the next part of an order or to raise its peak, and the budgets that pay for it: those of
 * the same intent, signed at that moment. One signature may cause a hundred transactions, so nothing else bounds what an agent costs.
 */
export function gasSpendOf(
  { agentId, side, exitBps, parts }: Order,
  { step, agent, block }: { step: 'execute' | 'raise'; agent: AgentRecord; block: Block },
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
    gas: step === 'raise' ? RAISE_GAS : (TYPICAL_GAS[kind] as number),
  }
}

/**
 * Returns the charge for an order that the keeper has ended or an exit that it has fired. Neither waits for a budget; both delay the
 * agent's next purchases, because a ladder may fire five times for one purchase.
 */
export const chargedAfterwards = (agentId: bigint, action: 'end' | 'exit'): GasSpend => ({
  use: { kind: 'exit', by: { as: 'keeper', agent: { id: agentId } } },
  gas: action === 'end' ? END_GAS : EXIT_GAS,
})
