import { z } from 'zod'
import { addressOut, digits, hashOut, txHash, unixSeconds } from './primitives.ts'

/** What a signer asks for, by the kind under which it is relayed. */
export const signedKinds = ['open', 'add', 'reduce', 'ladder', 'register', 'link'] as const

export const digest = txHash.meta({
  description: 'EIP-712 digest of what was signed; the quote answers it with the typed data',
  example: `0x${'4d'.repeat(32)}`,
})

const attempt = z
  .object({
    transactionHash: hashOut,
    nonce: z.int().meta({ description: "Nonce of the executor's account" }),
    purpose: z
      .enum(['call', 'cancel'])
      .meta({ description: 'cancel: a zero-value transfer that fills the nonce, so the call can no longer be mined' }),
    state: z.enum(['pending', 'mined', 'reverted', 'replaced']).meta({
      description: 'Of the transactions at one nonce at most one is mined; the others are replaced',
    }),
    sentAt: unixSeconds("When it was signed and sent first, by the service's clock"),
  })
  .meta({ id: 'Attempt', description: 'A transaction that was signed for the intent' })

export const intentLife = z
  .object({
    digest: hashOut.meta({ description: 'EIP-712 digest' }),
    kind: z.enum(signedKinds),
    state: z.enum(['received', 'rejected', 'prepared', 'sent', 'mined', 'reverted', 'final']).meta({
      description:
        'How far it has come. received: being checked. rejected: nothing was executed, see refusal. prepared, sent: on its way. mined: executed. final: executed, too deep to be undone. reverted: mined without effect, see refusal',
    }),
    agentId: digits('Of a registration once it is mined').optional(),
    signer: addressOut.optional().meta({ description: 'Of registrations and links' }),
    positionId: digits('Once mined').optional(),
    nonce: digits('As it was signed'),
    deadline: unixSeconds('As it was signed, at most 2^52'),
    transactionHash: hashOut.optional().meta({ description: 'Of the attempt that was mined' }),
    blockNumber: digits('Block of that transaction').optional(),
    attempts: z.array(attempt).meta({ description: 'Oldest first' }),
    refusal: z
      .object({ code: z.string(), error: z.string(), remedy: z.string().optional() })
      .optional()
      .meta({ description: 'Why nothing was executed; when rejected or reverted' }),
    createdAt: unixSeconds("By the service's clock"),
    updatedAt: unixSeconds("When its state changed last, by the service's clock"),
  })
  .meta({ id: 'Intent' })
