import { waitUntil } from 'cloudflare:workers'
import type { Address } from 'viem'
import { getAgent, getAgents } from '../chain/agents.ts'
import type { Block, Chain, TradingChain } from '../chain/chain.ts'
import { readTree } from '../chain/read-tree.ts'
import { refuse } from '../errors/catalogue.ts'
import { type AgentQuery, isWanted, readCandidates } from './agents.ts'
import { readOwned } from './agents-by-owner.ts'
import { type ClosedQuery, readClosedPositions, readInvested } from './closed-positions.ts'
import { createViewer, unlessUnavailable } from './consistent-read.ts'
import type { HistoryIndexerObject, IndexerStatus } from './object.ts'
import { type Range, readEquity, readWorths } from './time-series.ts'
import { readTrades, type TradeQuery } from './trades.ts'
import { readVaultAgents } from './vault-agents.ts'

/** What happened on the chain: from the index, and from the chain where the index ends. */
export type History = ReturnType<typeof createHistory>

type Bindings = { HISTORY: D1Database; HISTORY_INDEXER: DurableObjectNamespace<HistoryIndexerObject> }

/** Somebody new in each of so many looks: the chain changes faster than it is read. */
export const MOST_ROUNDS = 5

export function createHistory({ HISTORY: db, HISTORY_INDEXER }: Bindings, chain: Chain) {
  const indexer = () => HISTORY_INDEXER.getByName(`${chain.id}`)
  /** Resolves when the index has come to the block that is the newest now, or has tried for a while. */
  const catchUp = (): Promise<IndexerStatus> => indexer().catchUp()
  const viewer = createViewer({ db, chain, catchUp })

  /** The newest block; throws AGENT_NOT_FOUND where the agent is not in it. */
  const headWith = async (agentId: bigint): Promise<Block> => (await getAgent(chain, agentId)).block

  /**
   * The records of the agents that `find` names. The registry is read after the events, so the events of the blocks in
   * between are looked at too, until they name nobody new.
   */
  async function recordsOf<Found extends { ids: bigint[]; asOf: Block; lagBlocks: number }>(
    find: (head: Promise<Block>) => Promise<Found>,
  ) {
    let found = await find(readTree(chain, []).then(({ block }) => block))
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const { block, agents } = await getAgents(chain, found.ids)
      const known = new Set(found.ids)
      const isLater = block.number > found.asOf.number && found.lagBlocks === 0
      const now = isLater ? await find(Promise.resolve(block)) : found
      const wanted = new Set(now.ids)
      if (now.ids.every(id => known.has(id)))
        return { ...now, agents: agents.filter(({ agentId }) => wanted.has(agentId)) }
      found = now
    }
    throw refuse('HISTORY_UNAVAILABLE')
  }

  return {
    catchUp,
    /** Makes sure that the chain is followed; nobody waits for that, and the cron trigger asks again. */
    wake: () =>
      waitUntil(
        indexer()
          .wake()
          .catch(() => {}),
      ),
    /** The block that the index is whole to; undefined where there is none yet, or it cannot be read. */
    reach: viewer.reach,
    /** Samples what is due; the cron trigger waits for it. */
    sample: () => indexer().sample(),

    /** A page of an agent's trades, newest first. Throws AGENT_NOT_FOUND, HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
    trades: (trading: TradingChain, query: TradeQuery) =>
      readTrades({ viewer, chain: trading, db }, query, headWith(query.agentId)),

    /** A page of an agent's closed positions, newest first. Throws as `trades` does. */
    closedPositions: (trading: TradingChain, query: ClosedQuery) =>
      readClosedPositions({ viewer, chain: trading, db }, query, headWith(query.agentId)),

    /** All that was paid for a position by a block; undefined where that is not known now. */
    invested: (trading: TradingChain, position: { agentId: bigint; positionId: bigint }, block: Block) =>
      readInvested({ viewer, chain: trading, db }, position, Promise.resolve(block)).catch(unlessUnavailable),

    /** The agents that an owner holds, by id. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
    async agentsOf(owner: Address) {
      const { agents, ...found } = await recordsOf(head => readOwned({ viewer, chain }, owner, head))
      return { ...found, agents: agents.filter(({ agent }) => agent.owner === owner) }
    },

    /**
     * A page of the agents that are what is asked for, newest first; `next` is the id below which there may be more, of
     * a short page too. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
     */
    async agents(query: AgentQuery) {
      const { agents, end, ...found } = await recordsOf(head => readCandidates({ viewer, chain }, query, head))
      const wanted = agents.filter(({ agent }) => isWanted(agent, query))
      const page = wanted.slice(0, query.limit)
      return { ...found, agents: page, next: wanted.length > page.length ? page.at(-1)?.agentId : end }
    },

    /** An agent's equity over time, by a range that depends on the time of the newest block. Throws as `trades` does. */
    async equity(agentId: bigint, rangeAt: (time: bigint) => Range) {
      const head = await headWith(agentId)
      return readEquity(viewer, agentId, rangeAt(head.timestamp), head)
    },

    /** What the shares of a vault were worth over time. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
    worths: (vault: Address, range: Range, head: Block) => readWorths(viewer, vault, range, head),

    /** Who trades in a vault. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
    vaultAgents: (trading: TradingChain, vault: Address, head: Block) =>
      readVaultAgents({ viewer, chain: trading, db }, vault, head),
  }
}
