import { formatLocal } from '../format/time.ts'

/** A mark on an axis: where it is, and what it says. `isMajor` marks a new day. */
export type Tick = { at: number; text: string; isMajor?: boolean }

/** Returns at most about `count` round values between two, both included. */
export function roundValues(low: number, high: number, count: number): number[] {
  const rough = (high - low) / count
  if (!(rough > 0)) return [low]
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = power * ([1, 2, 2.5, 5, 10].find(factor => factor * power >= rough) ?? 10)
  const values: number[] = []
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index++) values.push(index * step)
  return values
}

const MINUTE = 60
const HOUR = 3_600
const DAY = 86_400
/** Each is at most two and a half times the one before, so that a narrow chart has a tick, too. */
const STEPS = [
  ...[1, 2, 5, 10, 20, 30].map(minutes => minutes * MINUTE),
  ...[1, 2, 3, 6, 12].map(hours => hours * HOUR),
  ...[1, 2, 4, 7, 14, 30, 60, 120, 180].map(days => days * DAY),
]

/**
 * Returns round times of the reader's clock between two, in Unix seconds, as far apart as `count` intervals in them.
 */
export function timeTicks(from: number, to: number, count: number): Tick[] {
  const step = STEPS.find(size => (to - from) / size <= count) ?? 365 * DAY
  const offset = new Date(from * 1000).getTimezoneOffset() * MINUTE
  const ticks: Tick[] = []
  for (let time = Math.ceil((from - offset) / step) * step + offset; time <= to; time += step) {
    const [day = '', clock = ''] = formatLocal(time).split(', ')
    const isMajor = step >= DAY || clock === '00:00'
    ticks.push({ at: time, text: isMajor ? day : clock, isMajor })
  }
  return ticks
}

/** Returns the index of the time that is nearest to a given one. The times ascend. */
export function nearestIndex(times: number[], time: number): number {
  const after = times.findIndex(each => each >= time)
  if (after < 0) return times.length - 1
  const [left = 0, right = 0] = [times[after - 1], times[after]]
  return after > 0 && time - left < right - time ? after - 1 : after
}
