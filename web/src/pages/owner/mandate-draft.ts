import type { components } from '@agent-trading-service/client'
import { formatExactly } from '../../format/amounts.ts'

type Control = components['schemas']['AgentControl']
export const LIMITS = [
  ['maxTradeUsdc', 'Largest trade, USDC'],
  ['maxDailyTurnoverUsdc', 'Buys in 24 hours, USDC'],
  ['maxExposureUsdc', 'Largest exposure, USDC'],
] as const
export const MODES = ['trade', 'reduceOnly', 'stopped'] as const
type Fields = Record<(typeof LIMITS)[number][0], string> & {
  mode: (typeof MODES)[number]
  allowed: string[]
  /** The value of a `datetime-local` field; empty without an end. */
  until: string
}

/** What someone edited, and the state of the agent's control that the edits started from. */
export type Draft = { startedFrom: string; edits: Partial<Fields> }

/**
 * Returns a text that differs after every message of the owner: a stop need not change the mandate, but edits from
 * before it must not undo it.
 */
export const stateOf = ({ mandate, closingSince, owner, ownerNonce }: Control): string =>
  JSON.stringify([mandate, closingSince, owner, ownerNonce])

/** Returns the mandate on chain as fields, with the edits of a draft that started from this state. */
export function fieldsOf(control: Control, draft: Draft | undefined): Fields {
  const { mode, maxTradeUsdc, maxDailyTurnoverUsdc, maxExposureUsdc, allowedTokens, validUntil } = control.mandate
  return {
    // A mode that this page does not know must not become one that lets the agent buy.
    mode: MODES.find(known => known === mode) ?? 'stopped',
    maxTradeUsdc: toHuman(maxTradeUsdc),
    maxDailyTurnoverUsdc: toHuman(maxDailyTurnoverUsdc),
    maxExposureUsdc: toHuman(maxExposureUsdc),
    allowed: allowedTokens?.map(({ address }) => address) ?? [],
    until: validUntil === null ? '' : toLocalField(Number(validUntil)),
    ...(draft && isCurrent(control, draft) && draft.edits),
  }
}

/** Adds edits to a draft, or begins one if the state has changed since the draft began. */
export function edit(control: Control, draft: Draft | undefined, edits: Partial<Fields>): Draft {
  const earlier = draft && isCurrent(control, draft) ? draft.edits : {}
  return { startedFrom: stateOf(control), edits: { ...earlier, ...edits } }
}

/** Whether edits were dropped that differ from the mandate on chain. */
export function hasDropped(control: Control, draft: Draft | undefined): boolean {
  if (draft === undefined || isCurrent(control, draft)) return false
  const onChain = fieldsOf(control, undefined)
  return JSON.stringify({ ...onChain, ...draft.edits }) !== JSON.stringify(onChain)
}

const isCurrent = (control: Control, { startedFrom }: Draft): boolean => startedFrom === stateOf(control)

const toHuman = (base: string | null): string => (base === null ? '' : formatExactly(base, 6).replaceAll(',', ''))

/** Returns Unix seconds as the value of a `datetime-local` field, in the reader's time zone. */
function toLocalField(seconds: number): string {
  const offset = new Date(seconds * 1000).getTimezoneOffset() * 60
  return new Date((seconds - offset) * 1000).toISOString().slice(0, 19)
}

/** Parses the value of a `datetime-local` field to Unix seconds; undefined if it is empty or no time. */
export function fromLocalField(text: string): number | undefined {
  const time = new Date(text).getTime()
  return Number.isNaN(time) ? undefined : Math.floor(time / 1000)
}
