import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ObjectCounts } from './counted-platform.ts'
import type { Counts } from './meter.ts'

/** The counted steps, in order. */
export const STEPS = {
  register: 'registration, fee included',
  open: 'open: quote and intent',
  ladder: 'ladder update: quote and intent',
  close: 'close: quote and intent',
  stream: 'event stream: opening it, and a minute',
  cron: 'cron run without work',
} as const
export type StepName = keyof typeof STEPS

/**
 * Counts of one run of each step, less the work of a service in that time to which nothing happens; of an idle hour;
 * and what an hour with open positions takes beyond that.
 */
export type Measured = {
  machine: string
  steps: Record<StepName, Counts>
  idleHour: Counts
  holdingHour: Counts
  /** The activity of each class of objects in the idle hour. */
  idleObjects: Record<string, ObjectCounts>
}

const file = join(import.meta.dirname, '../counts.json')

export const writeMeasured = (measured: Measured): void =>
  writeFileSync(file, `${JSON.stringify(measured, undefined, 2)}\n`)

export const readMeasured = (): Measured => JSON.parse(readFileSync(file, 'utf8')) as Measured
