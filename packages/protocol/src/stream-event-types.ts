/** The types of events that a webhook may select. */
export const SELECTABLE_EVENT_TYPES = [
  'trade',
  'exit',
  'ladder',
  'order',
  'mandate',
  'intent',
  'risk',
  'price-stale',
  'price-fresh',
  'corporateAction',
] as const

/** Values of the SSE field `event`. Prices reach the streams that ask for symbols; a reorg reaches everybody. */
export const STREAM_EVENT_TYPES = [...SELECTABLE_EVENT_TYPES, 'price', 'reorg'] as const
export type StreamEventType = (typeof STREAM_EVENT_TYPES)[number]
