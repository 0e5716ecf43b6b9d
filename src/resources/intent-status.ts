import { z } from 'zod'
import { addressOut, deadlineOut, digits, hashOut, txHash, unixSeconds } from './primitives.ts'

/** The kinds of relayed calls that a user signed, as opposed to the service's own transactions. */
export const signedKinds = ['open', 'add', 'reduce', 'ladder', 'register', 'link', 'owner'] as const

export const digest = txHash.meta({
  description: 'EIP-712 digest of the signed message, as returned by the quote',
  example: `0x${'4d'.repeat(32)}`,
})

const attempt = z
  .object({
    transactionHash: hashOut,
    nonce: z.int().meta({ description: "Nonce of the executor's account" }),
    purpose: z.enum(['call', 'cancel']).meta({
      description: 'cancel: a zero-value transfer that takes the nonce, so that the call cannot be mined any more',
    }),
    state: z.enum(['pending', 'mined', 'reverted', 'replaced']).meta({
      description: 'At most one transaction per nonce is ever mined; the others are replaced',
    }),
    sentAt: unixSeconds("When it was signed and first sent, by the service's clock"),
  })
  .meta({ id: 'Attempt', description: 'A transaction signed for the intent' })

export const intentStatus = z
  .object({
    digest: hashOut.meta({ description: 'EIP-712 digest' }),
    kind: z.enum(signedKinds),
    state: z.enum(['received', 'rejected', 'prepared', 'sent', 'mined', 'reverted', 'final']).meta({
      description:
        'received: being checked. rejected: nothing was executed, see refusal. prepared: signed and journalled. sent: a node accepted it. mined: executed. final: executed, and too deep for a reorg. reverted: mined without effect, see refusal',
    }),
    agentId: digits('For a registration, once mined').optional(),
    signer: addressOut
      .optional()
      .meta({ description: 'The account that signed it: a key, or a contract that accepted it' }),
    positionId: digits('Once mined').optional(),
    nonce: digits('The signed nonce'),
    deadline: deadlineOut('The signed deadline, capped at 2^52'),
    transactionHash: hashOut.optional().meta({ description: 'The attempt that was mined' }),
    blockNumber: digits('Block of that transaction').optional(),
    attempts: z.array(attempt).meta({ description: 'Oldest first' }),
    refusal: z
      .object({ code: z.string(), error: z.string(), remedy: z.string().optional() })
      .optional()
      .meta({ description: 'Why nothing was executed; only if rejected or reverted' }),
    createdAt: unixSeconds("When received, by the service's clock"),
    updatedAt: unixSeconds("When its state last changed, by the service's clock"),
  })
  .meta({ id: 'Intent' })
export type IntentStatus = z.input<typeof intentStatus>

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
