import { firstProblem, inputProblems } from '@agent-trading-service/protocol/input-problems'
import { type Message, type PrimaryType, signingTypes } from '@agent-trading-service/protocol/typed-data'
import { z } from 'zod'
import { malformed } from '../errors/refuse.ts'
import { exits } from './exit-rule.ts'
import {
  address,
  addressOut,
  agentId,
  digitsAsNumber,
  exampleDeadline,
  plainText,
  signature,
  uint,
} from './primitives.ts'
import { primaryTypes, typedData } from './typed-data.ts'

const primaryType = z
  .enum(primaryTypes)
  .meta({ description: 'EIP-712 primary type of what was signed', example: 'OpenPosition' })

const exampleIntent = () => ({ positionId: '3', exitBps: 10000, deadline: exampleDeadline(), nonce: '4' })
const exampleMessage = () => ({ agentId: '1', ...exampleIntent() })

export const verifyBody = z
  .object({
    primaryType,
    message: z
      .record(z.string().max(64), z.unknown())
      .optional()
      .meta({
        description: 'The signed message, field by field, as in typedData; exitsHash may be omitted if exits are sent',
        get example() {
          return exampleMessage()
        },
      }),
    intent: z
      .record(z.string().max(64), z.unknown())
      .optional()
      .meta({
        description: 'Instead of message: the body as it would be posted, without the signature; requires agentId',
        get example() {
          return exampleIntent()
        },
      }),
    agentId: agentId.optional(),
    exits: exits.optional(),
    signature,
    signer: address.optional().describe('The expected signer; defaults to the signer or owner on chain'),
  })
  .meta({
    get example() {
      return { primaryType: 'ReducePosition', message: exampleMessage(), signature: `0x${'5f'.repeat(64)}1b` }
    },
  })

export const verdict = z
  .object({
    valid: z.boolean().describe('Whether the service would relay the message with this signature'),
    accepted: z
      .string()
      .optional()
      .describe('The signature as it would be relayed: unwrapped, and in the form that the contracts accept'),
    primaryType: z.string(),
    signer: addressOut.describe('The address that must sign'),
    recovered: addressOut
      .nullable()
      .describe('The address recovered from the signature over this digest; null if none can be'),
    digest: z.string().meta({ description: 'EIP-712 digest of the message', example: `0x${'5f'.repeat(32)}` }),
    mistake: z.string().optional().meta({
      description: 'The common mistake that explains the signature; absent if none of the known ones does',
      example: 'amountNotScaled',
    }),
    problem: z.string().optional().describe('What is wrong with the signature'),
    remedy: z.string().optional().describe('What to do, if it is not to sign typedData again'),
    warnings: z.array(z.string()).describe('What else would be rejected: the nonce, the deadline'),
    typedData,
  })
  .meta({ id: 'SignatureVerdict' })

/** Parsers by Solidity type. */
const parsers: Record<string, z.ZodType<Message[string]>> = {
  address,
  string: plainText,
  bool: z.boolean(),
  bytes32: z.string().regex(/^0x[0-9a-fA-F]{64}$/, 'must be 0x and 64 hex characters'),
  uint256: z.preprocess(given => (typeof given === 'number' ? `${given}` : given), uint),
  uint8: digitsAsNumber(z.int().min(0).max(255)),
  'string[]': z.array(plainText).max(64),
  'address[]': z.array(address).max(64),
  'uint256[]': z.array(uint).min(1).max(64),
  uint16: digitsAsNumber(z.int().min(0).max(65_535)),
}

/**
 * Parses a typed-data message, which must have every field of its type. Throws INVALID_REQUEST naming the first wrong
 * field.
 */
export function parseMessage(primaryType: PrimaryType, given: Record<string, unknown>): Message {
  const shape = Object.fromEntries(
    signingTypes[primaryType].map(({ name, type }) => [name, parsers[type] ?? z.never()]),
  )
  const result = z.strictObject(shape).safeParse(given)
  if (result.success) return result.data as Message
  const problem = firstProblem(inputProblems(result.error.issues, { given, fields: shape }))
  throw malformed(`message.${problem}`)
}
