type AlarmStorage = Pick<DurableObjectStorage, 'getAlarm' | 'setAlarm'>

/** The runtime may lose an alarm: the time of one that is this late stays stored, and it never fires. */
const LOST_ALARM_MS = 10_000

/** Returns the time of an object's alarm (epoch milliseconds); undefined if it has none that will fire. */
export async function armedAt(storage: AlarmStorage): Promise<number | undefined> {
  const time = await storage.getAlarm()
  return time === null || time < Date.now() - LOST_ALARM_MS ? undefined : time
}

/**
 * Arms an object's alarm for a time (epoch milliseconds), unless it is armed for an earlier one. The alarm is never
 * armed for the present: if an alarm that is running does so, workerd drops it (issue 6866 of its repository).
 */
export async function armBefore(storage: AlarmStorage, time: number): Promise<void> {
  const armed = await armedAt(storage)
  if (armed === undefined || armed > time) await storage.setAlarm(Math.max(time, Date.now() + 1))
}
