type EventData = { timestamp?: unknown; updatedAt?: unknown; asOf?: { blockTimestamp?: unknown } }

/**
 * Returns when an event of a stream happened, in Unix seconds, and how long before `now` (Unix seconds) that was: its
 * block's time, and of an intent when its state changed. Both are null for a reorg, which has no time.
 */
export function eventTime(type: string, data: unknown, now: number): { at: string | null; ageSeconds: number | null } {
  const { timestamp, updatedAt, asOf } = (data ?? {}) as EventData
  const time = timestamp ?? asOf?.blockTimestamp ?? (type === 'intent' ? updatedAt : undefined)
  if (typeof time !== 'string' || !/^\d{1,15}$/.test(time)) return { at: null, ageSeconds: null }
  return { at: time, ageSeconds: Math.max(0, Math.floor(now) - Number(time)) }
}
