import type { Address } from 'viem'
import { parseConfig } from '../config.ts'
import { createTransport } from '../rpc/transport.ts'
import { createAdmission } from './admission.ts'
import { createDelivery } from './delivery.ts'
import { createInclusion } from './inclusion.ts'
import { logUnexpected } from './log-failure.ts'
import { createSequencer } from './nonce-sequencer.ts'
import { createHerald } from './receipt-forwarder.ts'
import { createReconciliation } from './reconciliation.ts'
import { accountOf } from './signing-account.ts'
import { createSimulator } from './simulation.ts'
import type { Journal } from './store.ts'

const RPC_TIMEOUT_MS = 5_000

export type Parts = ReturnType<typeof assemble>

/** What a lane is made of, wired to the configured chain; throws when there is none, or no key for the address. */
export function assemble(
  address: Address,
  env: Env,
  journal: Journal,
  {
    sync,
    onUnfunded,
    onForeign,
  }: { sync: () => Promise<void>; onUnfunded: (cost: bigint) => void; onForeign: () => void },
) {
  const variables: Partial<Record<string, unknown>> = { ...env }
  const config = parseConfig(variables)
  if (config.chain === undefined) throw new Error('A lane needs CHAIN_ID, RPC_URL and CONTRACTS')
  const { id: chainId, rpcUrls } = config.chain
  const { inclusionTimeoutMs } = config
  const account = accountOf(address, chainId, variables)
  const priorityFeeWei = BigInt(/^\d+$/.exec(String(variables.PRIORITY_FEE_WEI))?.[0] ?? 0)
  const rpc = createTransport(rpcUrls, RPC_TIMEOUT_MS)
  const admission = createAdmission()
  const sequencer = createSequencer({
    ...{ account, chainId, rpc, journal, priorityFeeWei, sync },
    onNewChain() {
      journal.clear()
      inclusion.abandon()
    },
  })
  const { TradeRouter, PositionManager } = config.trading ?? {}
  const followed = TradeRouter && PositionManager ? [TradeRouter, PositionManager] : []
  const inclusion = createInclusion({
    ...{ rpc, journal, from: address },
    onMined: createHerald(env.HISTORY_INDEXER, chainId, followed),
  })
  const simulate = createSimulator(rpc, address)
  const delivery = createDelivery({
    ...{ rpc, journal, sequencer, inclusion, admission, inclusionTimeoutMs },
    onDisorder: () => void reconciliation.reconcile().catch(logUnexpected),
    onUnfunded,
  })
  const reconciliation = createReconciliation({
    ...{ rpc, journal, sequencer, inclusion, delivery, simulate, address },
    onForeign,
  })
  return { account, admission, sequencer, inclusion, simulate, delivery, reconciliation, inclusionTimeoutMs }
}
