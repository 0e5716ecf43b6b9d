import { z } from 'zod'
import { findTransaction } from '../chain/find-transaction.ts'
import { refuse } from '../errors/refuse.ts'
import { txHash } from '../resources/primitives.ts'
import { presentPending, presentTransaction, transactionStatus } from '../resources/transaction.ts'
import { defineOperation } from './define-operation.ts'

export const getTransaction = defineOperation(
  {
    id: 'getTransaction',
    tool: {
      name: 'svc_get_transaction',
      description:
        'Tells whether a transaction is pending, succeeded or reverted, and why; follow replacedBy. Example: {"txHash":"0x…"}',
    },
    method: 'get',
    path: '/transactions/{txHash}',
    tag: 'Transactions',
    summary: 'Get the status of a transaction',
    description:
      'Tells whether a transaction is pending, succeeded or reverted, and why it reverted. A transaction that the executor replaced stays pending and names its successor in `replacedBy`. A transaction that the executor signed is pending even while no node knows it.',
    params: z.object({ txHash }),
    cache: 'none',
    status: 200,
    output: transactionStatus,
    errors: [404, 502],
  },
  async ({ chain, journals }, { txHash }) => {
    const found = await findTransaction(chain, txHash)
    if (found?.block) return presentTransaction(found, found.block)
    const sent = await journals.findTransaction(txHash).catch(error => {
      throw refuse('EXECUTOR_UNREACHABLE', { txHash }, { cause: error })
    })
    if (found) return presentPending({ ...found, replacedBy: sent?.replacedBy })
    // A journalled transaction that can no longer be mined and has no successor is unknown to the caller.
    if (!sent?.isPending && sent?.replacedBy === undefined) throw refuse('TRANSACTION_NOT_FOUND', { txHash })
    return presentPending(sent)
  },
)
