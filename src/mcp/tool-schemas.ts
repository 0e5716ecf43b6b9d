import { z } from 'zod'

/** A JSON Schema of an object, as a tool lists it. */
export type ToolSchema = { type: 'object'; [key: string]: unknown }
type Schema = { [key: string]: unknown }

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const meaningless = new Set(['$schema', '$defs', 'id', 'example', 'minLength', 'maxLength'])
const DIGITS = ['^[0-9]+$', '^[1-9][0-9]*$']
const isMeaningless = (key: string, value: unknown) =>
  meaningless.has(key) ||
  // The instructions of the server say once that ids and amounts are digits.
  (key === 'pattern' && DIGITS.includes(`${value}`)) ||
  // The bounds of a double.
  ((key === 'minimum' || key === 'maximum') && Math.abs(Number(value)) >= Number.MAX_SAFE_INTEGER)

/** The input of a tool with every constraint but the lengths and digits of texts, and without references. */
export function inputSchema(input: z.ZodType): ToolSchema {
  const root: Schema = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' })
  const definitions = isSchema(root.$defs) ? root.$defs : {}
  const compact = (schema: Schema, name?: string): Schema => {
    const source = resolve(schema, definitions)
    const entries = Object.entries(source).filter(
      ([key, value]) => !isMeaningless(key, value) && !(key === 'description' && repeats(value, name)),
    )
    return Object.fromEntries(entries.map(([key, value]) => [key, nested(key, value, compact)]))
  }
  return compact(root) as ToolSchema
}

/** Whether a text says no more than the name of the field that it describes, as `Agent id` of `agentId`. */
const repeats = (text: unknown, name = '') => `${text}`.replaceAll(' ', '').toLowerCase() === name.toLowerCase()

const structure = ['type', 'properties', 'items', 'enum', 'const', 'anyOf']
const MARKED = /untrusted/
const DEPTH = 2

/**
 * The output schemas of one tool list, kept short: names and types to the second level, the first sentence about those of
 * the first and its enums, and no constraints (nor which fields are always there), which are the service's business. A component that occurs again is
 * spelled out where the list first has it and bears only its title afterwards; a text is said once.
 */
export function outputSchemas(outputs: readonly z.ZodType[]): ToolSchema[] {
  const met = new Map<string, number>()
  compactOutputs(outputs, title => {
    met.set(title, (met.get(title) ?? 0) + 1)
    return false
  })
  return compactOutputs(outputs, title => (met.get(title) ?? 0) > 1)
}

function compactOutputs(outputs: readonly z.ZodType[], isTitled: (title: string) => boolean): ToolSchema[] {
  const spelledOut = new Set<string>()
  const said = new Set<unknown>()

  const isWorthSaying = (text: unknown, depth: number) => {
    if (MARKED.test(`${text}`)) return true
    if (depth > 1 || said.has(text)) return false
    said.add(text)
    return true
  }
  const isKept = (key: string, value: unknown, depth: number) => {
    if (key === 'description') return isWorthSaying(value, depth)
    if (key === 'properties' || key === 'enum') return depth < DEPTH
    if (key === 'additionalProperties') return isSchema(value) && depth < DEPTH && Object.keys(value).length > 0
    return structure.includes(key)
  }
  return outputs.map(output => {
    const root: Schema = z.toJSONSchema(output, { io: 'output', unrepresentable: 'any' })
    const definitions = isSchema(root.$defs) ? root.$defs : {}
    const compact = (schema: Schema, depth: number, isItem = false): Schema => {
      const component = typeof schema.$ref === 'string' ? nameOf(schema.$ref) : undefined
      const title = component !== undefined && isTitled(component) && { title: component }
      const source = resolve(schema, definitions)
      if (component !== undefined && spelledOut.has(component)) return title || { type: source.type }
      if (component !== undefined && depth < DEPTH) spelledOut.add(component)
      // Of a list its own description says enough.
      const kept = Object.entries(source).filter(
        ([key, value]) => isKept(key, value, depth) && !(isItem && key === 'description' && !MARKED.test(`${value}`)),
      )
      const inside = kept.map(([key, value]) => [
        key,
        key === 'description'
          ? firstSentence(value)
          : nested(key, value, inner => (key === 'items' ? compact(inner, depth, true) : compact(inner, depth + 1))),
      ])
      return orNull({ ...title, ...Object.fromEntries(inside) })
    }
    return { type: 'object', ...compact(root, 0) }
  })
}

/** What the instructions of the server say of all amounts and times is not repeated. */
const UNITS = /; (USDC base units \(6 decimals\)|Unix seconds)$/
const firstSentence = (text: unknown) => `${text}`.split('. ')[0]?.replace(UNITS, '')

/** What may also be null says so in its type, the shorter way, where it has a plain one. */
function orNull({ anyOf, ...beside }: Schema): Schema {
  const [value, other, ...more] = Array.isArray(anyOf) ? anyOf : []
  const isPlain = isSchema(value) && typeof value.type === 'string' && isSchema(other) && other.type === 'null'
  if (!isPlain || more.length > 0) return anyOf === undefined ? beside : { ...beside, anyOf }
  const values = Array.isArray(value.enum) && { enum: [...value.enum, null] }
  return { ...beside, ...value, ...values, type: [value.type, 'null'] }
}

const nameOf = (ref: string) => ref.slice(ref.lastIndexOf('/') + 1)

/** The schema that a reference stands for, with what is said beside the reference. */
function resolve({ $ref, ...beside }: Schema, definitions: Schema): Schema {
  if (typeof $ref !== 'string') return beside
  const target = definitions[nameOf($ref)]
  return { ...(isSchema(target) ? target : {}), ...beside }
}

/** A keyword's value with every schema in it made compact. */
function nested(key: string, value: unknown, compact: (schema: Schema, name?: string) => Schema): unknown {
  if (key === 'properties' && isSchema(value))
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [name, isSchema(inner) ? compact(inner, name) : inner]),
    )
  if (key === 'anyOf' && Array.isArray(value)) return value.map(inner => (isSchema(inner) ? compact(inner) : inner))
  if ((key === 'items' || key === 'additionalProperties') && isSchema(value)) return compact(value)
  return value
}
