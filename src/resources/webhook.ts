import { SELECTABLE_EVENT_TYPES } from '@agent-trading-service/protocol/stream-event-types'
import { z } from 'zod'
import { addressOut, asOf, deadline, deadlineOut, digits, plainText, signature, unixSeconds } from './primitives.ts'
import { eip712Info, signableFields } from './typed-data.ts'

/** What a signed message may do with a webhook. */
const webhookActions = ['test', 'rotateSecret', 'enable', 'delete'] as const
export type WebhookAction = (typeof webhookActions)[number]

export const MAX_URL_LENGTH = 2_048

const EXAMPLE_ID = `0x${'5f'.repeat(32)}`

const eventType = z.enum(SELECTABLE_EVENT_TYPES)
const EVENT_TYPES = 'Types of events to deliver; without any, all of them. Reorgs are always delivered'

export const url = plainText.min(1).max(MAX_URL_LENGTH).meta({
  description: 'Where events are posted: https, port 443, a public host',
  example: 'https://agents.example/events',
})
export const eventTypes = z
  .array(eventType)
  .max(SELECTABLE_EVENT_TYPES.length)
  .default([])
  .meta({ description: EVENT_TYPES, example: ['trade', 'exit', 'risk'] })
export const eventTypesQuery = z
  .string()
  .max(256)
  .transform(list => list.split(','))
  .pipe(z.array(eventType).max(SELECTABLE_EVENT_TYPES.length))
  .optional()
  .meta({ description: `${EVENT_TYPES}; separated by commas`, example: 'trade,exit,risk', 'x-list': 'comma' })

const bytes32 = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/, 'must be 0x and 64 hex characters')
  .transform(value => value.toLowerCase() as `0x${string}`)
export const webhookId = bytes32.meta({ description: 'Id of the webhook', example: EXAMPLE_ID })
const salt = bytes32.meta({
  description: 'Random; makes two otherwise equal messages differ',
  example: `0x${'a7'.repeat(32)}`,
})
export const action = z.enum(webhookActions).meta({
  description:
    '`test` posts a test event; `rotateSecret` returns a new secret and keeps the old one valid for 24 hours; `enable` continues a disabled webhook, or retries a failing one at once; `delete`',
  example: 'test',
})

const signed = { deadline, signature }
/** The bodies of the submissions. */
export const webhookBody = z.object({ url, eventTypes, salt, ...signed })
export const webhookListBody = z.object(signed)
export const webhookChangeBody = z.object({ action, salt, ...signed })

/** Returns the schema of a quote for a message about webhooks, named after `subject`. */
export const webhookQuote = <T extends z.ZodType, S extends z.core.$ZodLooseShape>(
  subject: string,
  typedData: T,
  submission: z.ZodObject<S>,
) =>
  z
    .object({
      agentId: digits('Agent id'),
      signers: z.array(addressOut).describe("Who may sign: the agent's owner, and its signer if it is another"),
      eip712: eip712Info,
      serverTime: unixSeconds('The present time'),
      suggestedDeadline: deadlineOut('A deadline ten minutes ahead; at most an hour is accepted'),
      ...signableFields(typedData, { id: `${subject}Body`, submission }),
      asOf,
    })
    .meta({ id: `${subject}Quote` })

const seconds = (description: string) => unixSeconds(`${description}; service clock`)
const status = z.int().meta({ description: 'HTTP status of the response; absent if there was none', example: 503 })
const problem = z.string().meta({ description: 'Why it failed', example: 'the response has status 503' })

const failure = z
  .object({
    messageId: z.string().meta({ description: 'Header webhook-id of the delivery that fails', example: '1234-5' }),
    attempts: z.int(),
    since: seconds('First failed attempt'),
    lastAttemptAt: seconds('Last failed attempt'),
    status: status.optional(),
    problem,
  })
  .describe('The delivery that fails; what follows waits for it. Absent if the last one succeeded')

const lastTest = z.object({
  at: seconds('Time of the test'),
  delivered: z.boolean(),
  status: status.optional(),
  problem: problem.optional(),
})

export const webhook = z
  .object({
    webhookId: z.string().meta({ description: 'Digest of the message that created it', example: EXAMPLE_ID }),
    url: z.string(),
    eventTypes: z.array(z.string()).describe(EVENT_TYPES),
    createdBy: z
      .enum(['owner', 'signer'])
      .describe('Who signed its creation; only the owner sees and changes what the owner created'),
    createdAt: seconds('Time of creation'),
    state: z.enum(['active', 'disabled', 'deleted']),
    disabledReason: z.string().optional().describe('Why nothing is delivered any more'),
    deliveredThrough: z.string().meta({
      description: 'Id in the event log up to which everything is delivered, also events of other agents',
      example: '1234-5',
    }),
    lastDeliveredAt: seconds('Last successful delivery').optional(),
    failure: failure.optional(),
    nextAttemptAt: seconds('Start of the next attempt; absent if nothing is left to deliver').optional(),
    previousSecretUntil: seconds('Until then, deliveries carry the signature of the previous secret too').optional(),
    lastTest: lastTest.optional(),
  })
  .meta({ id: 'Webhook' })

export type Webhook = z.input<typeof webhook>

export const webhookReceipt = z
  .object({
    webhook,
    secret: z.string().optional().meta({
      description:
        'The signing secret, shown this once: after a creation or rotation, and not when the body is repeated',
      example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=',
    }),
  })
  .meta({ id: 'WebhookReceipt' })

export const webhookList = z
  .object({ agentId: digits('Agent id'), webhooks: z.array(webhook).describe('Oldest first') })
  .meta({ id: 'WebhookList' })
