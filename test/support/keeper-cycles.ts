import { runInDurableObject } from 'cloudflare:test'
import type { env } from 'cloudflare:workers'
import { vi } from 'vitest'

type Keeper = ReturnType<typeof env.KEEPER.get>

/**
 * Deletes the alarm of a keeper, so that it runs only when a test says so. A cycle that the alarm has started arms the
 * next one when it ends, so the alarm is deleted again after that.
 */
export async function disarmKeeper(keeper: Keeper): Promise<void> {
  const deleteAlarm = () => runInDurableObject(keeper, (_, { storage }) => storage.deleteAlarm())
  await deleteAlarm()
  await keeper.runCycle()
  await deleteAlarm()
}

async function isInFlight(keeper: Keeper): Promise<boolean> {
  const { pendingExits, pendingOrders } = await keeper.status()
  return pendingExits + pendingOrders > 0
}

/** Runs a cycle, and more of them until nothing is in flight: on a busy machine a transaction outlasts the call. */
export async function runCycle(keeper: Keeper): Promise<void> {
  do await keeper.runCycle()
  while (await isInFlight(keeper))
}

/** Runs a cycle at a time of the service's clock, in milliseconds. */
export async function runCycleAt(keeper: Keeper, now: number): Promise<void> {
  vi.useFakeTimers({ toFake: ['Date'], now })
  await runCycle(keeper).finally(() => vi.useRealTimers())
}
