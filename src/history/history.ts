import { waitUntil } from 'cloudflare:workers'
import type { Address } from 'viem'
import { type Block, type Chain, read, type TradingChain } from '../chain/client.ts'
import { agentCalls, getAgents, toAgent } from '../chain/registry.ts'
import { refuse } from '../errors.ts'
import { type ClosedQuery, readClosedPositions, readInvested } from './closed-positions.ts'
import type { HistoryIndexerObject, IndexerStatus } from './indexer.ts'
import { createNode } from './node.ts'
import { readOwned } from './owners.ts'
import { readTrades, type TradeQuery } from './trades.ts'
import { createViewer, unlessUnavailable } from './view.ts'

/** What happened on the chain: from the index, and from the chain where the index ends. */
export type History = ReturnType<typeof createHistory>

type Bindings = { HISTORY: D1Database; HISTORY_INDEXER: DurableObjectNamespace<HistoryIndexerObject> }

export function createHistory({ HISTORY: db, HISTORY_INDEXER }: Bindings, chain: Chain, rpcUrls: readonly string[]) {
  const indexer = () => HISTORY_INDEXER.getByName(`${chain.id}`)
  const node = createNode(rpcUrls)
  /** Resolves when the index has come to the block that is the newest now, or has tried for a while. */
  const catchUp = (): Promise<IndexerStatus> => indexer().catchUp()
  const viewer = createViewer({ db, chain, node, catchUp })

  /** The newest block; throws AGENT_NOT_FOUND where the agent is not in it. */
  async function headWith(agentId: bigint): Promise<Block> {
    const { block, results } = await read(chain, agentCalls(chain, agentId))
    if (toAgent(results[0], results[1]) === undefined) throw refuse('AGENT_NOT_FOUND', { agentId: `${agentId}` })
    return block
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

    /** A page of an agent's trades, newest first. Throws AGENT_NOT_FOUND, HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
    trades: (trading: TradingChain, query: TradeQuery) =>
      readTrades({ viewer, chain: trading, node, db }, query, headWith(query.agentId)),

    /** A page of an agent's closed positions, newest first. Throws as `trades` does. */
    closedPositions: (trading: TradingChain, query: ClosedQuery) =>
      readClosedPositions({ viewer, chain: trading, node, db }, query, headWith(query.agentId)),

    /** All that was paid for a position by a block; undefined where that is not known now. */
    invested: (trading: TradingChain, position: { agentId: bigint; positionId: bigint }, block: Block) =>
      readInvested({ viewer, chain: trading, node, db }, position, Promise.resolve(block)).catch(unlessUnavailable),

    /**
     * The agents that an owner holds, by id. The registry is read after the events, so the events of the blocks in
     * between are looked at too, until none is new. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
     */
    async agentsOf(owner: Address) {
      let owned = await readOwned(
        { viewer, chain },
        owner,
        read(chain, []).then(({ block }) => block),
      )
      for (;;) {
        const { block, agents } = await getAgents(chain, owned.ids)
        const known = new Set(owned.ids)
        const isLater = block.number > owned.asOf.number && owned.lagBlocks === 0
        const now = isLater ? await readOwned({ viewer, chain }, owner, Promise.resolve(block)) : owned
        if (now.ids.every(id => known.has(id)))
          return { ...now, agents: agents.filter(({ agent }) => agent.owner === owner) }
        owned = now
      }
    },
  }
}
