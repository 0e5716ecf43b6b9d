import { runInDurableObject } from 'cloudflare:test'
import type { env } from 'cloudflare:workers'
import { vi } from 'vitest'
import type { KeeperObject } from '../../src/keeper/object.ts'

type Keeper = ReturnType<typeof env.KEEPER.get>

/**
 * Deletes the alarm of a keeper, so that it runs only when a test says so. A cycle that the alarm has started, or that
 * follows the one that runs now, has ended then, and has armed no other.
 */
export async function disarmKeeper(keeper: Keeper): Promise<void> {
  await runInDurableObject(keeper, async (keeper: KeeperObject, { storage }) => {
    const arming = vi.spyOn(storage, 'setAlarm').mockResolvedValue()
    await storage.deleteAlarm()
    for (let cycles = 0; cycles < 2; cycles++) await keeper.runCycle()
    arming.mockRestore()
  })
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
