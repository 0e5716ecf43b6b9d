import { getAddress, type Hex } from 'viem'
import { z } from 'zod'
import { refusalOfRevert } from '../chain/contract-error-refusals.ts'
import type { Transaction } from '../chain/find-transaction.ts'
import { addressOut, digits, hashOut, unixSeconds } from './primitives.ts'

export const transactionStatus = z
  .object({
    transactionHash: hashOut,
    status: z.enum(['pending', 'success', 'reverted']).meta({ description: 'pending: not in a block yet' }),
    blockNumber: digits('Block that includes it').optional(),
    blockTimestamp: unixSeconds('Timestamp of that block').optional(),
    confirmations: digits('Blocks from its own to the newest, inclusive').optional(),
    from: addressOut,
    to: addressOut.nullable().meta({ description: 'Null for a contract creation' }),
    error: z
      .object({ code: z.string(), message: z.string() })
      .optional()
      .meta({ description: 'The decoded contract error; only if reverted' }),
    replacedBy: hashOut.optional().meta({ description: 'The transaction that replaced this one, which stays pending' }),
  })
  .meta({ id: 'TransactionStatus' })

/** Presents a transaction that is not in a block. */
export const presentPending = ({
  hash,
  from,
  to,
  replacedBy,
}: Pick<Transaction, 'hash' | 'from' | 'to'> & { replacedBy?: Hex | undefined }): z.input<
  typeof transactionStatus
> => ({
  transactionHash: hash,
  status: 'pending',
  ...presentParties({ from, to }),
  ...(replacedBy !== undefined && { replacedBy }),
})

const presentParties = ({ from, to }: Pick<Transaction, 'from' | 'to'>) => ({
  from: getAddress(from),
  to: to && getAddress(to),
})

/** Presents a transaction that is in a block. */
export function presentTransaction(
  { hash, from, to, revertData }: Transaction,
  block: NonNullable<Transaction['block']>,
): z.input<typeof transactionStatus> {
  const refusal = block.success ? undefined : refusalOfRevert(revertData)
  return {
    transactionHash: hash,
    status: block.success ? 'success' : 'reverted',
    blockNumber: `${block.number}`,
    blockTimestamp: `${block.timestamp}`,
    confirmations: `${block.confirmations}`,
    ...presentParties({ from, to }),
    ...(refusal && { error: { code: refusal.body.code, message: refusal.body.error } }),
  }
}
