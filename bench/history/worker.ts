import { TRADE_TYPES, type TradeType } from '@agent-trading-service/protocol/trade-events'
import { CLOSED_PAGE } from '../../src/history/read-closed-positions.ts'
import { selectTradePage, type TradeQuery } from '../../src/history/read-trades.ts'
import { openIndexStore } from '../../src/history/store.ts'
import service from '../../src/index.ts'
import { AGENTS, INDEX_KEY, rowsOf, TOKENS } from './events.ts'

// The service with three more routes: one fills the database, one reads pages as the service does, one reads the
// cursor.
export * from '../../src/index.ts'

const EVENTS_PER_TRANSACTION = 10_000
const PAGE_LIMIT = 50
/** Pages are timed in groups, because the runtime's clock has a resolution of one millisecond. */
const PAGES_PER_GROUP = 10

async function fill(db: D1Database, count: number): Promise<{ ms: number; added: number }> {
  const store = openIndexStore(db, INDEX_KEY)
  await store.migrate()
  const start = performance.now()
  let cursor = await store.readCursor()
  const first = (cursor?.block ?? 0) + 1
  for (let from = first; from <= count; from += EVENTS_PER_TRANSACTION) {
    const to = Math.min(from + EVENTS_PER_TRANSACTION - 1, count)
    const next = { block: to, hash: `0x${to}`, timestamp: to, head: to, final: to } as const
    await store.append(cursor, next, rowsOf(from, to))
    cursor = next
  }
  return { ms: performance.now() - start, added: Math.max(0, count - first + 1) }
}

/** Reads pages of random agents from random positions. Returns the time per page of each group, and the most rows read. */
async function readPages(db: D1Database, kind: string, groups: number): Promise<{ ms: number[]; rowsRead: number }> {
  const newest = await readCursorBlock(db)
  const ms: number[] = []
  let rowsRead = 0
  for (let group = 0; group < groups; group++) {
    const start = performance.now()
    for (let page = 0; page < PAGES_PER_GROUP; page++) rowsRead = Math.max(rowsRead, await readPage(db, kind, newest))
    ms.push((performance.now() - start) / PAGES_PER_GROUP)
  }
  return { ms, rowsRead }
}

async function readPage(db: D1Database, kind: string, newest: number): Promise<number> {
  const random = (below: number) => Math.floor(Math.random() * below)
  const session = db.withSession('first-unconstrained')
  const agentId = BigInt(1 + random(AGENTS))
  const before = { blockNumber: BigInt(1 + random(newest)), logIndex: 0 }
  const token = TOKENS[random(TOKENS.length)]
  const type = TRADE_TYPES[random(4)] as TradeType
  const filters: Record<string, Omit<TradeQuery, 'agentId' | 'limit'>> = {
    newest: {},
    older: { before },
    type: { type, before },
    symbol: { token, before },
    both: { token, type, before },
  }
  const page =
    kind === 'closed'
      ? session.prepare(CLOSED_PAGE).bind(Number(agentId), random(newest), PAGE_LIMIT + 1)
      : selectTradePage(session, { agentId, limit: PAGE_LIMIT, ...filters[kind] })
  const results = await session.batch([session.prepare('SELECT * FROM cursor'), page])
  return results.reduce((sum, { meta }) => sum + meta.rows_read, 0)
}

/** Returns the cursor's block; 0 before the tables exist. */
const readCursorBlock = (db: D1Database): Promise<number> =>
  db
    .prepare('SELECT block FROM cursor')
    .first<number>('block')
    .then(
      block => block ?? 0,
      () => 0,
    )

export default {
  ...service,
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url)
    const count = Number(searchParams.get('count'))
    if (pathname === '/bench/fill') return Response.json(await fill(env.HISTORY, count))
    if (pathname === '/bench/pages')
      return Response.json(await readPages(env.HISTORY, searchParams.get('kind') ?? '', count))
    if (pathname === '/bench/cursor') return Response.json(await readCursorBlock(env.HISTORY))
    return service.fetch(request)
  },
} satisfies ExportedHandler<Env>
