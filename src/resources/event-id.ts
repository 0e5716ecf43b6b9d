import { z } from 'zod'

/** Events that do not come from a log are numbered from here within their block, above any log index. */
export const FIRST_OFF_CHAIN_INDEX = 1_000_000

/** A position above every log of a block and below its events that do not come from a log. */
export const END_OF_BLOCK = FIRST_OFF_CHAIN_INDEX - 1

/** A position on a branch of the chain. `branch` counts the reorgs before it. */
export type EventPosition = { block: number; index: number; branch: number }

/** Returns the id `<block>-<index>`. A position that a reorg reuses gets the id `<block>-<index>.<branch>`. */
export const formatEventId = ({ block, index, branch }: EventPosition, isReused: boolean): string =>
  isReused ? `${block}-${index}.${branch}` : `${block}-${index}`

const ID_PATTERN = /^(0|[1-9]\d{0,14})-(0|[1-9]\d{0,8})(?:\.([1-9]\d{0,8}))?$/

/** The id of a stream event, to resume after it. */
export const eventId = z
  .string()
  .refine(text => ID_PATTERN.test(text), 'must be the id of an event, such as 1234-5')
  .meta({ example: '1234-5' })

/** Parses an event id. `branch` is undefined if the id names none. Throws if the text is not an event id. */
export function parseEventId(id: string): { block: number; index: number; branch: number | undefined } {
  const [, block, index, branch] = ID_PATTERN.exec(id) ?? []
  if (block === undefined || index === undefined) throw new Error(`${id} is not an event id`)
  return {
    block: Number(block),
    index: Number(index),
    branch: branch === undefined ? undefined : Number(branch),
  }
}
