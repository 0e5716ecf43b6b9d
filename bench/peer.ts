import { join } from 'node:path'
import { type Child, cpuSeconds, startChild } from './child-process.ts'

export type Peer = Pick<Child, 'pid' | 'logs' | 'kill9'> & {
  url: string
  cpuSeconds(): number
  stop(): Promise<void>
}

/** Starts the Express relay in its own process, with the variables of the service, and resolves once it listens. */
export async function startPeer({ vars, port = 0 }: { vars: Record<string, string>; port?: number }): Promise<Peer> {
  const child = startChild(join(import.meta.dirname, '../lab/peers/express/server.ts'), { ...vars, PORT: `${port}` })
  const report = await child.report()
  if (!('url' in report)) throw new Error('The peer did not report its URL.')
  const { pid, logs, kill9 } = child
  return { url: report.url, pid, logs, cpuSeconds: () => cpuSeconds(pid), kill9, stop: kill9 }
}
