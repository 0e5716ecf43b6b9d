import { z } from 'zod'
import { digits, hashOut } from './primitives.ts'

/** The response to a relayed trading intent. */
export const intentReceipt = z
  .object({
    agentId: digits('Agent id'),
    positionId: digits("Position id, from the transaction's event"),
    transactionHash: hashOut,
    blockNumber: digits('Block that includes the transaction'),
    warnings: z.array(z.string()).optional(),
  })
  .meta({ id: 'IntentReceipt' })
