/** The types of events that a webhook may select. */
export const SELECTABLE_EVENT_TYPES = [
  'trade',
  'exit',
  'ladder',
  'mandate',
  'intent',
  'risk',
  'price-stale',
  'price-fresh',
] as const

/** Values of the SSE field `event`. A reorg reaches everybody. */
export const STREAM_EVENT_TYPES = [...SELECTABLE_EVENT_TYPES, 'reorg'] as const
export type StreamEventType = (typeof STREAM_EVENT_TYPES)[number]
