import type { operations } from './generated/openapi.ts'
import { readPaths } from './generated/read-paths.ts'
import { fillPath, type Http, type QueryValue } from './http.ts'

export type ReadId = keyof typeof readPaths

type Known<Parameters> = [Exclude<Parameters, undefined>] extends [never] ? unknown : Exclude<Parameters, undefined>
type ParametersOf<Id extends ReadId> = Known<operations[Id]['parameters']['path']> &
  Omit<Known<operations[Id]['parameters']['query']>, 'format'>
/** Whole numbers may also be bigints. */
type Accepts<T> = T extends string ? (string extends T ? T | bigint : T) : Exclude<T, null>
/** The input of a read: its path and query parameters in one object. */
export type ReadInput<Id extends ReadId> = {
  [Name in keyof ParametersOf<Id>]: Accepts<ParametersOf<Id>[Name]>
}
/** What a read returns. */
export type ReadOutput<Id extends ReadId> = operations[Id]['responses'] extends {
  200: { content: { 'application/json': infer Body } }
}
  ? Body
  : never

type Arguments<Input> = Record<never, never> extends Input ? [input?: Input] : [input: Input]
/** Every operation that reads, by its id in the OpenAPI document. */
export type Reads = { [Id in keyof typeof readPaths]: (...input: Arguments<ReadInput<Id>>) => Promise<ReadOutput<Id>> }

/** Returns a method for each read. It retries what may succeed later. */
export function createReads(http: Http): Reads {
  const methods = Object.entries(readPaths).map(([id, { path }]) => [
    id,
    (input: Record<string, QueryValue> = {}) => http.get(fillPath(path, input)),
  ])
  return Object.fromEntries(methods)
}
