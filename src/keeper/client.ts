import { waitUntil } from 'cloudflare:workers'
import type { Hex } from 'viem'
import type { TradingChain } from '../chain/configured-chain.ts'
import type { OrderReport } from '../resources/order.ts'
import type { PositionChanges } from './book.ts'
import type { KeeperObject } from './object.ts'
import type { OpenOrder } from './order-entry.ts'
import type { KeeperStatus, PositionReport } from './position-report.ts'

/**
 * The keeper of a deployment, which fires due exit rules and executes orders. It listens to the index, whose calls may be lost: the
 * keeper also compares its positions and orders with the chain, and the index sends all open orders again.
 */
export type Keeper = {
  /** Starts the keeper's cycles in the background. Failures are ignored, because the cron trigger wakes it again. */
  wake(): void
  /** Brings the next cycle forward, because prices have changed. It would follow within seconds anyway. */
  hurry(): void
  /** Makes the next cycle read positions that have changed. */
  mark(changes: PositionChanges[]): void
  /** Makes the next cycle read the positions that changed above a block, because a reorg has replaced it. */
  markAbove(block: bigint): void
  /** Makes the next cycle look at orders that were placed. Those that the keeper knows stay as they are. */
  placeOrders(orders: readonly OpenOrder[]): void
  /** Does the same, and returns how many of the orders the keeper did not know. */
  repairOrders(orders: readonly OpenOrder[]): Promise<number>
  /** Runs one cycle and waits for its transactions. */
  runCycle(): Promise<void>
  find(positionId: bigint): Promise<PositionReport | undefined>
  /** Returns what each of these orders waits for; undefined for those that the keeper does not know. */
  findOrders(orderIds: readonly Hex[]): Promise<(OrderReport | undefined)[]>
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
    placeOrders: orders => inBackground(() => keeper().placeOrders(orders)),
    repairOrders: orders => keeper().placeOrders(orders),
    runCycle: () => keeper().runCycle(),
    find: positionId => keeper().find(positionId),
    findOrders: async orderIds => (orderIds.length === 0 ? [] : keeper().findOrders(orderIds)),
    status: waitMs => keeper().status(waitMs),
  }
}
