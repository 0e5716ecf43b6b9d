import type { StreamEventType } from '@agent-trading-service/protocol/stream-event-types'
import type { Address } from 'viem'

/**
 * An event without a position in the log. Without an agent and a vault it reaches only unfiltered streams. A posted
 * price, and a token's corporate action, has a token instead, and reaches only the streams that select the token.
 */
export type StreamEvent = {
  type: StreamEventType
  agentId: number | undefined
  vault: Address | undefined
  token?: Address | undefined
  data: Record<string, unknown>
}

/**
 * An event in the log. `data` is its JSON; that of a reorg lists every withdrawn event. `loggedAt` is in milliseconds.
 */
export type LoggedEvent = Omit<StreamEvent, 'data'> & {
  seq: number
  id: string
  data: string
  loggedAt: number
}

/** An event that a reorg withdraws, with the fields that streams filter by. */
export type WithdrawnEvent = { id: string; agentId: number | null; vault: Address | null; token?: Address }

/**
 * Which events a stream carries: those of an agent, of a vault, or of all agents, and the prices and corporate actions
 * of `tokens`. With nothing but tokens, it carries these alone.
 */
export type EventFilter = { agentId?: number; vault?: Address; tokens?: readonly Address[] }

export function isSelected(
  { agentId, vault, tokens }: EventFilter,
  event: { [name in 'agentId' | 'vault' | 'token']?: StreamEvent[name] | null },
): boolean {
  if (event.token) return tokens?.includes(event.token) ?? false
  if (agentId !== undefined) return event.agentId === agentId
  return vault === undefined ? tokens === undefined : event.vault === vault
}

/** What a reorg withdrew, parsed once for all filters. */
export type ParsedReorg = ReturnType<typeof parseReorg>

/** Parses the data of a reorg in the log. */
export function parseReorg(data: string) {
  const { withdrawn, ...facts } = JSON.parse(data) as { withdrawn: WithdrawnEvent[] }
  const byAgent = Map.groupBy(withdrawn, ({ agentId }) => agentId)
  const byVault = Map.groupBy(withdrawn, ({ vault }) => vault)
  const ofAllAgents = withdrawn.filter(event => isSelected({}, event))

  function select(filter: EventFilter): readonly WithdrawnEvent[] {
    const { agentId, vault, tokens } = filter
    if (tokens !== undefined) return withdrawn.filter(event => isSelected(filter, event))
    if (agentId !== undefined) return byAgent.get(agentId) ?? []
    return vault === undefined ? ofAllAgents : (byVault.get(vault) ?? [])
  }

  return {
    select,
    /** Returns the reorg's data in the log as if only these events had been withdrawn. */
    dataWith: (selected: readonly WithdrawnEvent[]) => JSON.stringify({ ...facts, withdrawn: selected }),
    /** Returns the JSON that a client gets: it lists only ids. */
    shown: (selected: readonly WithdrawnEvent[]) =>
      JSON.stringify({ ...facts, withdrawn: selected.map(({ id }) => id) }),
  }
}

/** Returns an event's JSON for a filter: a reorg lists only the ids of the withdrawn events that the filter selects. */
export function dataFor({ type, data }: Pick<LoggedEvent, 'type' | 'data'>, filter: EventFilter): string {
  if (type !== 'reorg') return data
  const reorg = parseReorg(data)
  return reorg.shown(reorg.select(filter))
}
