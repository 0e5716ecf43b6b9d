import { waitUntil } from 'cloudflare:workers'
import type { TradingChain } from '../chain/configured-chain.ts'
import type { IndexListener } from '../history/chain-follower.ts'
import type { IndexRows } from '../history/store.ts'
import type { PositionChanges } from './book.ts'
import type { KeeperObject } from './object.ts'
import type { KeeperStatus, PositionReport } from './position-report.ts'

/**
 * The keeper of a deployment, which fires due exit rules. It listens to the index, whose calls may be lost: the keeper also
 * compares its positions with the chain.
 */
export type Keeper = IndexListener & {
  /** Starts the keeper's cycles in the background. Failures are ignored, because the cron trigger wakes it again. */
  wake(): void
  /** Makes the next cycle read positions that have changed. */
  mark(changes: PositionChanges): void
  find(positionId: bigint): Promise<PositionReport | undefined>
  status(waitMs?: number): Promise<KeeperStatus>
}

/** Events after which all positions of an agent are sold, or no longer. */
const AGENT_EVENTS = ['CloseAllStarted', 'CloseAllEnded']

/** Returns the keeper of a trade router. Each router has one. */
export function createKeeper(namespace: DurableObjectNamespace<KeeperObject>, { id, trading }: TradingChain): Keeper {
  const keeper = () => namespace.get(namespace.idFromName(`${id}:${trading.TradeRouter}`))
  const inBackground = (work: Promise<unknown>) => waitUntil(work.catch(() => {}))
  const mark: Keeper['mark'] = changes => inBackground(keeper().mark(changes))
  return {
    wake: () => inBackground(keeper().wake()),
    mark,
    onAppend(rows) {
      const changes = changesIn(rows)
      if (changes) mark(changes)
    },
    onReorg: ({ ancestor }) => inBackground(keeper().markAbove(BigInt(ancestor))),
    find: positionId => keeper().find(positionId),
    status: waitMs => keeper().status(waitMs),
  }
}

/** Returns the positions that new rows of the index change; undefined if there are none. */
function changesIn({ trades, events }: IndexRows): PositionChanges | undefined {
  const ofAgents = events.filter(({ name }) => AGENT_EVENTS.includes(name))
  const positionIds = [...new Set(trades.map(({ positionId }) => positionId))]
  const agentIds = [...new Set(ofAgents.flatMap(({ agentId }) => agentId ?? []))].map(BigInt)
  if (positionIds.length === 0 && agentIds.length === 0) return undefined
  const blocks = [...trades.map(({ blockNumber }) => Number(blockNumber)), ...ofAgents.map(({ block }) => block)]
  return { block: BigInt(Math.max(...blocks)), positionIds, agentIds }
}
