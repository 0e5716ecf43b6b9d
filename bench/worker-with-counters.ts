import service, { ExecutorLane as Lane } from '../src/index.ts'

// The service with counters per intent: requests to nodes, and statements and rows of SQLite.
export * from '../src/index.ts'

const totals = new Map<string, number>()
const add = (name: string, value: number) => totals.set(name, (totals.get(name) ?? 0) + value)

const send = globalThis.fetch.bind(globalThis)
globalThis.fetch = async (input, init) => {
  if (typeof init?.body === 'string' && init.body.includes('"jsonrpc"')) {
    const calls: { method: string }[] = [JSON.parse(init.body)].flat()
    const [first] = calls
    add('http', 1)
    add(`http ${calls.length > 1 ? `batch of ${first?.method}` : first?.method}`, 1)
    for (const { method } of calls) add(`rpc ${method}`, 1)
  }
  return send(input, init)
}

type Cursor = { rowsRead: number; rowsWritten: number; toArray(): unknown[]; one(): unknown }
const counted = new WeakSet<object>()

/** Counts the statements of every object; an object of this isolate shares its prototype with all others. */
function countStatements(sql: object): void {
  const prototype = Object.getPrototypeOf(sql)
  if (counted.has(prototype)) return
  counted.add(prototype)
  const execute = prototype.exec as (query: string, ...bindings: unknown[]) => Cursor
  prototype.exec = function (query: string, ...bindings: unknown[]) {
    const cursor = execute.call(this, query, ...bindings)
    const name = /\b(?:FROM|INTO|UPDATE|TABLE)\s+"?(\w+)/i.exec(query)?.[1] ?? 'other'
    const verb = /^\s*(\w+)/.exec(query)?.[1]?.toUpperCase()
    add('sql statements', 1)
    add(`sql ${verb} ${name}`, 1)
    const record = <Result>(result: Result): Result => {
      add('sql rows read', cursor.rowsRead)
      add('sql rows written', cursor.rowsWritten)
      add(`sql ${verb} ${name} rows read`, cursor.rowsRead)
      return result
    }
    if (verb === 'SELECT' || /RETURNING/.test(query))
      return {
        toArray: () => record(cursor.toArray()),
        one: () => record(cursor.one()),
        [Symbol.iterator]: () => record(cursor.toArray()).values(),
      }
    return record(cursor)
  }
}

export class ExecutorLane extends Lane {
  constructor(ctx: DurableObjectState, env: Env) {
    countStatements(ctx.storage.sql)
    super(ctx, env)
  }
}

export default {
  ...service,
  fetch: request => {
    if (!request.url.endsWith('/counts')) return service.fetch(request)
    const counts = Object.fromEntries(totals)
    totals.clear()
    return Response.json(counts)
  },
} satisfies ExportedHandler<Env>
