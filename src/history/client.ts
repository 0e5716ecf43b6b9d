import { waitUntil } from 'cloudflare:workers'
import type { Address } from 'viem'
import { getAgent, getAgents } from '../chain/agents.ts'
import type { Block, Chain, TradingChain } from '../chain/configured-chain.ts'
import { readTree } from '../chain/read-tree.ts'
import { withDeadline } from '../concurrency.ts'
import { refuse } from '../errors/refuse.ts'
import type { IndexerStatus } from './chain-follower.ts'
import { createFeedback } from './feedback-store.ts'
import type { HistoryIndexerObject } from './object.ts'
import { type AgentQuery, matchesFilter, readAgentCandidates, readAgentIdsOfOwner } from './read-agents.ts'
import { type CandleQuery, readCandles, readIndexedPrices } from './read-candles.ts'
import { createSnapshotReader, undefinedIfUnavailable } from './read-index-to-head.ts'
import { type LeaderboardQuery, readLeaderboard } from './read-leaderboard.ts'
import { readEquity, readSharePrices, type TimeRange } from './read-time-series.ts'
import {
  type ClosedPositionQuery,
  readClosedPositions,
  readInvestedUsdc,
  readTrades,
  type TradeQuery,
} from './read-trades.ts'
import { readVaultAgentSummary } from './read-vault-agent-summary.ts'
import { readMigrationState } from './store.ts'

export type History = ReturnType<typeof createHistory>

type HistoryBindings = { HISTORY: D1Database; HISTORY_INDEXER: DurableObjectNamespace<HistoryIndexerObject> }

const DAY_SECONDS = 86_400

/** How often two reads at different blocks are repeated until both have the same agents. */
export const MAX_READ_ATTEMPTS = 5

/** How long a read of an agent without samples waits for the first one. */
const MAX_SAMPLING_MS = 1_500

