import { waitUntil } from 'cloudflare:workers'
import type { TradingChain } from '../chain/configured-chain.ts'
import type { KeeperStatus } from './keeper-status.ts'
import type { KeeperObject } from './object.ts'
import type { PositionReport } from './position-report.ts'

/** The keeper of a deployment, which fires due exit rules. */
export type Keeper = {
  /** Starts the keeper's cycles in the background. Failures are ignored, because the cron trigger wakes it again. */
  wake(): void
  find(positionId: bigint): Promise<PositionReport | undefined>
  status(waitMs?: number): Promise<KeeperStatus>
}

/** Returns the keeper of a trade router. Each router has one. */
export function createKeeper(namespace: DurableObjectNamespace<KeeperObject>, { id, trading }: TradingChain): Keeper {
  const keeper = () => namespace.get(namespace.idFromName(`${id}:${trading.TradeRouter}`))
  return {
    wake: () =>
      waitUntil(
        keeper()
          .wake()
          .catch(() => {}),
      ),
    find: positionId => keeper().find(positionId),
    status: waitMs => keeper().status(waitMs),
  }
}
