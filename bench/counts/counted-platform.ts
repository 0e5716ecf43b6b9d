import { DurableObject } from 'cloudflare:workers'
import { AsyncLocalStorage } from 'node:async_hooks'

// Counts billed operations in the isolate that runs the Worker and its objects. It patches methods of the runtime's own
// classes, so the Worker under test is unchanged.

/**
 * The activity of one class of objects. `activeMs` is the time in which one of its objects had a call or an alarm in
 * progress.
 */
export type ObjectCounts = {
  requests: number
  alarms: number
  rowsRead: number
  rowsWritten: number
  activeMs: number
}
export type PlatformCounts = {
  d1: { queries: number; rowsRead: number; rowsWritten: number }
  objects: Record<string, ObjectCounts>
}

type ObjectClass = new (ctx: DurableObjectState, env: Env) => DurableObject<Env>
type Method = (...args: unknown[]) => unknown

const counts: PlatformCounts = { d1: { queries: 0, rowsRead: 0, rowsWritten: 0 }, objects: {} }
const cursors: { of: ObjectCounts; cursor: SqlStorageCursor<Record<string, SqlStorageValue>> }[] = []
const owners = new WeakMap<object, ObjectCounts>()
/** Set during a call of an object, so that calls of its own methods are not counted. */
const insideCall = new AsyncLocalStorage<true>()
const patched = new WeakSet<object>()

const countsOf = (name: string): ObjectCounts => {
  counts.objects[name] ??= { requests: 0, alarms: 0, rowsRead: 0, rowsWritten: 0, activeMs: 0 }
  return counts.objects[name]
}

/** Returns the counts since the isolate started. */
export function readCounts(): PlatformCounts {
  // A cursor's counts are complete once its rows have been read.
  for (const { of, cursor } of cursors.splice(0)) {
    of.rowsRead += cursor.rowsRead
    of.rowsWritten += cursor.rowsWritten
  }
  return counts
}

/** Counts the queries of every D1 database and the rows they read and write. */
export function countDatabase(db: D1Database): void {
  // Internally, a database uses a session of another class than the sessions it returns.
  const { alwaysPrimarySession } = db as unknown as { alwaysPrimarySession: object }
  for (const session of [alwaysPrimarySession, db.withSession()])
    replaceOnce(session, '_send', async function (this: object, original, args) {
      const sent = (await original.apply(this, args)) as D1Result | D1Result[]
      for (const { meta } of [sent].flat()) {
        counts.d1.queries++
        counts.d1.rowsRead += meta.rows_read
        counts.d1.rowsWritten += meta.rows_written
      }
      return sent
    })
}

/** Returns the class with its calls, alarms and rows counted. */
export function counted<Class extends ObjectClass>(name: string, base: Class): Class {
  const of = countsOf(name)
  const subclass = class extends (base as ObjectClass) {
    constructor(ctx: DurableObjectState, env: Env) {
      countStorage(ctx.storage, of)
      super(ctx, env)
    }
  }
  for (const method of methodsOf(base)) {
    const original = base.prototype[method as keyof DurableObject] as unknown as Method
    const counter = method === 'alarm' ? 'alarms' : 'requests'
    Object.defineProperty(subclass.prototype, method, {
      value(this: object, ...args: unknown[]) {
        if (insideCall.getStore()) return original.apply(this, args)
        of[counter]++
        return insideCall.run(true, () => whileActive(this, of, original.apply(this, args)))
      },
    })
  }
  return subclass as unknown as Class
}

const activeCalls = new WeakMap<object, { calls: number; since: number }>()

/** Adds the time until a call ends, if no other call is in progress. */
async function whileActive(object: object, of: ObjectCounts, call: unknown): Promise<unknown> {
  const active = activeCalls.get(object) ?? { calls: 0, since: 0 }
  activeCalls.set(object, active)
  if (active.calls++ === 0) active.since = Date.now()
  try {
    return await call
  } finally {
    if (--active.calls === 0) of.activeMs += Date.now() - active.since
  }
}

/** Returns the names of the methods of a class and its base classes. */
function methodsOf(base: ObjectClass): string[] {
  const names = new Set<string>()
  for (let proto = base.prototype; proto !== DurableObject.prototype; proto = Object.getPrototypeOf(proto))
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(proto)))
      if (name !== 'constructor' && typeof value === 'function') names.add(name)
  return [...names]
}

/** Counts an object's statements, key-value operations and stored alarms. */
function countStorage(storage: DurableObjectStorage, of: ObjectCounts): void {
  owners.set(storage, of)
  owners.set(storage.sql, of)
  replaceOnce(storage.sql, 'exec', function (this: object, original, args) {
    const cursor = original.apply(this, args) as SqlStorageCursor<Record<string, SqlStorageValue>>
    cursors.push({ of: owners.get(this) ?? of, cursor })
    return cursor
  })
  for (const [method, column] of Object.entries(KEY_VALUE_ROWS))
    replaceOnce(storage, method, function (this: object, original, args) {
      const owner = owners.get(this) ?? of
      owner[column]++
      return original.apply(this, args)
    })
}

/** The kind of rows that a storage method is billed as. */
const KEY_VALUE_ROWS = {
  put: 'rowsWritten',
  delete: 'rowsWritten',
  deleteAll: 'rowsWritten',
  setAlarm: 'rowsWritten',
  get: 'rowsRead',
} as const

function replaceOnce(
  object: object,
  name: string,
  replacement: (this: object, original: Method, args: unknown[]) => unknown,
): void {
  const owner = ownerOf(object, name)
  const original = (owner as Record<string, Method>)[name] as Method & { isCounted?: true }
  if (patched.has(original)) return
  const value = function (this: object, ...args: unknown[]) {
    return replacement.call(this, original, args)
  }
  patched.add(value)
  Object.defineProperty(owner, name, { value, configurable: true, writable: true })
}

function ownerOf(object: object, name: string): object {
  for (let owner = object; owner !== null; owner = Object.getPrototypeOf(owner))
    if (Object.hasOwn(owner, name)) return owner
  throw new Error(`The storage of this workerd has no method ${name}.`)
}
