import type { Address, Hash, Hex } from 'viem'

/** Tells whether a JSON value from a node has the type that the Ethereum JSON-RPC specification gives it. */
export type ResultCheck<Result> = (value: unknown) => value is Result

const matching =
  <Text extends Hex>(pattern: RegExp): ResultCheck<Text> =>
  (value): value is Text =>
    typeof value === 'string' && pattern.test(value)

/** A quantity of at most 256 bits. Leading zeros are accepted, because they are unambiguous. */
export const isQuantity = matching<Hex>(/^0x[0-9a-f]{1,64}$/i)
export const isData = matching<Hex>(/^0x(?:[0-9a-f]{2})*$/i)
export const isHash = matching<Hash>(/^0x[0-9a-f]{64}$/i)
export const isAddress = matching<Address>(/^0x[0-9a-f]{40}$/i)

/** A quantity that a JavaScript number holds exactly: nonces, block numbers, timestamps, gas. */
export const isCount: ResultCheck<Hex> = (value): value is Hex =>
  isQuantity(value) && Number.isSafeInteger(Number(value))

export const nullOr =
  <Result>(isResult: ResultCheck<Result>): ResultCheck<Result | null> =>
  (value): value is Result | null =>
    value === null || isResult(value)

export const optional =
  <Result>(isResult: ResultCheck<Result>): ResultCheck<Result | undefined> =>
  (value): value is Result | undefined =>
    value === undefined || isResult(value)

export const listOf =
  <Result>(isResult: ResultCheck<Result>): ResultCheck<Result[]> =>
  (value): value is Result[] =>
    Array.isArray(value) && value.every(isResult)

export const isAnything: ResultCheck<unknown> = (value): value is unknown => true

type Fields = Record<string, ResultCheck<unknown>>
type ValueOf<Check> = Check extends ResultCheck<infer Result> ? Result : never
type Required<Checks extends Fields> = {
  [name in keyof Checks as undefined extends ValueOf<Checks[name]> ? never : name]: ValueOf<Checks[name]>
}
type Optional<Checks extends Fields> = {
  [name in keyof Checks as undefined extends ValueOf<Checks[name]> ? name : never]?: ValueOf<Checks[name]>
}

/** An object with these fields; others are ignored. Those that may be undefined may be absent. */
export function objectOf<Checks extends Fields>(fields: Checks): ResultCheck<Required<Checks> & Optional<Checks>> {
  const checks = Object.entries<ResultCheck<unknown>>(fields)
  return (value): value is Required<Checks> & Optional<Checks> =>
    typeof value === 'object' &&
    value !== null &&
    checks.every(([field, isField]) => isField((value as Record<string, unknown>)[field]))
}

/** What a check accepts. */
export type ResultOf<Check extends ResultCheck<unknown>> = ValueOf<Check>
