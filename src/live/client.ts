import type { Chain } from '../chain/configured-chain.ts'
import type { Config } from '../config/config.ts'
import { refuse } from '../errors/refuse.ts'
import { logFailure } from '../log.ts'
import type { EventStreamsObject, EventStreamsStatus } from './object.ts'
import { streamPlacesOf } from './shards-of-client.ts'
import type { StreamOpening, StreamRefusal, StreamRequest } from './stream-request-types.ts'

/** The deployment's event streams, as operations see them. */
export type EventStreamsClient = {
  /** Opens a stream of server-sent events. Throws EVENT_ID_UNKNOWN, TOO_MANY_STREAMS, TOO_MANY_STREAMS_OF_CLIENT or HISTORY_UNAVAILABLE. */
  open(request: StreamRequest): Promise<ReadableStream<Uint8Array>>
  status(): Promise<EventStreamsStatus>
  /** Resends failed notices to webhooks. Failures are logged. */
  retryWebhookNotices(): Promise<void>
}

/** Returns the object that holds the event log of a chain. */
export const eventLogOf = (namespace: DurableObjectNamespace<EventStreamsObject>, { id }: Pick<Chain, 'id'>) =>
  namespace.getByName(`${id}`)

/** Returns the name of one of a chain's stream shards. */
export const shardName = ({ id }: Pick<Chain, 'id'>, index: number): string => `${id}:${index}`

/** Returns the chain of a shard's name. */
export const chainOfShard = (name: string): Pick<Chain, 'id'> => ({ id: Number(name.split(':')[0]) })

/** Creates the client of a chain's event streams. */
export function createEventStreamsClient(
  { EVENT_STREAMS: logs, EVENT_STREAM_SHARDS: shards }: Pick<Env, 'EVENT_STREAMS' | 'EVENT_STREAM_SHARDS'>,
  chain: Chain,
  { maxStreamsPerAddress, eventStreamObjects }: Pick<Config, 'maxStreamsPerAddress' | 'eventStreamObjects'>,
): EventStreamsClient {
  const log = () => eventLogOf(logs, chain)

  /** Returns the stream, or why the shard refused it. */
  async function openIn(object: number, opening: StreamOpening): Promise<ReadableStream<Uint8Array> | StreamRefusal> {
    const shard = shards.getByName(shardName(chain, object))
    const response = await shard.fetch('http://streams/', { method: 'POST', body: JSON.stringify(opening) })
    if (response.ok && response.body) return response.body
    return ((await response.json()) as { code: StreamRefusal }).code
  }

  return {
    async open(request) {
      const places = streamPlacesOf(request.client, maxStreamsPerAddress, eventStreamObjects)
      const first = Math.floor(Math.random() * places.length)
      let code: StreamRefusal = 'TOO_MANY_STREAMS'
      for (const { object, maxStreams } of [...places.slice(first), ...places.slice(0, first)]) {
        const opened = await openIn(object, { ...request, maxStreams })
        if (typeof opened !== 'string') return opened
        code = opened
        if (code !== 'TOO_MANY_STREAMS' && code !== 'TOO_MANY_STREAMS_OF_CLIENT') break
      }
      throw code === 'EVENT_ID_UNKNOWN' ? refuse(code, { lastEventId: request.lastEventId }) : refuse(code)
    },
    status: () => log().status(),
    retryWebhookNotices: () =>
      Promise.resolve(log().retryWebhookNotices()).catch(error => logFailure('webhook notice failure', error)),
  }
}