/** Creates the history, as operations see it: the index, completed from the chain up to the head. */
export function createHistory({ HISTORY: db, HISTORY_INDEXER }: HistoryBindings, chain: Chain) {
  const indexer = () => HISTORY_INDEXER.getByName(`${chain.id}`)
  const catchUp = (): Promise<IndexerStatus> => indexer().catchUp()
  const snapshots = createSnapshotReader({ db, chain, catchUp })
  const sourcesOf = (trading: TradingChain) => ({ snapshots, chain: trading, db })

  /** Returns the newest block. Throws AGENT_NOT_FOUND if it does not have the agent. */
  const headWithAgent = async (agentId: bigint): Promise<Block> => (await getAgent(chain, agentId)).block

  /**
   * Reads the records of the agents that `findIds` selects. The records are read at a later block than the ids, so the ids
   * are read again at that block until there is no new one.
   */
  async function readRecords<Found extends { ids: bigint[]; asOf: Block; lagBlocks: number }>(
    findIds: (head: Promise<Block>) => Promise<Found>,
  ) {
    let found = await findIds(readTree(chain, []).then(({ block }) => block))
    for (let attempt = 0; attempt < MAX_READ_ATTEMPTS; attempt++) {
      const { block, agents } = await getAgents(chain, found.ids)
      const readIds = new Set(found.ids)
      const isOutdated = block.number > found.asOf.number && found.lagBlocks === 0
      const current = isOutdated ? await findIds(Promise.resolve(block)) : found
      const currentIds = new Set(current.ids)
      if (current.ids.every(id => readIds.has(id)))
        return { ...current, agents: agents.filter(({ agentId }) => currentIds.has(agentId)) }
      found = current
    }
    throw refuse('HISTORY_UNAVAILABLE')
  }

  return {
    /** Makes the indexer read the chain up to the head, for about three seconds. */
    catchUp,

    /** Starts the indexer, without waiting for it. The cron trigger calls this again. */
    wake: () =>
      waitUntil(
        indexer()
          .wake()
          .catch(() => {}),
      ),

    /** Returns the block up to which the index is complete; undefined if it is empty or unreachable. */
    cursor: snapshots.readIndexCursor,

    /** Reads which migrations of the database are applied. Throws HISTORY_UNAVAILABLE. */
    migrations: () => readMigrationState(db),

    /** Drops the index, apart from its samples, and the event log with it. Both are built again from the chain. */
    replay: () => indexer().replay(),

    /** Takes the samples that are due. */
    sample: () => indexer().sampleDue(),

    /** Reads a page of an agent's trades, newest first. Throws AGENT_NOT_FOUND, HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
    trades: (trading: TradingChain, query: TradeQuery) =>
      readTrades(sourcesOf(trading), query, headWithAgent(query.agentId)),

    /** Reads a page of an agent's closed positions, newest first. Throws as `trades` does. */
    closedPositions: (trading: TradingChain, query: ClosedPositionQuery) =>
      readClosedPositions(sourcesOf(trading), query, headWithAgent(query.agentId)),

    /** Reads the total paid for a position up to a block; undefined if it is currently unknown. */
    investedUsdc: (trading: TradingChain, position: { agentId: bigint; positionId: bigint }, block: Block) =>
      readInvestedUsdc(sourcesOf(trading), position, Promise.resolve(block)).catch(undefinedIfUnavailable),

    /** Reads the agents of an owner, by id. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
    async agentsByOwner(owner: Address) {
      const { agents, ...found } = await readRecords(head => readAgentIdsOfOwner({ snapshots, chain }, owner, head))
      return { ...found, agents: agents.filter(({ agent }) => agent.owner === owner) }
    },

    /**
     * Reads a page of agents, newest first. `next` is the id below which there may be more; even a page that is not
     * full can have one. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
     */
    async agents(query: AgentQuery) {
      const { agents, end, ...found } = await readRecords(head =>
        readAgentCandidates({ snapshots, chain }, query, head),
      )
      const matching = agents.filter(({ agent }) => matchesFilter(agent, query))
      const page = matching.slice(0, query.limit)
      return { ...found, agents: page, next: matching.length > page.length ? page.at(-1)?.agentId : end }
    },

    /** Reads an agent's equity over time. `rangeAt` gets the time of the newest block. Throws as `trades` does. */
    async equity(agentId: bigint, rangeAt: (blockTime: bigint) => TimeRange) {
      const read = async () => {
        const head = await headWithAgent(agentId)
        return readEquity(snapshots, agentId, rangeAt(head.timestamp), head)
      }
      const series = await read()
      if (series.points.length > 0 || series.opening !== undefined) return series
      // The first sample of an agent is due at once, but the indexer takes samples every few seconds.
      const isSampled = indexer()
        .sample()
        .then(
          () => true,
          () => false,
        )
      return (await withDeadline(isSampled, Date.now() + MAX_SAMPLING_MS, () => false)) ? read() : series
    },

    /** Reads the candles of a token. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
    candles: (query: CandleQuery, head: Block) => readCandles({ snapshots, chain }, query, head),

    /** Reads the prices of tokens a day before a time in Unix seconds; empty if the index does not have them. */
    pricesDayBefore: (tokens: readonly Address[], time: bigint) =>
      readIndexedPrices(snapshots, tokens, Number(time) - DAY_SECONDS),

    /** Reads a vault's share price over time. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
    sharePrices: (vault: Address, range: TimeRange, head: Block) => readSharePrices(snapshots, vault, range, head),

    /**
     * Reads a page of the leaderboard; undefined if its cursor has expired. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
     */
    leaderboard: (query: LeaderboardQuery, head: Block) => readLeaderboard(snapshots, query, head),

    /** Access to the weekly feedback files and their state on chain. */
    feedback: createFeedback(db, chain),

    /**
     * Reads the agents of a vault; `changed` are further agents to treat as changed. Throws HISTORY_UNAVAILABLE or
     * CHAIN_UNREACHABLE.
     */
    vaultAgents: (trading: TradingChain, vault: Address, head: Block, changed?: readonly bigint[]) =>
      readVaultAgentSummary(sourcesOf(trading), vault, head, changed),
  }
}
