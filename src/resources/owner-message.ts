import { z } from 'zod'
import { agentControlFields } from './mandate.ts'
import { address, addressOut, asOf, deadlineOut, digits, hashOut, unixSeconds } from './primitives.ts'
import { eip712Info, signableFields } from './typed-data.ts'

/** `signer` is who signs a message, so the key that a message names has another name than in its typed data. */
export const newSigner = address.meta({
  description: 'Address whose signatures trade for the agent from then on',
  example: '0x00000000000000000000000000000000000000b2',
})

/** Returns the schema of a quote for a message of an owner, named after `subject`. */
export const ownerMessageQuote = <T extends z.ZodType, S extends z.core.$ZodLooseShape>(
  subject: string,
  typedData: T,
  submission: z.ZodObject<S>,
) =>
  z
    .object({
      agentId: digits('Agent id'),
      signer: addressOut.describe('The address that must sign: the owner, or the one to whom the agent is offered'),
      nonce: digits("That address's next nonce"),
      eip712: eip712Info,
      ownerControls: addressOut.describe('Verifying contract of the signature'),
      warnings: z.array(z.string()).optional().describe('What to know before signing'),
      serverTime: unixSeconds('The present time'),
      suggestedDeadline: deadlineOut('A deadline ten minutes ahead'),
      ...signableFields(typedData, { id: `${subject}Body`, submission }),
      asOf,
    })
    .meta({ id: `${subject}Quote` })

/** What a relayed message of an owner returns: who controls the agent now. */
export const ownerMessageReceipt = z
  .object({
    ...agentControlFields,
    transactionHash: hashOut,
    blockNumber: digits('Block of the transaction'),
    warnings: z.array(z.string()).optional(),
  })
  .meta({ id: 'OwnerMessageReceipt' })
