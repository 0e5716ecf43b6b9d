import { createChain, type TradingChain } from '../chain/configured-chain.ts'
import { parseConfig } from '../config/config.ts'
import { createExecutor } from '../executor/client.ts'
import { createCycle, type KeeperCycle } from './cycle.ts'
import type { KeeperStore } from './store.ts'

/** Returns the cycle of the configured keeper; undefined if there is no keeper key or no trading contracts. */
export function assembleKeeper(env: Env, store: KeeperStore): KeeperCycle | undefined {
  const config = parseConfig({ ...env })
  const chain = config.chain && createChain(config.chain, config.trading)
  if (chain?.trading === undefined || config.keeper === undefined) return undefined
  return createCycle({
    chain: chain as TradingChain,
    executor: createExecutor(env.EXECUTOR_LANE, [config.keeper.key], config),
    store,
    respectSessions: config.respectSessions,
  })
}
