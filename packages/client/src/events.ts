import { createParser } from 'eventsource-parser'
import type { Integer } from './amounts.ts'
import { toDigits } from './amounts.ts'
import { type AgentTradingError, errorOfResponse, NetworkError } from './errors.ts'
import type { components } from './generated/openapi.ts'
import { createRetry, fillPath, type Http } from './http.ts'

type Schemas = components['schemas']

/** The data of events by type. Types that this version does not know have `unknown` data. */
export type EventData = {
  trade: Schemas['Trade']
  exit: Schemas['Trade']
  ladder: Schemas['Trade']
  /** `type` is OrderPlaced (with the order's terms), OrderExecuted or OrderEnded. */
  order: { agentId: string; orderId: string; type: string; [name: string]: unknown }
  intent: Omit<Schemas['Intent'], 'positionId'>
  mandate: { agentId: string; type: string; [name: string]: unknown }
  risk: { agentId: string; rule: string; breached: boolean; [name: string]: unknown }
  'price-stale': { symbol: string; [name: string]: unknown }
  'price-fresh': { symbol: string; [name: string]: unknown }
  corporateAction: {
    symbol: string
    state: 'announced' | 'effective' | 'replaced'
    newMultiplier: string
    effectiveAt: string
    [name: string]: unknown
  }
  price: {
    symbol: string
    token: string
    priceUsd: string
    updatedAt: string
    timestamp: string
    blockNumber: string
    logIndex: number
  }
  reorg: { commonAncestor: string; withdrawn: readonly string[]; [name: string]: unknown }
}
export type ServiceEvent = {
  [Type in keyof EventData]: { id: string; type: Type; data: EventData[Type] }
}[keyof EventData]

export type EventsRequest = {
  /** The events of one agent. */
  agentId?: Integer
  /** The events of one vault, by slug or address. Without agent and vault: the events of all agents. */
  vault?: string
  /** Adds the posted prices of these tokens. Without agent and vault: prices alone. */
  symbols?: readonly string[]
  /** Resume after this event. */
  lastEventId?: string
  /** Ends the iteration. */
  signal?: AbortSignal
  /** Called with the newest event of the service when the stream opens, and later if none of its own events came. */
  onPosition?: (position: StreamPosition) => void
}

/** The newest event of the service: its id, after which a stream resumes, and its block. */
export type StreamPosition = { id: string; blockNumber: string }

/** The service sends a heartbeat every 15 seconds; a connection that is silent for longer is dead. */
const MAX_SILENCE_MS = 45_000

/**
 * Yields the events of an agent, a vault, or all agents, and posted prices. After a dropped connection it resumes
 * behind the last event, without loss or repetition. Throws if the service refuses the stream, or stays unreachable for
 * the client's budget.
 */
export async function* streamEvents(http: Http, request: EventsRequest): AsyncGenerator<ServiceEvent, void, void> {
  const { agentId, vault, signal } = request
  const symbols = request.symbols?.join()
  const path =
    agentId === undefined
      ? fillPath('/events', { vault, symbols })
      : fillPath('/agents/{agentId}/events', { agentId: toDigits(agentId, 'agentId'), symbols })
  let lastEventId = request.lastEventId
  let retry = createRetry(http.retryBudgetMs)
  while (!signal?.aborted) {
    const connection = new AbortController()
    const abort = () => connection.abort()
    signal?.addEventListener('abort', abort)
    try {
      const body = await openStream(http, path, lastEventId, connection)
      retry = createRetry(http.retryBudgetMs)
      for await (const event of readEvents(body, connection)) {
        lastEventId = event.id
        if (event.type === 'position') request.onPosition?.(event.data)
        else yield event
      }
    } catch (error) {
      if (signal?.aborted) return
      if (!(error as AgentTradingError).retryable || !(await retry.wait(error))) throw error
    } finally {
      signal?.removeEventListener('abort', abort)
      connection.abort()
    }
  }
}

async function openStream(
  http: Http,
  path: string,
  lastEventId: string | undefined,
  connection: AbortController,
): Promise<ReadableStream<Uint8Array>> {
  const url = http.origin + path
  let response: Response
  try {
    response = await http.send(url, {
      headers: { accept: 'text/event-stream', ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) },
      redirect: 'manual',
      signal: connection.signal,
    })
  } catch (cause) {
    throw connectionLost(url, cause)
  }
  if (response.ok && response.body) return response.body
  const body: unknown = await response.json().catch(() => undefined)
  throw errorOfResponse(response.status, response.headers, body)
}

/** Where a stream is, although no event of its filter has come. */
type Position = { id: string; type: 'position'; data: StreamPosition }

async function* readEvents(
  body: ReadableStream<Uint8Array>,
  connection: AbortController,
): AsyncGenerator<ServiceEvent | Position, void, void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let events: (ServiceEvent | Position)[] = []
  const parser = createParser({
    onEvent: ({ id = '', event = 'message', data }) =>
      events.push({ id, type: event, data: JSON.parse(data) } as ServiceEvent),
  })
  try {
    for (;;) {
      const silence = setTimeout(() => connection.abort(), MAX_SILENCE_MS)
      const { value, done } = await reader
        .read()
        .catch(cause => {
          throw connectionLost('the event stream', cause)
        })
        .finally(() => clearTimeout(silence))
      if (done) throw connectionLost('the event stream', undefined)
      parser.feed(decoder.decode(value, { stream: true }))
      yield* events
      events = []
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

const connectionLost = (what: string, cause: unknown) =>
  new NetworkError('NETWORK_ERROR', `The connection to ${what} was lost.`, { retryable: true, cause })
