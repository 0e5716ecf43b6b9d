import { waitUntil } from 'cloudflare:workers'
import type { Hex } from 'viem'
import type { TradingChain } from '../chain/client.ts'
import type { LaneStatus } from '../executor/intent.ts'
import type { Keeper } from './object.ts'

/** What the keeper saw: block, price with 8 decimals, time in Unix seconds of the chain. */
export type Evaluation = { blockNumber: string; price: string; at: string }

/** Why an exit waits though nothing has failed. */
export type Deferral = 'priceStale' | 'marketClosed' | 'tradingPaused'

/** What became of a position's exits; `at` and `nextTryAt` are Unix seconds of the chain. */
export type ExitOutcome =
  | { is: 'notReached'; at: string }
  /** Of an exit that others fired the transaction is absent where the node does not tell its events. */
  | {
      is: 'executed'
      firedBy: 'keeper' | 'others'
      at: string
      ruleIndex: number
      transactionHash?: Hex
      usdcOut?: string
    }
  | { is: 'deferred'; at: string; reason: Deferral }
  | { is: 'failed'; at: string; code: string; message: string; nextTryAt: string }

/** What the keeper knows of one position; undefined where it has not looked yet. */
export type Watched = { evaluation: Evaluation | undefined; outcome: ExitOutcome | undefined }

export type KeeperStatus = {
  lastEvaluation: { blockNumber: string; at: string } | undefined
  openPositions: number
  /** Positions whose exit is on its way to the chain. */
  pendingExits: number
  /** The account that fires. */
  lanes: LaneStatus[]
}

/** The keeper of a deployment, which fires exits on its own. */
export type Watch = {
  /** Makes sure that it looks soon, and goes on looking; nobody waits for that, and the cron trigger asks again. */
  wake(): void
  find(positionId: bigint): Promise<Watched | undefined>
  status(): Promise<KeeperStatus>
}

/** The one keeper of a trade router. */
export function createWatch(namespace: DurableObjectNamespace<Keeper>, { id, trading }: TradingChain): Watch {
  const keeper = () => namespace.get(namespace.idFromName(`${id}:${trading.TradeRouter}`))
  return {
    wake: () =>
      waitUntil(
        keeper()
          .wake()
          .catch(() => {}),
      ),
    find: positionId => keeper().find(positionId),
    status: () => keeper().status(),
  }
}
