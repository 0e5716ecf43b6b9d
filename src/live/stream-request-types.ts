import type { EventFilter } from './event.ts'

/** Which events a stream carries, the id after which it resumes (without one it starts now), and the client's address. */
export type StreamRequest = { filter: EventFilter; lastEventId?: string; client: string }

/** A request of a stream to one shard, and how many streams the client may have there. */
export type StreamOpening = StreamRequest & { maxStreams: number }

/** Why a stream cannot be opened. */
export type StreamRefusal =
  | 'EVENT_ID_UNKNOWN'
  | 'TOO_MANY_STREAMS'
  | 'TOO_MANY_STREAMS_OF_CLIENT'
  | 'HISTORY_UNAVAILABLE'
