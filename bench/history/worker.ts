import { CLOSED } from '../../src/history/closed-positions.ts'
import { openStore } from '../../src/history/store.ts'
import { pageOf, type TradeQuery } from '../../src/history/trades.ts'
import service from '../../src/index.ts'
import { TRADE_TYPES, type TradeType } from '../../src/protocol/trade-events.ts'
import { AGENTS, rowsOf, SCOPE, TOKENS } from './events.ts'

// The service with two more doors to its database: one that fills it, and one that reads pages as the service does.
export * from '../../src/index.ts'

/** Events of one transaction. */
const CHUNK = 10_000
const LIMIT = 50

async function fill(db: D1Database, count: number): Promise<{ ms: number; added: number }> {
  const store = openStore(db, SCOPE)
  await store.migrate()
  const start = performance.now()
  let cursor = await store.cursor()
  const first = (cursor?.block ?? 0) + 1
  for (let from = first; from <= count; from += CHUNK) {
    const to = Math.min(from + CHUNK - 1, count)
    const next = { block: to, hash: `0x${to}`, timestamp: to, head: to, final: to } as const
    await store.append(cursor, next, rowsOf(from, to))
    cursor = next
  }
  return { ms: performance.now() - start, added: Math.max(0, count - first + 1) }
}

/** The runtime's clock shows milliseconds: so many pages are timed together. */
const GROUP = 10

/** Times of pages of random agents at random places, and the most rows that the database says it read for one. */
async function pages(db: D1Database, kind: string, groups: number): Promise<{ ms: number[]; rowsRead: number }> {
  const newest = (await db.prepare('SELECT block FROM cursor').first<number>('block')) ?? 0
  const ms: number[] = []
  let rowsRead = 0
  for (let turn = 0; turn < groups; turn++) {
    const start = performance.now()
    for (let page = 0; page < GROUP; page++) rowsRead = Math.max(rowsRead, await readPage(db, kind, newest))
    ms.push((performance.now() - start) / GROUP)
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
      ? session.prepare(CLOSED).bind(Number(agentId), random(newest), LIMIT + 1)
      : pageOf(session, { agentId, limit: LIMIT, ...filters[kind] })
  const answers = await session.batch([session.prepare('SELECT * FROM cursor'), page])
  return answers.reduce((sum, { meta }) => sum + meta.rows_read, 0)
}

/** The block that the follower has come to. */
const reach = (db: D1Database): Promise<number> =>
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
      return Response.json(await pages(env.HISTORY, searchParams.get('kind') ?? '', count))
    if (pathname === '/bench/reach') return Response.json(await reach(env.HISTORY))
    return service.fetch(request)
  },
} satisfies ExportedHandler<Env>
