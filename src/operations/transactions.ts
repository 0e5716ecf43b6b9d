import { z } from 'zod'
import { findTransaction } from '../chain/transactions.ts'
import { refuse } from '../errors/catalogue.ts'
import { txHash } from '../resources/primitives.ts'
import { presentPending, presentTransaction, transactionStatus } from '../resources/transaction.ts'
import { defineOperation } from './define-operation.ts'

export const getTransaction = defineOperation(
  {
    id: 'getTransaction',
    tool: 'svc_get_transaction',
    method: 'get',
    path: '/transactions/{txHash}',
    tag: 'Transactions',
    summary: 'Status of a transaction',
    description:
      'Whether a transaction is pending, succeeded or reverted, and why. One that the executor has replaced stays pending and names its successor in `replacedBy`; one that it has signed is pending also while no node knows it.',
    params: z.object({ txHash }),
    status: 200,
    output: transactionStatus,
    errors: [400, 404, 500, 502],
  },
  async ({ chain, journals }, { txHash }) => {
    const found = await findTransaction(chain, txHash)
    if (found?.block) return presentTransaction(found, found.block)
    const sent = await journals.findTransaction(txHash).catch(error => {
      throw refuse('EXECUTOR_UNREACHABLE', { txHash }, { cause: error })
    })
    if (found) return presentPending({ ...found, replacedBy: sent?.replacedBy })
    // What can no longer be mined and has no successor is as if it had never been sent.
    if (!sent?.isPending && sent?.replacedBy === undefined) throw refuse('TRANSACTION_NOT_FOUND', { txHash })
    return presentPending(sent)
  },
)
