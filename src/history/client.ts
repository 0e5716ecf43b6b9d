import { waitUntil } from 'cloudflare:workers'
import type { Position } from '@agent-trading-service/protocol/position'
import type { Address, Hex } from 'viem'
import { getAgent, getAgents } from '../chain/agents.ts'
import type { ChainContext } from '../chain/chain-context.ts'
import type { Block, Chain, TradingChain } from '../chain/configured-chain.ts'
import type { VaultWorth } from '../chain/equity-and-worth.ts'
import { readPendingOwners } from '../chain/read-owner-terms.ts'
import { readTree } from '../chain/read-tree.ts'
import { getRisk } from '../chain/risk-state.ts'
import { clockSeconds } from '../clock.ts'
import type { IndexerStatus } from './chain-follower.ts'
import { createFeedback } from './feedback-store.ts'
import type { HistoryIndexerObject } from './object.ts'
import { readAgentTotals, type StatisticsQuery } from './read-agent-statistics.ts'
import {
  type AgentIds,
  type AgentQuery,
  matchesFilter,
  readAgentCandidates,
  readAgentIdsByName,
  readAgentIdsOfOwner,
  readHadAgentBefore,
  readVaultAgentSummary,
} from './read-agents.ts'
import { type CandleQuery, readCandles, readIndexedPrices } from './read-candles.ts'
import { readCorporateActions, readLastMultiplierChanges } from './read-corporate-actions.ts'
import { equityPointAt, readEquityPoints } from './read-equity.ts'
import { type LeaderboardQuery, readLeaderboard } from './read-leaderboard.ts'
import { MAX_OPEN_ORDERS, type OrderQuery, readOrder, readOrders } from './read-orders.ts'
import { type OwnerEventQuery, readOfferedAgents, readOwnerEvents } from './read-owner-events.ts'
import { readPendingOperations } from './read-pending-operations.ts'
import { createSnapshotReader, undefinedIfUnavailable } from './read-snapshot.ts'
import {
  type ClosedPositionQuery,
  type IntentTradeQuery,
  readClosedPositions,
  readIntentTrade,
  readPositionLife,
  readTrades,
  type TradeQuery,
} from './read-trades.ts'
import { readSharePricePoints, readVaultPerformance, sharePricePointAt } from './read-vault-worth.ts'
import { readMigrationState } from './store.ts'
import { prefixOf } from './tables/agent-names.ts'
import { readTimeSeries, type TimeRange } from './time-range.ts'

export type History = ReturnType<typeof createHistory>

/** The part of the context that reads the chain and its past. */
export type HistoryContext = ChainContext & { readonly history: History }

type HistoryBindings = { HISTORY: D1Database; HISTORY_INDEXER: DurableObjectNamespace<HistoryIndexerObject> }

const DAY_SECONDS = 86_400

/**
 * Creates the history, as operations see it: the index as of at least the newest block that they have read. What reads
 * it throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE, and what reads it of an agent AGENT_NOT_FOUND too.
 */
