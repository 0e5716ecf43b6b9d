import { z } from 'zod'
import { refuse } from '../errors/catalogue.ts'
import { type ExitRule, type Message, type PrimaryType, signingTypes } from '../protocol/typed-data.ts'
import { exits, typedData } from './intent.ts'
import { exitRule } from './position.ts'
import { address, addressOut, agentId, signature, uint } from './primitives.ts'

export const primaryType = z
  .enum(Object.keys(signingTypes) as [PrimaryType, ...PrimaryType[]])
  .meta({ description: 'EIP-712 primary type of what was signed', example: 'OpenPosition' })

const exampleMessage = { agentId: '1', positionId: '3', exitBps: 10000, deadline: '1790000000', nonce: '4' }
const value = z.union([z.string().max(4096), z.int(), z.boolean()])

export const verifyBody = z
  .object({
    primaryType,
    message: z.record(z.string().max(64), value).optional().meta({
      description:
        'The signed message, field by field, as in typedData; exitsHash may be left out where exits are sent',
      example: exampleMessage,
    }),
    intent: z
      .record(z.string().max(64), z.unknown())
      .optional()
      .meta({
        description: 'Instead of message: the body as it would be posted, without the signature; needs agentId',
        example: { positionId: '3', exitBps: 10000, deadline: '1790000000', nonce: '4' },
      }),
    agentId: agentId.optional(),
    exits: exits.optional(),
    signature,
    signer: address
      .optional()
      .meta({ description: 'Who should have signed; without it the signer or the owner that the chain knows' }),
  })
  .meta({
    example: { primaryType: 'ReducePosition', message: exampleMessage, signature: `0x${'5f'.repeat(64)}1b` },
  })

export const verdict = z
  .object({
    valid: z.boolean().meta({ description: 'Whether the contracts would take the signature for this message' }),
    primaryType: z.string(),
    signer: addressOut.meta({ description: 'Who has to sign' }),
    recovered: addressOut.nullable().meta({ description: 'Whose key made the signature over this digest, if any' }),
    digest: z.string().meta({ description: 'EIP-712 digest of the message', example: `0x${'5f'.repeat(32)}` }),
    mistake: z.string().optional().meta({
      description: 'The common mistake that explains the signature; absent when it is none of those that are known',
      example: 'amountNotScaled',
    }),
    problem: z.string().optional().meta({ description: 'What is wrong with the signature, in words' }),
    warnings: z.array(z.string()).meta({ description: 'What else would be refused: the nonce, the deadline' }),
    typedData,
  })
  .meta({ id: 'SignatureVerdict' })

const hex32 = (description: string) =>
  z
    .string()
    .regex(/^0x[0-9a-f]{64}$/)
    .meta({ description, example: `0x${'5f'.repeat(32)}` })

export const vectors = z
  .object({
    privateKey: hex32('A public test key: never send anything to it'),
    signer: addressOut,
    vectors: z.array(
      z
        .object({
          primaryType: z.string(),
          typedData,
          exits: z.array(exitRule).optional().meta({ description: 'The rules that exitsHash is made of' }),
          digest: hex32('What is signed'),
          signature: z
            .string()
            .regex(/^0x[0-9a-f]{130}$/)
            .meta({ description: 'r, s, v of the test key over the digest' }),
        })
        .meta({ id: 'SigningVector' }),
    ),
  })
  .meta({ id: 'SigningVectors' })

const parsers: Record<string, z.ZodType<Message[string]>> = {
  address,
  string: z.string(),
  bool: z.boolean(),
  bytes32: z.string().regex(/^0x[0-9a-fA-F]{64}$/, 'must be 0x and 64 hex characters'),
  uint256: z.preprocess(given => (typeof given === 'number' ? `${given}` : given), uint),
  uint16: z.coerce.number<unknown>().int().min(0).max(65_535),
}

/** A message of typed data with every field of its type, parsed. Throws INVALID_REQUEST naming the first wrong field. */
export function parseMessage(primaryType: PrimaryType, given: Record<string, unknown>): Message {
  const shape = Object.fromEntries(
    signingTypes[primaryType].map(({ name, type }) => [name, parsers[type] ?? z.never()]),
  )
  const result = z.strictObject(shape).safeParse(given)
  if (result.success) return result.data as Message
  const [issue] = result.error.issues
  throw refuse('INVALID_REQUEST', { problem: `message.${issue?.path.join('.') ?? ''}: ${issue?.message}` })
}

/** The exit rules of the vectors: one of each kind. */
export const VECTOR_EXITS: readonly ExitRule[] = [
  { triggerType: 0, triggerBps: -800n, exitBps: 10_000 },
  { triggerType: 1, triggerBps: 1500n, exitBps: 10_000 },
]
