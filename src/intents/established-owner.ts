import { allocationManager } from '../chain/contracts.ts'
import { call, optional, readTree } from '../chain/read-tree.ts'
import type { Context } from '../context.ts'
import type { GasShortage, Requester } from '../executor/relay-types.ts'

/**
 * What an owner must have locked for an agent for it not to count as new, in USDC base units: more than a crowd of
 * agents would lock.
 */
const MIN_LOCKED_USDC = 100_000_000n

/**
 * Returns a request by an agent that does not count as new although it is, if it was refused only because of others:
 * its owner had another agent a day ago, or has locked shares for this one. Undefined otherwise. Read only then: most
 * agents find room.
 */
export async function asEstablished<Request extends { by: Requester }>(
  context: Context,
  request: Request,
  shortage: GasShortage | undefined,
): Promise<Request | undefined> {
  const { by } = request
  if (shortage?.budget !== 'newAgents' || by.as === 'keeper' || !('agent' in by)) return undefined
  const { id, owner } = by.agent
  // Without the index, an agent that is new counts as new.
  const hadAgent = await context.history.hadAgentBefore(owner).catch(() => false)
  if (!hadAgent && !(await hasLockedShares(context, id))) return undefined
  return { ...request, by: { ...by, agent: { ...by.agent, isNew: false } } }
}

async function hasLockedShares({ trading }: Context, agentId: bigint): Promise<boolean> {
  const { values } = await readTree(trading, {
    firstLoss: optional(call(allocationManager(trading), 'firstLossOf', [agentId])),
  })
  const [, , valueUsdc = 0n] = values.firstLoss ?? []
  return valueUsdc >= MIN_LOCKED_USDC
}