export function createHistory({ HISTORY: db, HISTORY_INDEXER }: HistoryBindings, chain: Chain) {
  const indexer = () => HISTORY_INDEXER.getByName(`${chain.id}`)
  const catchUp = (block?: number): Promise<IndexerStatus> => indexer().catchUp(block)
  const snapshots = createSnapshotReader(db, chain, catchUp)

  /** Returns the newest block. Throws AGENT_NOT_FOUND if it does not have the agent. */
  const headWithAgent = async (agentId: bigint): Promise<Block> => (await getAgent(chain, agentId)).block

  /**
   * Reads the records of agents at the block at which the index has selected them; the newest records if that is too
   * long ago for a node to have its state.
   */
  async function withRecords<Found extends AgentIds>(found: Promise<Found>) {
    const { ids, ...facts } = await found
    const { agents } = await getAgents(chain, ids, facts.lagBlocks === 0 ? facts.asOf : undefined)
    return { ...facts, agents }
  }

  const newestBlock = async (): Promise<Block> => (await readTree(chain, {})).block

  /** Reads up to which time the index has what happened before a block. */
  async function reachOf(head: Block) {
    const { cursor, facts } = await snapshots.readSnapshot(head, () => [])
    return { reached: cursor.timestamp, lagBlocks: facts.lagBlocks, indexed: facts.asOf }
  }

  return {
    /** Makes the indexer read the chain up to the head, for about three seconds. */
    catchUp: () => catchUp(),

    /** Starts the indexer, without waiting for it. The cron trigger calls this again. */
    wake: () =>
      waitUntil(
        indexer()
          .wake()
          .catch(() => {}),
      ),

    /** Returns the block up to which the index is complete; undefined if it is empty or unreachable. */
    cursor: snapshots.readIndexCursor,

    migrations: () => readMigrationState(db),

    /**
     * Reads the ids of the timelock's pending operations; none if no timelock is configured. Throws an error of the
     * database.
     */
    pendingOperations: async () =>
      chain.contracts.Timelock === undefined ? [] : readPendingOperations(db, chain.contracts.Timelock),

    /** Drops the index and the event log with it. Both are built again from the chain. */
    replay: () => indexer().replay(),

    trades: (query: TradeQuery) =>
      readTrades(snapshots, query, query.agentId === undefined ? newestBlock() : headWithAgent(query.agentId)),

    ownerEvents: (query: OwnerEventQuery) => readOwnerEvents(snapshots, query, headWithAgent(query.agentId)),

    /** Reads the agents that are offered to an address, the newest offer first. */
    async offeredAgents(ownerControls: Address, to: Address) {
      const { agents, ...facts } = await withRecords(readOfferedAgents(snapshots, ownerControls, to, newestBlock()))
      const ids = agents.map(({ agentId }) => agentId)
      const pending = await readPendingOwners(chain, ownerControls, ids, facts.lagBlocks === 0 ? facts.asOf : undefined)
      return { ...facts, agents: agents.filter((_, index) => pending[index] === to) }
    },

    intentTrade: (intent: IntentTradeQuery) => readIntentTrade(db, intent),

    closedPositions: (trading: TradingChain, query: ClosedPositionQuery) =>
      readClosedPositions({ snapshots, chain: trading }, query, headWithAgent(query.agentId)),

    orders: (query: OrderQuery) => readOrders({ snapshots, chain, db }, query, headWithAgent(query.agentId)),

    /** Reads all orders of an agent that the index has as open. */
    openOrders: (agentId: bigint) =>
      readOrders({ snapshots, chain, db }, { agentId, state: 'open', limit: MAX_OPEN_ORDERS }, headWithAgent(agentId)),

    order: (agentId: bigint, orderId: Hex) =>
      readOrder({ snapshots, chain, db }, { agentId, orderId }, headWithAgent(agentId)),

    /** Reads what the trades of a closed position say about it; undefined if they are currently unknown. */
    positionLife: (position: Pick<Position, 'agentId' | 'positionId'>, block: Block) =>
      readPositionLife(snapshots, position, block).catch(undefinedIfUnavailable),

    /** Reads the agents of an owner, by id, and apart those that it was only given. */
    async agentsByOwner(owner: Address) {
      const { agents, given, ...facts } = await withRecords(readAgentIdsOfOwner(snapshots, owner, newestBlock()))
      const current = agents.filter(({ agent }) => agent.owner === owner)
      const isGiven = ({ agentId }: { agentId: bigint }) => given.has(agentId)
      return { ...facts, agents: current.filter(agent => !isGiven(agent)), given: current.filter(isGiven) }
    },

    /**
     * Returns whether an owner had an agent a day ago that it still has, and was not only given. Throws the database's
     * error.
     */
    hadAgentBefore: (owner: Address) => readHadAgentBefore(db, owner, clockSeconds() - DAY_SECONDS),

    /** Reads agents with a word in their names that begins as typed. */
    async agentsByName(typed: string, limit: number) {
      const prefix = prefixOf(typed)
      const { agents, ...facts } = await withRecords(readAgentIdsByName(snapshots, prefix, newestBlock()))
      return { ...facts, agents: agents.slice(0, limit) }
    },

    /**
     * Reads a page of agents, newest first. `next` is the id below which there may be more; even a page that is not
     * full can have one.
     */
    async agents(query: AgentQuery) {
      const { agents, end, ...facts } = await withRecords(readAgentCandidates(snapshots, query, newestBlock()))
      const matching = agents.filter(({ agent }) => matchesFilter(agent, query))
      const page = matching.slice(0, query.limit)
      return { ...facts, agents: page, next: matching.length > page.length ? page.at(-1)?.agentId : end }
    },

    /** Reads an agent's equity over time. `rangeAt` gets the time of the newest block. */
    async equity(trading: TradingChain, agentId: bigint, rangeAt: (blockTime: bigint) => Promise<TimeRange>) {
      const { block, risk } = await getRisk(trading, agentId)
      const range = await rangeAt(block.timestamp)
      const reach = await reachOf(block)
      return readTimeSeries(db, range, { ...reach, point: equityPointAt(risk.equity, block), block }, times =>
        readEquityPoints({ db, chain: trading }, agentId, times),
      )
    },

    candles: (query: CandleQuery, head: Block) => readCandles(snapshots, query, head),

    corporateActions: (token: Address, head: Block) => readCorporateActions(snapshots, token, head),

    lastMultiplierChanges: (tokens: readonly Address[]) => readLastMultiplierChanges(snapshots, tokens, newestBlock()),

    /** Reads the prices of tokens a day before a time in Unix seconds; empty if the index does not have them. */
    pricesDayBefore: (tokens: readonly Address[], time: bigint) =>
      readIndexedPrices(snapshots, tokens, Number(time) - DAY_SECONDS),

    /** Reads a vault's share price over time; `newest` is its worth at a block. */
    async sharePrices(trading: TradingChain, vault: Address, range: TimeRange, newest: VaultWorth, block: Block) {
      const reach = await reachOf(block)
      return readTimeSeries(db, range, { ...reach, point: sharePricePointAt(newest, block), block }, times =>
        readSharePricePoints({ db, chain: trading }, vault, times),
      )
    },

    async vaultPerformance(trading: TradingChain, vault: Address, newest: VaultWorth, block: Block) {
      const { reached } = await reachOf(block)
      return readVaultPerformance({ db, chain: trading }, vault, sharePricePointAt(newest, block), reached)
    },

    leaderboard: (query: LeaderboardQuery, head: Block) => readLeaderboard({ snapshots, chain, db }, query, head),

    agentTotals: (query: StatisticsQuery) =>
      readAgentTotals({ snapshots, chain, db }, query, headWithAgent(query.agentId)),

    feedback: createFeedback(db, chain),

    vaultAgents: (vault: Address, head: Block) => readVaultAgentSummary(snapshots, vault, head),
  }
}
