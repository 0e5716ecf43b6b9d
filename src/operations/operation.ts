import type { z } from 'zod'
import type { Call } from '../call.ts'
import type { Context } from '../context.ts'
import { PRICES, type RequestKind } from '../limits/prices.ts'
import type { TurnKind } from '../limits/rate-limits.ts'
import type { EventFilter } from '../live/event.ts'
import type { CachePolicy, EndpointDefinition, Method, OperationDefinition } from './operation-definition.ts'

/** An operation with a JSON response, with the types of its input and output erased. */
export type JsonOperation = Omit<
  OperationDefinition,
  'markdown' | 'csv' | 'continues' | 'method' | 'cache' | 'status'
> & {
  kind: 'json'
  method: Method
  cache: CachePolicy
  status: 200 | 201
  // Method syntax makes the parameters bivariant, so that operations of any input and output fit into one list.
  markdown?(output: unknown): string
  csv?: string
  continues?(input: Record<string, unknown>, output: unknown): { input: object; forMs: number } | undefined
  /** The schema of the flat input: path, query and body parameters in one object without unknown fields. */
  input: z.ZodType
  /** Parses flat input. Throws INVALID_REQUEST. */
  parse(input: unknown): Record<string, unknown>
  /** Runs with parsed input and returns the output, or a reply that carries it. */
  run(context: Context, input: Record<string, unknown>, call: Call): Promise<unknown>
}

/** An operation that opens a stream of server-sent events. HTTP only. */
export type EventStreamOperation = EndpointDefinition & {
  kind: 'event-stream'
  method: 'get'
  query: z.ZodObject
  /** Returns which events the stream carries. Throws the refusal if there is no such agent or vault. */
  filter(context: Context, input: Record<string, unknown>, call: Call): Promise<EventFilter>
}

/** An operation for the operator with a text as its response, in a format of other systems. HTTP only. */
export type TextOperation = EndpointDefinition<undefined, undefined> & {
  kind: 'text'
  method: 'get'
  /** The media type of the text, with its parameters. */
  contentType: string
  example: string
  run(context: Context, call: Call): Promise<string>
}

export type Operation = JsonOperation | EventStreamOperation | TextOperation

/** Returns the kind of an operation's requests, whose price they have. */
export function requestKindOf(operation: Operation): RequestKind {
  if (operation.kind === 'event-stream') return 'streams'
  if (operation.kind === 'json' && operation.requestKind) return operation.requestKind
  if (operation.method === 'get') return operation.path.endsWith('/quote') ? 'quotes' : 'reads'
  if (operation.readsOnly) return 'reads'
  return operation.paid ? 'registrations' : 'submissions'
}

/** Returns what a request of an operation costs, without its body. */
export const unitsOf = (operation: Operation): number =>
  (operation.kind === 'json' && operation.units) || PRICES[requestKindOf(operation)]

/** Returns which turns requests of an operation take; undefined if none. */
export function turnKindOf(operation: Operation): TurnKind | undefined {
  if (operation.kind === 'json' && operation.takesNoTurn) return undefined
  const kind = requestKindOf(operation)
  if (kind === 'streams') return 'stream'
  return kind === 'reductions' ? 'reduction' : 'request'
}

/**
 * Returns every error status of an operation, ascending: its own, 400, 429 and 500, 402 if paid, 408, 413 and 415 if it
 * takes a body.
 */
export function errorStatuses(operation: Operation): number[] {
  const { errors = [404, 502, 503] } = operation
  const statuses = new Set([...errors, 400, 429, 500])
  if (operation.kind === 'json' && operation.paid) statuses.add(402)
  if (operation.kind === 'json' && operation.body) statuses.add(408).add(413).add(415)
  return [...statuses].sort((a, b) => a - b)
}
