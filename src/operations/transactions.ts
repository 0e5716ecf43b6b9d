import { z } from 'zod'
import { getTransaction as readTransaction } from '../chain/transactions.ts'
import { txHash } from '../resources/primitives.ts'
import { presentTransaction, transactionStatus } from '../resources/transaction.ts'
import { defineOperation } from './operation.ts'

export const getTransaction = defineOperation(
  {
    id: 'getTransaction',
    tool: 'svc_get_transaction',
    method: 'get',
    path: '/transactions/{txHash}',
    tag: 'Transactions',
    summary: 'Status of a transaction',
    description: 'Whether a transaction is pending, succeeded or reverted, and why.',
    params: z.object({ txHash }),
    status: 200,
    output: transactionStatus,
    errors: [400, 404, 500, 502],
  },
  async ({ chain }, { txHash }) => presentTransaction(await readTransaction(chain, txHash)),
)
