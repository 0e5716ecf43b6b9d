import { z } from 'zod'
import type { ChainContext } from '../chain/chain-context.ts'
import { mandateVault } from '../chain/contracts.ts'
import { call, readTree } from '../chain/read-tree.ts'
import { getRisk } from '../chain/risk-state.ts'
import type { Context } from '../context.ts'
import { quoteOwnerMessage, relayOwnerMessage } from '../intents/owner-message.ts'
import { signedFields } from '../resources/intent-input.ts'
import { ownerMessageQuote } from '../resources/owner-message.ts'
import { deadline, uint } from '../resources/primitives.ts'
import { typedDataSchemas } from '../resources/typed-data.ts'
import { defineOperation } from './define-operation.ts'
import { ownerQuote, ownerSubmission } from './owner-operations.ts'

const shares = uint.meta({
  description: "Vault shares (12 decimals) that pay the agent's losses; 0 frees them",
  example: '7000000000000000',
})

const submission = z.object({ shares, ...signedFields })

export const getFirstLossQuote = defineOperation(
  {
    id: 'getFirstLossQuote',
    tool: {
      name: 'svc_get_first_loss_quote',
      description:
        "First step of locking an owner's vault shares, by default as many as the next track requires. The owner signs typedData; then call svc_lock_first_loss.",
    },
    ...ownerQuote,
    path: '/agents/{agentId}/first-loss/quote',
    summary: 'Get a quote for locking first-loss capital',
    description:
      "Returns what the owner's LockFirstLoss message must match, the typed data to sign, its digest and the body to post. Without `shares`, it names as many as the next track requires, and a hundredth more.",
    query: z.object({ shares: shares.optional(), deadline: deadline.optional() }),
    output: ownerMessageQuote('FirstLoss', typedDataSchemas.LockFirstLoss, submission),
  },
  async (context: Context, { agentId, shares: given, deadline }) => {
    const shares = given ?? (await requiredShares(context, agentId))
    return quoteOwnerMessage(context, {
      agentId,
      primaryType: 'LockFirstLoss',
      deadline,
      message: () => ({ message: { agentId, shares }, body: { shares: `${shares}` } }),
    })
  },
)

export const lockFirstLoss = defineOperation(
  {
    id: 'lockFirstLoss',
    tool: {
      name: 'svc_lock_first_loss',
      description:
        "Locks vault shares of the owner that pay the agent's losses on real capital. Before: svc_get_first_loss_quote.",
    },
    ...ownerSubmission,
    path: '/agents/{agentId}/first-loss',
    summary: 'Lock first-loss capital',
    description:
      "Verifies a LockFirstLoss message signed by the agent's owner and relays it. Realized losses of the agent on its track are paid from these shares before depositors bear any. Fewer shares than before are refused while the agent has real capital, except 0 once it holds no position: that gives its allocation back. Shares that are freed begin a new holding time.",
    body: submission,
  },
  async (context: Context, { agentId, shares, ...signed }, call) =>
    relayOwnerMessage(context, call, {
      ...signed,
      agentId,
      primaryType: 'LockFirstLoss',
      content: () => ({ message: { agentId, shares }, args: [agentId, shares] }),
    }),
)

/**
 * Returns the shares that the next track requires, with a hundredth more: the share price moves until the promotion.
 */
async function requiredShares({ trading }: ChainContext, agentId: bigint): Promise<bigint> {
  const { risk } = await getRisk(trading, agentId)
  const required = risk.promotion?.requiredFirstLossUsdc ?? 0n
  const { values } = await readTree(trading, {
    shares: call(mandateVault(risk.agent.vault), 'convertToShares', [(required * 101n) / 100n]),
  })
  return values.shares
}
