import { getAddress } from 'viem'
import { z } from 'zod'
import { ofRevert } from '../chain/reverts.ts'
import type { Transaction } from '../chain/transactions.ts'
import { addressOut, digits, hashOut, unixSeconds } from './primitives.ts'

export const transactionStatus = z
  .object({
    transactionHash: hashOut,
    status: z
      .enum(['pending', 'success', 'reverted'])
      .meta({ description: 'Nothing is known of a block while pending' }),
    blockNumber: digits('Block that it was mined in').optional(),
    blockTimestamp: unixSeconds('Time of that block').optional(),
    confirmations: digits('Blocks from its own to the newest; 1 when newest').optional(),
    from: addressOut,
    to: addressOut.nullable().meta({ description: 'Null for a contract creation' }),
    error: z
      .object({ code: z.string(), message: z.string() })
      .optional()
      .meta({ description: 'Why it reverted, as the refusal of the contracts' }),
    replacedBy: hashOut.optional().meta({ description: 'The transaction that the executor replaced it by' }),
  })
  .meta({ id: 'TransactionStatus' })

export function presentTransaction({
  hash,
  from,
  to,
  block,
  revertData,
}: Transaction): z.input<typeof transactionStatus> {
  const parties = { from: getAddress(from), to: to && getAddress(to) }
  if (block === undefined) return { transactionHash: hash, status: 'pending', ...parties }
  const refusal = block.success ? undefined : ofRevert(revertData)
  return {
    transactionHash: hash,
    status: block.success ? 'success' : 'reverted',
    blockNumber: `${block.number}`,
    blockTimestamp: `${block.timestamp}`,
    confirmations: `${block.confirmations}`,
    ...parties,
    ...(refusal && { error: { code: refusal.body.code, message: refusal.body.error } }),
  }
}
