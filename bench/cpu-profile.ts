/** A profile of V8's sampling profiler, in the format of the Chrome DevTools protocol. Times are in microseconds. */
export type CpuProfile = {
  nodes: {
    id: number
    callFrame: { functionName: string; url: string; lineNumber: number }
    children?: number[]
  }[]
  samples: number[]
  timeDeltas: number[]
}

/** Profiles workerd through its inspector while `work` runs. */
export async function profileWorkerd(port: number, work: () => Promise<unknown>): Promise<CpuProfile> {
  const targets = (await (await fetch(`http://127.0.0.1:${port}/json`)).json()) as { webSocketDebuggerUrl: string }[]
  const [target] = targets
  if (target === undefined) throw new Error('The inspector has no target.')
  const socket = new WebSocket(target.webSocketDebuggerUrl)
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', () => reject(new Error('The inspector accepts no connection.')))
  })
  const replies = new Map<number, (result: unknown) => void>()
  socket.addEventListener('message', ({ data }) => {
    const { id, result } = JSON.parse(String(data))
    replies.get(id)?.(result)
  })
  let lastId = 0
  const call = (method: string, params = {}) =>
    new Promise<unknown>(resolve => {
      const id = ++lastId
      replies.set(id, resolve)
      socket.send(JSON.stringify({ id, method, params }))
    })
  await call('Profiler.enable')
  await call('Profiler.setSamplingInterval', { interval: 200 })
  await call('Profiler.start')
  await work()
  const { profile } = (await call('Profiler.stop')) as { profile: CpuProfile }
  socket.close()
  return profile
}

/** Returns the functions with the most self time, in milliseconds per unit of work. */
export function selfTimes({ nodes, samples, timeDeltas }: CpuProfile, units: number, rows = 60): string {
  const names = new Map(
    nodes.map(({ id, callFrame: { functionName, lineNumber } }) => [
      id,
      `${functionName || '(anonymous)'}:${lineNumber}`,
    ]),
  )
  const times = new Map<string, number>()
  for (const [index, id] of samples.entries()) {
    const name = names.get(id) ?? ''
    times.set(name, (times.get(name) ?? 0) + (timeDeltas[index] ?? 0))
  }
  return [...times]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, rows)
    .map(([name, time]) => `${(time / 1_000 / units).toFixed(3)} ${name}`)
    .join('\n')
}
