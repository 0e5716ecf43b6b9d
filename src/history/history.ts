import { waitUntil } from 'cloudflare:workers'
import type { TradingChain } from '../chain/client.ts'
import type { HistoryIndexerObject, IndexerStatus } from './indexer.ts'

/** What happened on the chain, as the index knows it. */
export type History = {
  /** Makes sure that the chain is followed; nobody waits for that, and the cron trigger asks again. */
  wake(): void
  /** Resolves when the index has come to the block that is the newest now, or has tried for a while. */
  catchUp(): Promise<IndexerStatus>
}

export function createHistory(
  { HISTORY_INDEXER }: { HISTORY_INDEXER: DurableObjectNamespace<HistoryIndexerObject> },
  chain: TradingChain,
): History {
  const indexer = () => HISTORY_INDEXER.getByName(`${chain.id}`)
  return {
    wake: () =>
      waitUntil(
        indexer()
          .wake()
          .catch(() => {}),
      ),
    catchUp: () => indexer().catchUp(),
  }
}
