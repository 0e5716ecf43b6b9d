import { runInDurableObject } from 'cloudflare:test'
import type { env } from 'cloudflare:workers'

/**
 * Deletes the alarm of a keeper, so that it runs only when a test says so. A cycle that the alarm has started arms the next
 * one when it ends, so the alarm is deleted again after that.
 */
export async function disarmKeeper(keeper: ReturnType<typeof env.KEEPER.get>): Promise<void> {
  const deleteAlarm = () => runInDurableObject(keeper, (_, { storage }) => storage.deleteAlarm())
  await deleteAlarm()
  await keeper.runCycle()
  await deleteAlarm()
}
