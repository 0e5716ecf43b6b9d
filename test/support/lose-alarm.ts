import { runInDurableObject } from 'cloudflare:test'
import { vi } from 'vitest'

/**
 * Leaves an object as the runtime does when it loses an alarm: the stored time is an hour old, and nothing fires. The
 * next alarm that the object arms is a real one.
 */
export async function loseAlarm(stub: DurableObjectStub<Rpc.DurableObjectBranded & DurableObject>): Promise<void> {
  await runInDurableObject(stub, async (_, { storage }) => {
    await storage.deleteAlarm()
    const stored = vi.spyOn(storage, 'getAlarm').mockResolvedValue(Date.now() - 3_600_000)
    const setAlarm = storage.setAlarm.bind(storage)
    const armed = vi.spyOn(storage, 'setAlarm').mockImplementation(time => {
      stored.mockRestore()
      armed.mockRestore()
      return setAlarm(time)
    })
  })
}
