import type { CountingProxy } from '../counting-proxy.ts'
import type { Workerd } from '../workerd.ts'
import type { ObjectCounts, PlatformCounts } from './counted-platform.ts'

/** Counts of billed operations and of requests to the node, and the CPU time of workerd in milliseconds. */
export type Counts = {
  objectRequests: number
  objectAlarms: number
  objectActiveMs: number
  objectRowsRead: number
  objectRowsWritten: number
  d1Queries: number
  d1RowsRead: number
  d1RowsWritten: number
  rpcRequests: number
  rpcCalls: number
  rpcBytes: number
  cpuMs: number
}
export type Meter = { read(): Promise<Counts>; readObjects(): Promise<Record<string, ObjectCounts>> }

/** Reads the counters of a Worker from bench/counts/worker.ts and of its node. */
export function createMeter(worker: Workerd, node: CountingProxy): Meter {
  const readPlatform = async () => (await (await fetch(`${worker.url}/bench/counts`)).json()) as PlatformCounts
  return {
    readObjects: async () => (await readPlatform()).objects,
    async read() {
      const { d1, objects } = await readPlatform()
      const sum = (name: keyof ObjectCounts) => Object.values(objects).reduce((total, of) => total + of[name], 0)
      const rpc = node.counts()
      return {
        objectRequests: sum('requests'),
        objectAlarms: sum('alarms'),
        objectActiveMs: sum('activeMs'),
        objectRowsRead: sum('rowsRead'),
        objectRowsWritten: sum('rowsWritten'),
        d1Queries: d1.queries,
        d1RowsRead: d1.rowsRead,
        d1RowsWritten: d1.rowsWritten,
        rpcRequests: rpc.requests,
        rpcCalls: rpc.calls,
        rpcBytes: rpc.bytes,
        cpuMs: worker.cpuSeconds() * 1_000,
      }
    },
  }
}

/** Applies a function to every count. */
export const mapCounts = (counts: Counts, map: (value: number, name: keyof Counts) => number): Counts =>
  Object.fromEntries(Object.entries(counts).map(([name, value]) => [name, map(value, name as keyof Counts)])) as Counts

/** Returns the difference between two readings. */
export const between = (before: Counts, after: Counts): Counts =>
  mapCounts(after, (value, name) => value - before[name])
