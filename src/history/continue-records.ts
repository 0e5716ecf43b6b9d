import { isExecution } from '@agent-trading-service/protocol/agent-book'
import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { lastAtOrBefore } from '@agent-trading-service/protocol/last-at-or-before'
import type { SampleMarket, TrackRecord } from '@agent-trading-service/protocol/track-record'
import type { Trade } from '@agent-trading-service/protocol/trade-events'
import { VAULT_WORTH_EVENTS } from '@agent-trading-service/protocol/vault-book'
import type { Address } from 'viem'
import type { Chain } from '../chain/configured-chain.ts'
import { readDecimals } from '../chain/token-decimals.ts'
import { readPricesAt } from './tables/candles.ts'
import { type ContractEvent, toContractEvents } from './tables/events.ts'
import { chunkKeys, type Preparer, readBatch, type SqlRow } from './tables/table.ts'
import type { RecordsVersion } from './tables/track-records.ts'
import { TRADE_COLUMNS, toTrades } from './tables/trades.ts'

const CAP_EVENTS = ['AllocationCreated', 'AllocationCapUpdated']
/** The events that a pass reads: of caps, of tracks, and of the worth of vaults. */
const PASS_EVENTS = [...CAP_EVENTS, 'AgentPromoted', ...VAULT_WORTH_EVENTS].map(name => `'${name}'`).join()

/** Those of them that are about one agent. */
const AGENT_EVENTS = [...CAP_EVENTS, 'AgentPromoted'].map(name => `'${name}'`).join()

/** The trades and events after a version of the records. `lastBlock` has the last of them. */
export type PassRows = { trades: Trade[]; events: ContractEvent[]; lastBlock: number | undefined }

/**
 * Returns queries for the rows after the newest version of the records at a time (`recordsAt`), up to a block and a
 * time, both in Unix seconds; with `agentId` only those of an agent.
 */
export function selectPassRows(
  db: Preparer,
  { recordsAt, block, time, agentId }: { recordsAt: number; block: number; time: number; agentId?: number },
): D1PreparedStatement[] {
  const isNew = `block > coalesce((SELECT from_block FROM track_records WHERE part = 0 AND hour <= ?3 / 3600
      ORDER BY hour DESC LIMIT 1), -1) AND block <= ?1 AND timestamp <= ?2`
  const order = 'ORDER BY block, log_index'
  if (agentId !== undefined)
    return [
      `SELECT ${TRADE_COLUMNS} FROM trades WHERE agent_id = ?4 AND ${isNew} ${order}`,
      `SELECT * FROM events INDEXED BY events_caps WHERE agent_id = ?4 AND ${isNew} AND name IN (${AGENT_EVENTS}) ${order}`,
    ].map(sql => db.prepare(sql).bind(block, time, recordsAt, agentId))
  return [
    `SELECT ${TRADE_COLUMNS} FROM trades INDEXED BY trades_place WHERE ${isNew} ${order}`,
    `SELECT * FROM events WHERE ${isNew} AND name IN (${PASS_EVENTS}) ${order}`,
  ].map(sql => db.prepare(sql).bind(block, time, recordsAt))
}

/** Returns what the rows of `selectPassRows` are. */
export function toPassRows([tradeRows, eventRows]: readonly SqlRow[][]): PassRows {
  const trades = toTrades(tradeRows)
  const events = toContractEvents(eventRows)
  const blocks = [trades.at(-1)?.blockNumber, events.at(-1)?.block].flatMap(block => block ?? [])
  return { trades, events, lastBlock: blocks.length === 0 ? undefined : Math.max(...blocks.map(Number)) }
}

/** An allocation cap above 0, and when it was set in Unix seconds. */
type Cap = { timestamp: number; cap: bigint }

/** A record with what is needed to continue it. */
export type RecordInput = {
  agentId: number
  capitalMode: number
  vault: Address
  track: number
  caps: Cap[]
  record: TrackRecord | undefined
  executions: Trade[]
}

/** Trades of a deployment without capital modes move the vault's money. */
const modeOf = ({ capitalMode = CapitalMode.Real }: Trade): number => capitalMode

