import { DurableObject } from 'cloudflare:workers'
import { parseOrder } from '@agent-trading-service/protocol/order-typed-data'
import type { Hex } from 'viem'
import service, { Keeper as ServiceKeeper } from '../../src/index.ts'

// Only the service's keeper and its lane: the first request does not start the indexer, and one route returns the
// counts of the keeper's object.
export * from '../../src/index.ts'

/** The activity of the keeper's object since its start, and its cursors. */
export type KeeperCounters = {
  cycles: number
  rowsRead: number
  rowsWritten: number
  /** The highest position id that was read. */
  cursor: number
  /** The last position that was compared with the chain. */
  compared: number
  openPositions: number
  /** Whether the triggers of the position in `?wrong=` are unknown. */
  isWrong: boolean
}

export class Keeper extends ServiceKeeper {
  #cycles = 0
  #rowsRead = 0
  #rowsWritten = 0
  readonly #storage: DurableObjectStorage

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    const { sql } = ctx.storage
    this.#storage = ctx.storage
    const execute = sql.exec.bind(sql)
    const count = (cursor: SqlStorageCursor<Record<string, SqlStorageValue>>) => {
      this.#rowsRead += cursor.rowsRead
      this.#rowsWritten += cursor.rowsWritten
    }
    // A cursor's counts are complete once its rows have been read.
    Object.defineProperty(sql, 'exec', {
      value: (query: string, ...bindings: SqlStorageValue[]) => {
        const cursor = execute(query, ...bindings)
        if (query.startsWith('DELETE FROM market')) this.#cycles++
        if (/^\s*SELECT/i.test(query)) {
          const rows = cursor.toArray()
          count(cursor)
          return { toArray: () => rows }
        }
        count(cursor)
        return cursor
      },
    })
  }

  counters(wrong: number): KeeperCounters {
    const [rowsRead, rowsWritten] = [this.#rowsRead, this.#rowsWritten]
    const numberOf = (query: string, ...bindings: SqlStorageValue[]) =>
      Number(this.#storage.sql.exec<{ value: string | number }>(query, ...bindings).toArray()[0]?.value ?? 0)
    const counters = {
      cycles: this.#cycles,
      rowsRead,
      rowsWritten,
      cursor: numberOf('SELECT max(id) AS value FROM position'),
      compared: numberOf(`SELECT value FROM keeper WHERE name = 'compared'`),
      openPositions: numberOf('SELECT count(*) AS value FROM position WHERE closed_at IS NULL'),
      isWrong: numberOf('SELECT count(*) AS value FROM position WHERE id = ? AND below IS NULL', wrong) > 0,
    }
    this.#rowsRead = rowsRead
    return counters
  }

  /** Stops the cycles until the next `changed`. */
  async pause(): Promise<void> {
    await this.#storage.deleteAlarm()
    await this.runCycle()
    await this.#storage.deleteAlarm()
  }

  /** Deletes the triggers of a position. */
  forgetTriggers(positionId: number): void {
    this.#storage.sql.exec('UPDATE position SET below = NULL, above = NULL WHERE id = ?', positionId)
  }
}

/** Ignores the trades that the lane forwards: the indexer would follow the chain from the first one on. */
export class HistoryIndexer extends DurableObject<Env> {
  relayed(): void {}
}
export class EventStreams extends DurableObject<Env> {
  publishIntents(): void {}
}

/** An order as the benchmark posts it. */
type Stored = { orderId: Hex; order: string }

export default {
  async fetch(request, env: Env & { CONTRACTS?: string }) {
    const { pathname, searchParams } = new URL(request.url)
    const name = `${env.CHAIN_ID}:${JSON.parse(env.CONTRACTS ?? '{}').TradeRouter}`
    const keeper = env.KEEPER.get(env.KEEPER.idFromName(name)) as unknown as DurableObjectStub<Keeper>
    const positionId = Number(searchParams.get('positionId'))
    if (pathname === '/bench/wake') await keeper.changed()
    if (pathname === '/bench/pause') await keeper.pause()
    if (pathname === '/bench/orders')
      await keeper.changed({
        orders: ((await request.json()) as Stored[]).map(({ orderId, order }) => ({
          orderId,
          order: parseOrder(order),
          block: 0,
        })),
      })
    if (pathname === '/bench/forget') await keeper.forgetTriggers(positionId)
    if (pathname.startsWith('/bench/')) return Response.json(await keeper.counters(positionId))
    return service.fetch(request)
  },
} satisfies ExportedHandler<Env>
