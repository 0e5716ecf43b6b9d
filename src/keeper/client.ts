import type { Hex } from 'viem'
import type { TradingChain } from '../chain/configured-chain.ts'
import type { OrderReport } from '../resources/order.ts'
import type { ChainChanges, Waking } from './book.ts'
import type { KeeperObject } from './object.ts'
import type { KeeperStatus, PositionReport } from './position-report.ts'

export type Keeper = ReturnType<typeof createKeeper>

/**
 * Returns the keeper of a trade router, which fires due exit rules and executes orders. Each router has one. Only the
 * index tells it of changes. A call may be lost: the keeper also compares its positions with the chain, and the index
 * sends all open orders again.
 */
export function createKeeper(
  namespace: DurableObjectNamespace<KeeperObject>,
  { id, trading }: Pick<TradingChain, 'id' | 'trading'>,
) {
  const keeper = () => namespace.get(namespace.idFromName(`${id}:${trading.TradeRouter}`))
  return {
    /**
     * Tells the keeper what has changed on the chain; without changes, it only starts cycles that have stopped. Returns
     * how many of the orders it did not know. The call is repeated once, as when a deploy resets the object.
     */
    changed: (changes?: ChainChanges): Promise<number> =>
      keeper()
        .changed(changes)
        .catch(() => keeper().changed(changes)),
    /** Runs one cycle and waits for its transactions. */
    runCycle: (): Promise<void> => keeper().runCycle(),
    /** Returns when the next cycle has something to do; undefined if it may have at any price. */
    waking: async (): Promise<Waking | undefined> => keeper().waking(),
    find: (positionId: bigint): Promise<PositionReport | undefined> => keeper().find(positionId),
    /** Returns what each of these orders waits for; undefined for those that the keeper does not know. */
    findOrders: async (orderIds: readonly Hex[]): Promise<(OrderReport | undefined)[]> =>
      orderIds.length === 0 ? [] : keeper().findOrders(orderIds),
    status: (waitMs?: number): Promise<KeeperStatus> => keeper().status(waitMs),
  }
}