/** Returns all records of a version with the new rows, and an empty record for each new agent and capital mode. */
export async function recordsOf(
  db: D1Database,
  { records }: Pick<RecordsVersion, 'records'>,
  { trades, events }: PassRows,
): Promise<RecordInput[]> {
  const keyOf = (agentId: number, capitalMode: number) => `${agentId} ${capitalMode}`
  const inputs = new Map<string, RecordInput>()
  for (const { cap, ...stored } of records)
    inputs.set(keyOf(stored.agentId, stored.capitalMode), {
      ...stored,
      caps: [{ timestamp: 0, cap }],
      executions: [],
    })
  const executions = trades.filter(isExecution)
  const newAgents = new Set<number>()
  for (const trade of executions) {
    const [agentId, capitalMode] = [Number(trade.agentId), modeOf(trade)]
    const key = keyOf(agentId, capitalMode)
    const { vault } = trade
    const input = inputs.get(key) ?? {
      ...{ agentId, capitalMode, vault, track: 0, caps: [], record: undefined, executions: [] },
    }
    if (!inputs.has(key)) newAgents.add(agentId)
    inputs.set(key, input)
    input.executions.push(trade)
  }
  const lastBlock = Math.max(
    -1,
    ...events.slice(-1).map(({ block }) => block),
    Number(trades.at(-1)?.blockNumber ?? -1),
  )
  const facts = await readAgentFacts(db, [...newAgents], lastBlock)
  const eventsByAgent = Map.groupBy(events, ({ agentId }) => agentId)
  for (const input of inputs.values()) {
    const { agentId, record } = input
    const own = eventsByAgent.get(agentId) ?? []
    if (record === undefined) {
      input.caps = facts.capsOf(agentId)
      input.track = facts.trackOf(agentId)
      continue
    }
    input.caps = [...input.caps, ...own.flatMap(capOf)]
    const promotion = own.findLast(({ name }) => name === 'AgentPromoted')
    if (promotion) input.track = Number(promotion.args.toTrack)
  }
  return [...inputs.values()]
}

function capOf({ name, args, timestamp }: ContractEvent): Cap[] {
  if (!CAP_EVENTS.includes(name)) return []
  const cap = BigInt((args.newCap ?? args.cap) as string)
  return cap > 0n ? [{ timestamp, cap }] : []
}

const CAPS = `SELECT * FROM events INDEXED BY events_caps WHERE agent_id IN (SELECT value FROM json_each(?1))
  AND name IN ('AllocationCreated', 'AllocationCapUpdated', 'AgentPromoted') AND block <= ?2 ORDER BY block, log_index`
const TRACKS = `SELECT agent_id, track FROM json_each(?1) CROSS JOIN agents ON agent_id = value AND (block, log_index) = (
    SELECT block, log_index FROM agents WHERE agent_id = value AND block <= ?2 ORDER BY block DESC, log_index DESC LIMIT 1)`

async function readAgentFacts(db: D1Database, agentIds: readonly number[], block: number) {
  const pages = chunkKeys(agentIds).map(page => JSON.stringify(page))
  const read = async (sql: string) =>
    (
      await readBatch(
        db,
        pages.map(page => db.prepare(sql).bind(page, block)),
      )
    ).flat()
  const [capRows, trackRows] = await Promise.all([read(CAPS), read(TRACKS)])
  const events = Map.groupBy(toContractEvents(capRows), ({ agentId }) => agentId)
  const tracks = new Map((trackRows as { agent_id: number; track: number }[]).map(row => [row.agent_id, row.track]))
  return {
    capsOf: (agentId: number) => (events.get(agentId) ?? []).flatMap(capOf),
    trackOf: (agentId: number) => tracks.get(agentId) ?? 0,
  }
}

/**
 * Reads the prices at times (Unix seconds) of what records may hold. The returned function has the market of a record.
 */
export async function createMarket(
  db: D1Database,
  chain: Chain,
  inputs: readonly RecordInput[],
  times: readonly number[],
): Promise<(input: Pick<RecordInput, 'caps'>) => SampleMarket> {
  const tokens = new Set(
    inputs.flatMap(({ record, executions }) => [
      ...Object.keys(record?.holdings ?? {}),
      ...executions.map(({ token }) => token),
    ]),
  ) as Set<Address>
  const moments = [...tokens].flatMap(token => times.map(time => ({ token, time })))
  const [priceAt, decimalsOf] = await Promise.all([readPricesAt(db, moments), readDecimals(chain, tokens)])
  return ({ caps }) => ({ priceAt, decimalsOf, capAt: time => lastAtOrBefore(caps, time)?.cap ?? 0n })
}
