import type { Chain } from '../chain/configured-chain.ts'
import { refuse } from '../errors/refuse.ts'
import { logFailure } from '../log.ts'
import type { EventStreamsObject, EventStreamsStatus, StreamRefusal, StreamRequest } from './object.ts'

/** The deployment's event streams, as operations see them. */
export type EventStreamsClient = {
  /** Opens a stream of server-sent events. Throws EVENT_ID_UNKNOWN, TOO_MANY_STREAMS, TOO_MANY_STREAMS_OF_CLIENT or HISTORY_UNAVAILABLE. */
  open(request: StreamRequest): Promise<ReadableStream<Uint8Array>>
  status(): Promise<EventStreamsStatus>
  /** Sends the notices to webhooks that failed. Failures are logged. */
  retryWebhookNotices(): Promise<void>
}

/** Returns the object that holds all streams of a chain. */
export const eventStreamsOf = (namespace: DurableObjectNamespace<EventStreamsObject>, { id }: Pick<Chain, 'id'>) =>
  namespace.getByName(`${id}`)

/** Creates the client of a chain's event streams. */
export function createEventStreamsClient(
  namespace: DurableObjectNamespace<EventStreamsObject>,
  chain: Chain,
): EventStreamsClient {
  const object = () => eventStreamsOf(namespace, chain)
  return {
    async open(request) {
      const response = await object().fetch('http://streams/', { method: 'POST', body: JSON.stringify(request) })
      if (response.ok && response.body) return response.body
      const { code } = (await response.json()) as { code: StreamRefusal }
      throw code === 'EVENT_ID_UNKNOWN' ? refuse(code, { lastEventId: request.lastEventId }) : refuse(code)
    },
    status: () => object().status(),
    retryWebhookNotices: () =>
      Promise.resolve(object().retryWebhookNotices()).catch(error => logFailure('webhook notice failure', error)),
  }
}
