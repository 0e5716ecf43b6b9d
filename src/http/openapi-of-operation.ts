import { type RouteConfig, z } from '@hono/zod-openapi'
import {
  type EventStreamOperation,
  errorStatuses,
  type JsonOperation,
  type Operation,
  type TextOperation,
} from '../operations/operation.ts'
import { errorBody, paymentRequiredBody } from '../resources/error-body.ts'
import { eventId } from '../resources/event-id.ts'
import { uint } from '../resources/primitives.ts'
import { alternativeFormats, formatQuery } from './content-negotiation.ts'
import { paymentHeaders } from './payment-headers.ts'

const JSON_TYPE = 'application/json'
/** Marks parameters that are accepted and not documented. */
export const UNDOCUMENTED = 'x-undocumented'

/** What a status means, unless the operation says otherwise. */
const statusDescriptions: Record<number, string> = {
  200: 'Success',
  201: 'Accepted and executed',
  304: 'The response with the ETag in If-None-Match is still the newest',
  400: 'Invalid input, signature, deadline or nonce, or rejected by the contracts',
  401: 'Refresh secret missing or wrong',
  402: 'Payment required',
  404: 'Not found',
  408: 'The request body did not arrive in time',
  409: 'Conflict with existing state',
  413: 'The request body is too large',
  415: 'The request body has a content encoding',
  429: 'A gas budget or a rate limit is exhausted; see Retry-After',
  500: 'The deployment has no chain configuration, or an internal error',
  502: 'The chain could not be reached, or the outcome is not known yet',
  503: 'Not configured, paused or busy',
}
const REPLAY_DESCRIPTION = 'The identical signed body was executed before; returns the same result'

/** Returns the OpenAPI route of an operation, which also drives its validation. */
export function openApiRoute(operation: Operation): RouteConfig {
  const { id, method, path, tag, summary, description } = operation
  return {
    operationId: id,
    method,
    path,
    tags: [tag],
    summary,
    description,
    security: securityOf(operation),
    request: requestOf(operation),
    responses: {
      ...successResponses(operation),
      ...errorResponses(operation),
    },
  }
}

function securityOf(operation: Operation): NonNullable<RouteConfig['security']> {
  if (operation.kind === 'text') return [{ operatorSecret: [] }]
  return operation.kind === 'json' && operation.security ? [{ [`${operation.security}Secret`]: [] }, {}] : []
}

function requestOf(operation: Operation): NonNullable<RouteConfig['request']> {
  if (operation.kind === 'text') return { query: z.strictObject({}) }
  return operation.kind === 'json' ? jsonRequest(operation) : eventStreamRequest(operation)
}

function successResponses(operation: Operation): RouteConfig['responses'] {
  if (operation.kind === 'text') return textResponses(operation)
  return operation.kind === 'json' ? jsonResponses(operation) : eventStreamResponses()
}

const textResponses = ({ contentType, example }: TextOperation): RouteConfig['responses'] => ({
  200: { description: statusDescriptions[200] ?? '', content: { [contentType]: { schema: z.string(), example } } },
})

function jsonRequest(operation: JsonOperation): NonNullable<RouteConfig['request']> {
  const { params, query, body, paid, bodyIsOptional } = operation
  return {
    ...(params && { params }),
    query: z.strictObject({ ...query?.shape, ...formatQuery(alternativeFormats(operation)) }),
    headers: z.object({ ...minBlockHeader.shape, ...(paid && paymentHeaders.request.shape) }),
    ...(body && {
      body: { required: bodyIsOptional !== true, content: { [JSON_TYPE]: { schema: body.strict() } } },
    }),
  }
}

const minBlockHeader = z.object({
  'min-block': uint.optional().meta({
    description: 'The X-As-Of-Block of an earlier response: nothing older is returned',
    // Importers send the example. Every chain has reached block 0.
    default: '0',
    example: '0',
  }),
})

function jsonResponses(operation: JsonOperation): RouteConfig['responses'] {
  const { status, replay, output, paid, cache } = operation
  const success = {
    content: {
      [JSON_TYPE]: { schema: output },
      ...Object.fromEntries(
        alternativeFormats(operation).map(({ mediaType, schema, example }) => [mediaType, { schema, example }]),
      ),
    },
    ...(paid && { headers: paymentHeaders.success }),
  }
  return {
    ...(replay && { [replay]: { description: REPLAY_DESCRIPTION, ...success } }),
    [status]: { description: describeStatus(operation, status), ...success },
    ...(cache !== 'none' && { 304: { description: describeStatus(operation, 304) } }),
  }
}

/** Leaves a parameter out of the document: two of similar names in one operation break generated code. */
const undocumented = <Schema extends z.ZodType>(parameter: Schema) => parameter.meta({ [UNDOCUMENTED]: true })

function eventStreamRequest({ params, query }: EventStreamOperation): NonNullable<RouteConfig['request']> {
  return {
    ...(params && { params }),
    query: query.extend({ lastEventId: undocumented(eventId.optional()) }).strict(),
    headers: z.object({ 'last-event-id': undocumented(eventId.optional()) }),
  }
}

const EXAMPLE_EVENTS =
  'id: 1234-0\nevent: position\ndata: {"id":"1234-0","blockNumber":"1234"}\n\n' +
  'id: 1234-5\nevent: ladder\ndata: {"agentId":"1","type":"ExitLadderUpdated","positionId":"7"}\n\n'

const eventStreamResponses = (): RouteConfig['responses'] => ({
  200: {
    description: 'The events, until the client disconnects',
    content: { 'text/event-stream': { schema: z.string(), example: EXAMPLE_EVENTS } },
  },
})

const errorResponses = (operation: Operation): RouteConfig['responses'] =>
  Object.fromEntries(
    errorStatuses(operation).map(status => [
      status,
      {
        description: describeStatus(operation, status),
        content: { [JSON_TYPE]: { schema: status === 402 ? paymentRequiredBody : errorBody } },
        ...(status === 402 && { headers: paymentHeaders.required }),
      },
    ]),
  )

const describeStatus = (operation: Operation, status: number): string =>
  operation.statusDescriptions?.[status] ?? statusDescriptions[status] ?? 'Error'
