import type { Chain } from '../chain/configured-chain.ts'
import type { Config } from '../config/config.ts'
import { refuse } from '../errors/refuse.ts'
import { UNITS_PER_OPEN_STREAM } from '../limits/prices.ts'
import { logFailure } from '../log.ts'
import { NETWORK_SHARES, type Networks } from '../requests/client-address.ts'
import type { EventFilter } from './event.ts'

/**
 * The number of open streams, the block up to which the event log is complete (undefined before it starts), whether
 * the last attempt to publish from the index failed, and the active webhooks with those that have failed for an hour.
 */
export type EventStreamsStatus = {
  streams: number
  block: number | undefined
  isFailing: boolean
  webhooks: { active: number; failing: number }
}

/** The deployment's event streams, as operations see them. */
export type EventStreamsClient = ReturnType<typeof createEventStreamsClient>

export const eventLogOf = (namespace: Env['EVENT_STREAMS'], { id }: Pick<Chain, 'id'>) => namespace.getByName(`${id}`)

export const shardName = ({ id }: Pick<Chain, 'id'>, index: number): string => `${id}:${index}`

export const chainOfShard = (name: string): Pick<Chain, 'id'> => ({ id: Number(name.split(':')[0]) })

export function createEventStreamsClient(
  { EVENT_STREAMS: logs, EVENT_STREAM_SHARDS: shards }: Pick<Env, 'EVENT_STREAMS' | 'EVENT_STREAM_SHARDS'>,
  chain: Chain,
  { requestBudgets, eventStreamObjects }: Pick<Config, 'requestBudgets' | 'eventStreamObjects'>,
) {
  const maxStreams = requestBudgets.address === 0 ? MAX_STREAMS : requestBudgets.address / UNITS_PER_OPEN_STREAM
  const log = () => eventLogOf(logs, chain)

  /** Returns the stream, or why the shard refused it. */
  async function openIn(object: number, opening: StreamOpening): Promise<ReadableStream<Uint8Array> | StreamRefusal> {
    const shard = shards.getByName(shardName(chain, object))
    const response = await shard.fetch('http://streams/', { method: 'POST', body: JSON.stringify(opening) })
    if (response.ok && response.body) return response.body
    return ((await response.json()) as { code: StreamRefusal }).code
  }

  return {
    /**
     * Opens a stream of server-sent events. Throws EVENT_ID_UNKNOWN, TOO_MANY_STREAMS, TOO_MANY_STREAMS_OF_CLIENT or
     * HISTORY_UNAVAILABLE.
     */
    async open(request: StreamRequest): Promise<ReadableStream<Uint8Array>> {
      const places = streamPlacesOf(request.client, Math.ceil(maxStreams), eventStreamObjects).slice(0, MAX_TRIES)
      let code: StreamRefusal = 'TOO_MANY_STREAMS'
      for (const [index, { object, maxStreams }] of places.entries()) {
        const opened = await openIn(object, { ...request, maxStreams, isLast: index === places.length - 1 })
        if (typeof opened !== 'string') return opened
        code = opened
        if (code !== 'TOO_MANY_STREAMS' && code !== 'TOO_MANY_STREAMS_OF_CLIENT') break
      }
      throw code === 'EVENT_ID_UNKNOWN' ? refuse(code, { lastEventId: request.lastEventId }) : refuse(code)
    },
    status: (): Promise<EventStreamsStatus> => log().status(),
    /** Resends failed notices to webhooks, and wakes those of some agents in each minute. Failures are logged. */
    retryWebhookNotices: (minute: number): Promise<void> =>
      Promise.resolve(log().retryWebhookNotices(minute)).catch(error => logFailure('webhook notice failure', error)),
    /**
     * Makes the indexer follow the chain closely if webhooks or subscribers of MCP wait for its events. Failures are
     * logged.
     */
    watchForSubscribers: (): Promise<void> =>
      Promise.resolve(log().watchForSubscribers()).catch(error => logFailure('event streams failure', error)),
  }
}

/**
 * Which events a stream carries, the id after which it resumes (without one it starts now), how often it gets a
 * heartbeat, and the client's networks.
 */
type StreamRequest = { filter: EventFilter; lastEventId?: string; heartbeatSeconds: number; client: Networks }

/**
 * A request of a stream to one shard, how many streams an address of the client may have there, and whether no other is
 * asked after it.
 */
export type StreamOpening = StreamRequest & { maxStreams: number; isLast: boolean }

/** Why a stream cannot be opened. */
export type StreamRefusal =
  | 'EVENT_ID_UNKNOWN'
  | 'TOO_MANY_STREAMS'
  | 'TOO_MANY_STREAMS_OF_CLIENT'
  | 'HISTORY_UNAVAILABLE'

/** Where nothing is limited. */
const MAX_STREAMS = 100_000
/**
 * How many streams an address has in the first object before it uses others. An object is billed while it holds one.
 */
const MAX_IN_FIRST_OBJECT = 50
/**
 * How many streams of one client another object holds. It holds more if all objects together could not reach the
 * client's maximum otherwise.
 */
const STREAMS_PER_PLACE = 250
/** A refusal must not cost a call of every object. */
const MAX_TRIES = 4

/** An object that may hold streams of a client, and how many of an address. */
type StreamPlace = { object: number; maxStreams: number }

/**
 * Returns the objects that may hold a client's streams, in the order in which to try them: the first one, then others
 * that follow from the widest of the client's networks. So each object counts by itself, an address has at most
 * `maxStreams` in all of them together, and those who fill the first object do not fill another client's.
 */
export function streamPlacesOf(client: Networks, maxStreams: number, objects: number): StreamPlace[] {
  const inFirst = objects === 1 ? maxStreams : Math.min(MAX_IN_FIRST_OBJECT, Math.floor(maxStreams / 2))
  const others = otherPlacesOf(client, maxStreams - inFirst, objects - 1)
  return [{ object: 0, maxStreams: inFirst }, ...others].filter(place => place.maxStreams > 0)
}

/** Returns the objects after the first one, beginning anywhere. */
function otherPlacesOf(client: Networks, maxStreams: number, objects: number): StreamPlace[] {
  const ofWidest = maxStreams * (NETWORK_SHARES[client.length - 1] ?? 1)
  const count = Math.min(objects, Math.ceil(ofWidest / STREAMS_PER_PLACE))
  const first = hashOf(client.at(-1) ?? '')
  const start = Math.floor(Math.random() * count)
  return Array.from({ length: count }, (_, position) => {
    const index = (start + position) % count
    return { object: 1 + ((first + index) % objects), maxStreams: Math.floor((maxStreams + index) / count) }
  })
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0
  return hash
}
