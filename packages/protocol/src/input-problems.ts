import { nearestName, withSuggestion } from './nearest-name.ts'
import { shorten } from './shorten.ts'

/** The part of a zod issue that a caller sees, with what its code adds. */
export type InputIssue = {
  code?: string | undefined
  path: readonly PropertyKey[]
  message: string
  expected?: unknown
  keys?: readonly string[]
  values?: readonly unknown[]
}

/** The input as the caller wrote it, and the zod schemas of its fields. Their descriptions have examples. */
export type GivenInput = { given: unknown; fields: Readonly<Record<string, DescribedField>> }
type DescribedField = { meta(): { [key: string]: unknown } | undefined }

/** What is wrong with one field: what came, and what would pass. */
export type InputProblem = { path: string; problem: string; given?: string; example?: unknown }

const MAX_REPORTED_ISSUES = 10

/** Describes the first ten problems of an input that does not parse, in words and not as the validator reports them. */
export function inputProblems(issues: readonly InputIssue[], input: GivenInput): InputProblem[] {
  // If the caller posted the whole quote, lead with that; the rest follows.
  const ordered = issues.filter(isOfQuote).concat(issues.filter(issue => !isOfQuote(issue)))
  return ordered.slice(0, MAX_REPORTED_ISSUES).map(issue => describeIssue(issue, input))
}

/** Returns the first problem with its field. */
export function firstProblem([first]: readonly InputProblem[]): string {
  if (first === undefined) return 'it does not parse'
  return first.path === '' ? first.problem : `${first.path}: ${first.problem}`
}

function describeIssue(issue: InputIssue, { given, fields }: GivenInput): InputProblem {
  const path = issue.path.join('.')
  if (issue.code === 'unrecognized_keys') return { path, problem: unknownFields(issue.keys ?? [], issue.path, fields) }
  const value = issue.path.reduce(valueAt, given)
  const name = String(issue.path[0] ?? '')
  const field = Object.hasOwn(fields, name) ? fields[name] : undefined
  const example = issue.path.length === 1 ? field?.meta()?.example : undefined
  if (value === undefined)
    return { path, problem: `is missing${forExample(example)}`, ...(example !== undefined && { example }) }
  return {
    path,
    problem: advice(issue, value) ?? requirement(issue, value, example),
    given: shown(value),
    ...(example !== undefined && { example }),
  }
}

const valueAt = (value: unknown, key: PropertyKey): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined

const forExample = (example: unknown) => (example === undefined ? '' : `; for example ${JSON.stringify(example)}`)

/** The fields that only a whole quote has. */
const QUOTE_FIELDS = ['body', 'typedData', 'eip712', 'suggestedDeadline']

const isOfQuote = ({ code, keys = [] }: InputIssue) =>
  code === 'unrecognized_keys' && keys.some(key => QUOTE_FIELDS.includes(key))

function unknownFields(keys: readonly string[], path: readonly PropertyKey[], fields: GivenInput['fields']): string {
  if (path.length === 0 && Object.hasOwn(fields, 'signature') && keys.some(key => QUOTE_FIELDS.includes(key)))
    return 'this is a whole quote: send the fields of its `body`, with the signature of its `typedData` as `signature`'
  const [key = ''] = keys
  const names = Object.keys(fields)
  const known = names.length === 0 ? '' : `; the fields are ${names.join(', ')}`
  if (path.length > 0) return `has no field ${shown(key)}`
  return withSuggestion(`there is no field ${shown(key)}${known}`, nearestName(key, names))
}

/** Returns what would pass for a value with a common mistake; undefined for other values. */
function advice({ path, expected, code, values }: InputIssue, value: unknown): string | undefined {
  const name = String(path.findLast(key => typeof key === 'string') ?? '')
  const share = name.endsWith('Bps') ? shareOf(value) : undefined
  if (share !== undefined) return `is in basis points, 10000 = 100 %, not ${shown(value)}; send ${share}`
  if (expected === 'string' && typeof value === 'number')
    return Number.isSafeInteger(value) || /^\d+\.\d+$/.test(`${value}`)
      ? `must be a string, not the number ${value}; send "${value}" in quotes`
      : `must be a string with every digit, not the number ${value}`
  if ((expected === 'number' || expected === 'int') && typeof value === 'string' && /^-?\d+$/.test(value))
    return `must be a number, not the string ${shown(value)}; send ${shorten(value)} without quotes`
  if (code === 'invalid_value' && values)
    return withSuggestion(
      `must be one of ${values.join(', ')}, not ${shown(value)}`,
      typeof value === 'string' ? nearestName(value, values.map(String)) : undefined,
    )
  return undefined
}

/** Returns the basis points of a percentage such as `50%`, or of a fraction such as 0.5. */
function shareOf(value: unknown): number | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  const [, percent] = /^\s*(\d{1,3}(?:\.\d+)?)\s*%\s*$/.exec(`${value}`) ?? []
  const bps = percent === undefined ? Number(value) * 10_000 : Number(percent) * 100
  const isShare = percent !== undefined || (bps > 0 && bps < 10_000 && /^0\.\d+$/.test(`${value}`.trim()))
  return isShare && Number.isInteger(bps) ? bps : undefined
}

/** Returns the requirement that a value does not meet, with the value and an example. */
function requirement({ message }: InputIssue, value: unknown, example: unknown): string {
  const text = plainText(message)
  return text.startsWith('must') ? `${text}, not ${shown(value)}${forExample(example)}` : text
}

/** Returns the schema's own text, or that of zod in plain words. */
function plainText(message: string): string {
  const [, kind] = /^Invalid input: expected (\w+)/.exec(message) ?? []
  if (kind !== undefined) return `must be ${/^[aeiou]/.test(kind) ? 'an' : 'a'} ${kind === 'int' ? 'integer' : kind}`
  const [, noun, sign, bound, unit] =
    /^Too (?:big|small): expected (\w+) to (?:be|have) ([<>])=?(-?\d+)(?: (\w+))?/.exec(message) ?? []
  if (noun !== undefined)
    return `must ${unit === undefined ? 'be' : 'have'} at ${sign === '<' ? 'most' : 'least'} ${bound}${unit === undefined ? '' : ` ${unit}`}`
  return /^(?:Invalid|Too|Unrecognized)\b/.test(message) ? 'must have the form that the description says' : message
}

const MAX_SHOWN = 48

/** Returns a value as JSON, cut: a caller need not read a signature again. */
function shown(value: unknown): string {
  const text = typeof value === 'number' && !Number.isFinite(value) ? `${value}` : (JSON.stringify(value) ?? `${value}`)
  return text.length <= MAX_SHOWN ? shorten(text) : shorten(text, 12)
}
