import type { Chain } from '../chain/chain.ts'
import { refuse } from '../errors/catalogue.ts'
import type { EventStreamsObject, Opening, OpeningRefusal, StreamsStatus } from './object.ts'

/** What happens, as it happens. */
export type Live = {
  /**
   * Server-sent events from an id on, or from now. Throws EVENT_ID_UNKNOWN where the id is none that can be gone on from,
   * TOO_MANY_STREAMS, or HISTORY_UNAVAILABLE.
   */
  open(opening: Opening): Promise<ReadableStream<Uint8Array>>
  status(): Promise<StreamsStatus>
}

/** The one holder of a chain's streams. */
export const streamsOf = (namespace: DurableObjectNamespace<EventStreamsObject>, { id }: Pick<Chain, 'id'>) =>
  namespace.getByName(`${id}`)

export const createLive = (namespace: DurableObjectNamespace<EventStreamsObject>, chain: Chain): Live => ({
  async open(opening) {
    const body = JSON.stringify(opening)
    const response = await streamsOf(namespace, chain).fetch('http://streams/', { method: 'POST', body })
    if (response.ok && response.body) return response.body
    const { code } = (await response.json()) as { code: OpeningRefusal }
    throw code === 'EVENT_ID_UNKNOWN' ? refuse(code, { lastEventId: opening.lastEventId }) : refuse(code)
  },
  status: () => streamsOf(namespace, chain).status(),
})
