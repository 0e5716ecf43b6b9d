import { waitUntil } from 'cloudflare:workers'
import type { TradingChain } from '../chain/configured-chain.ts'
import type { PositionChanges } from './book.ts'
import type { KeeperObject } from './object.ts'
import type { KeeperStatus, PositionReport } from './position-report.ts'

/**
 * The keeper of a deployment, which fires due exit rules. It listens to the index, whose calls may be lost: the keeper also
 * compares its positions with the chain.
 */
export type Keeper = {
  /** Starts the keeper's cycles in the background. Failures are ignored, because the cron trigger wakes it again. */
  wake(): void
  /** Brings the next cycle forward, because prices have changed. It would follow within seconds anyway. */
  hurry(): void
  /** Makes the next cycle read positions that have changed. */
  mark(changes: PositionChanges): void
  /** Makes the next cycle read the positions that changed above a block, because a reorg has replaced it. */
  markAbove(block: bigint): void
  /** Runs one cycle and waits for its exits. */
  runCycle(): Promise<void>
  find(positionId: bigint): Promise<PositionReport | undefined>
  status(waitMs?: number): Promise<KeeperStatus>
}

/** Returns the keeper of a trade router. Each router has one. */
export function createKeeper(
  namespace: DurableObjectNamespace<KeeperObject>,
  { id, trading }: Pick<TradingChain, 'id' | 'trading'>,
): Keeper {
  const keeper = () => namespace.get(namespace.idFromName(`${id}:${trading.TradeRouter}`))
  /** Calls again if the call breaks, as when a deploy resets the object. */
  const inBackground = (call: () => Promise<unknown>) =>
    waitUntil(
      call()
        .catch(call)
        .catch(() => {}),
    )
  return {
    wake: () => inBackground(() => keeper().wake()),
    hurry: () => inBackground(() => keeper().hurry()),
    mark: changes => inBackground(() => keeper().mark(changes)),
    markAbove: block => inBackground(() => keeper().markAbove(block)),
    runCycle: () => keeper().runCycle(),
    find: positionId => keeper().find(positionId),
    status: waitMs => keeper().status(waitMs),
  }
}
