import { waitUntil } from 'cloudflare:workers'
import type { ExecutorLaneObject } from './object.ts'
import { accountNames } from './signing-account.ts'

/** Calls the lanes of all configured accounts in the background. A call may be lost: the lanes' own alarms follow. */
type LaneCalls = {
  /** Arms alarms that were lost. */
  wake(): void
  /** Makes the lanes look at once for transactions that a reorg has removed, with all blocks above `ancestor`. */
  reportReorg(ancestor: number): void
}

export function createLaneCalls(
  namespace: DurableObjectNamespace<ExecutorLaneObject>,
  accounts: Parameters<typeof accountNames>[0],
): LaneCalls {
  const callAll = (call: (lane: DurableObjectStub<ExecutorLaneObject>) => Promise<void>) => {
    for (const address of accountNames(accounts).keys())
      waitUntil(call(namespace.get(namespace.idFromName(address))).catch(() => {}))
  }
  return {
    wake: () => callAll(lane => lane.wake()),
    reportReorg: ancestor => callAll(lane => lane.reportReorg(ancestor)),
  }
}
