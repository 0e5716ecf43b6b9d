import type { Address } from 'viem'
import type { AgentRecord } from '../chain/agent-record.ts'
import type { Block } from '../chain/configured-chain.ts'
import { nowAt } from '../clock.ts'
import type { IntentKind, Requester, RequestingAgent } from './relay-types.ts'

/** What a request's budgets, turn and counters derive from. */
type Requested = { kind: IntentKind; by: Requester }

type GasSpender =
  | `agent:${string}`
  | `payer:${string}`
  /** Agents that are less than a day old share one budget. */
  | 'newAgents'
  | 'registrations'
  /** Contracts share one budget for the gas of transactions that revert. */
  | 'contractReverts'

const NEW_AGENT_SECONDS = 86_400n

/** Returns an agent as its budgets see it at a block. */
export const requestingAgent = (
  id: bigint,
  { owner, createdAt }: Pick<AgentRecord, 'owner' | 'createdAt'>,
  block: Block,
): RequestingAgent => ({ id, owner, isNew: nowAt(block) - createdAt < NEW_AGENT_SECONDS })

/**
 * Returns who causes a request and costs something to become, such as `agent:7`. It chooses the lane, so that one lane
 * counts everything that an agent causes, and is the member of the shared gas budgets.
 */
export function principalOf(by: Requester): string {
  if (by.as === 'service') return by.task
  if ('agent' in by) return `agent:${by.agent.id}`
  return `${by.as === 'payer' ? 'payment' : 'signer'}:${by.account}`
}

/** Returns whose reverts and exit reserve a request uses: `agent:7` for its signer, `agent:7 owner` for its owner. */
export const partyOf = (by: Requester): string =>
  by.as === 'owner' || by.as === 'newOwner' ? `${principalOf(by)} ${by.as}` : principalOf(by)

/**
 * Returns whose nonces a request uses, such as `agent:12` or `signer:0x…`. The requests of one group are relayed in
 * order.
 */
export function groupOf({ kind, by }: Requested): string {
  if (by.as !== 'owner' && by.as !== 'newOwner') return principalOf(by)
  return `${kind === 'link' ? 'signer' : 'owner'}:${by.account}`
}

/** Returns the agent whose nonces a group uses; undefined for others. */
export const agentOfGroup = (group: string): bigint | undefined => {
  const [, id] = /^agent:(\d{1,78})$/.exec(group) ?? []
  return id === undefined ? undefined : BigInt(id)
}

/** Returns the account that signed; undefined for the service's own requests. */
export const signerOf = (by: Requester): Address | undefined => ('account' in by ? by.account : undefined)

/** Returns the budgets that a request uses in addition to the lane's; see gas-budgets.ts. */
export function spendersOf(by: Requester): GasSpender[] {
  const reverts = 'isContract' in by && by.isContract ? (['contractReverts'] as const) : []
  switch (by.as) {
    case 'service':
      return []
    case 'keeper':
      return [`agent:${by.agent.id}`]
    case 'payer':
      return [`payer:${by.account}`, ...reverts]
    case 'registrant':
      return ['registrations', ...reverts]
    default: {
      const { id, isNew } = by.agent
      return [`agent:${id}`, ...(isNew ? (['newAgents'] as const) : []), ...reverts]
    }
  }
}

/** Whether a contract that signed decides what a request's transaction costs and whether it succeeds. */
export const runsStrangersCode = ({ kind, spenders }: { kind: IntentKind; spenders: readonly string[] }): boolean =>
  kind === 'settle' || spenders.includes('contractReverts')
