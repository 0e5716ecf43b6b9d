import type { Address } from 'viem'

/** Whose events a stream carries: an agent's, a vault's, or everybody's. */
export type Subject = { agentId?: number; vault?: Address }

/** What the fields of an event are said of; what is of nobody reaches the streams of everything alone. */
export type Fact = {
  type: EventType
  agentId: number | undefined
  vault: Address | undefined
  data: Record<string, unknown>
}

/** The names of events, as they stand in the field `event`. */
export const EVENT_TYPES = [
  ...(['trade', 'exit', 'ladder', 'intent', 'risk', 'price-stale', 'price-fresh', 'reorg'] as const),
] as const
export type EventType = (typeof EVENT_TYPES)[number]

/** An event at its place in the log; `data` is its JSON, of a reorg with everything that it withdraws. */
export type Entry = {
  seq: number
  id: string
  type: EventType
  agentId: number | undefined
  vault: Address | undefined
  data: string
}

/** What a reorg withdraws: the events of some agents, so that each stream is told of its own. */
export type Withdrawn = { id: string; agentId: number | null; vault: Address | null }

/** What is no log of the chain is numbered from here within a block: past every log that a block could have. */
export const FIRST_FACT = 1_000_000

/** A place in the history of the chain; `branch` counts the reorganizations before it. */
export type EventPlace = { block: number; index: number; branch: number }

/**
 * The id of an event: block and index in it. A place that was given before, on a branch that the chain has left, is told
 * apart by the number of the branch.
 */
export const idOf = ({ block, index, branch }: EventPlace, isGivenBefore: boolean): string =>
  isGivenBefore ? `${block}-${index}.${branch}` : `${block}-${index}`

const ID = /^(0|[1-9]\d{0,14})-(0|[1-9]\d{0,8})(?:\.([1-9]\d{0,8}))?$/

/** Whether a text could be the id of an event. */
export const isEventId = (text: string): boolean => ID.test(text)

/** The place that an id names; `branch` is undefined where it names none. Throws on anything else than an id. */
export function placeOf(id: string): { block: number; index: number; branch: number | undefined } {
  const [, block, index, branch] = ID.exec(id) ?? []
  if (block === undefined || index === undefined) throw new Error('not the id of an event')
  return { block: Number(block), index: Number(index), branch: branch === undefined ? undefined : Number(branch) }
}

export const isOf = ({ agentId, vault }: Subject, of: { agentId?: unknown; vault?: unknown }): boolean =>
  agentId !== undefined ? of.agentId === agentId : vault === undefined || of.vault === vault

const encoder = new TextEncoder()

/** An event as it is written to the streams of a subject. */
export function frameOf({ id, type, data }: Pick<Entry, 'id' | 'type' | 'data'>, subject: Subject): Uint8Array {
  const shown = type === 'reorg' ? ownPart(data, subject) : data
  return encoder.encode(`id: ${id}\nevent: ${type}\ndata: ${shown}\n\n`)
}

/** A reorg with the ids alone of what it withdraws from a subject. */
function ownPart(data: string, subject: Subject): string {
  const { withdrawn, ...facts } = JSON.parse(data) as { withdrawn: Withdrawn[] }
  return JSON.stringify({ ...facts, withdrawn: withdrawn.filter(of => isOf(subject, of)).map(({ id }) => id) })
}

/** Opens a stream, at an id to come back to even where nothing follows. */
export const openingOf = (id: string, retryMs: number) => encoder.encode(`retry: ${retryMs}\nid: ${id}\n: open\n\n`)

/** Says that the stream lives; its id moves on where a client comes back to, and is no event. */
export const heartbeatOf = (id: string) => encoder.encode(`id: ${id}\n: heartbeat\n\n`)
