import { z } from 'zod'

// JSON Schemas of the tools, made small: a model reads all of them before its first call.

/** The JSON Schema of a tool's input or output. */
export type ToolSchema = { type: 'object'; [key: string]: unknown }
type JsonSchema = { [key: string]: unknown }

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Descriptions and the server's instructions say which form a string has; the server's refusal says it again. */
const OMITTED_KEYWORDS = new Set(['$schema', '$defs', 'id', 'example', 'minLength', 'maxLength', 'pattern'])

const isOmitted = (key: string, value: unknown) =>
  OMITTED_KEYWORDS.has(key) ||
  // The bounds of a double say nothing about the field.
  ((key === 'minimum' || key === 'maximum') && Math.abs(Number(value)) >= Number.MAX_SAFE_INTEGER)

/** Returns the input schema of a tool without references, and without constraints on the length and form of strings. */
export function inputSchema(input: z.ZodType): ToolSchema {
  const root: JsonSchema = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' })
  const definitions = isSchema(root.$defs) ? root.$defs : {}
  const compact = (schema: JsonSchema, name?: string): JsonSchema => {
    const source = resolveRef(schema, definitions)
    const entries = Object.entries(source).filter(
      ([key, value]) => !isOmitted(key, value) && !(key === 'description' && repeatsName(value, name)),
    )
    return Object.fromEntries(entries.map(([key, value]) => [key, mapSubschemas(key, value, compact)]))
  }
  return compact(root) as ToolSchema
}

/** Tells whether a description only repeats the name of its field, as `Agent id` of `agentId`. */
const repeatsName = (text: unknown, name = '') => `${text}`.replaceAll(' ', '').toLowerCase() === name.toLowerCase()

const STRUCTURAL_KEYWORDS = ['type', 'properties', 'items', 'enum', 'const', 'anyOf']
const MAX_DEPTH = 2
/** Descriptions that mark untrusted text stay at any depth. */
const UNTRUSTED = /untrusted/

/**
 * Returns the output schemas of one tool list: names and types to the second level; descriptions (the first sentence) and
 * enums of the first; no constraints and no `required`. A component that occurs more than once is spelled out at its
 * first occurrence and referred to by title afterwards. No description is repeated.
 */
export function outputSchemas(outputs: readonly z.ZodType[]): ToolSchema[] {
  const occurrences = new Map<string, number>()
  compactOutputs(outputs, component => {
    occurrences.set(component, (occurrences.get(component) ?? 0) + 1)
    return false
  })
  return compactOutputs(outputs, component => (occurrences.get(component) ?? 0) > 1)
}

function compactOutputs(outputs: readonly z.ZodType[], hasTitle: (component: string) => boolean): ToolSchema[] {
  const spelledOut = new Set<string>()
  const seenDescriptions = new Set<unknown>()

  const keepsDescription = (text: unknown, depth: number) => {
    if (UNTRUSTED.test(`${text}`)) return true
    if (depth > 1 || seenDescriptions.has(text)) return false
    seenDescriptions.add(text)
    return true
  }
  const isKept = (key: string, value: unknown, depth: number) => {
    if (key === 'description') return keepsDescription(value, depth)
    if (key === 'properties' || key === 'enum') return depth < MAX_DEPTH
    if (key === 'additionalProperties') return isSchema(value) && depth < MAX_DEPTH && Object.keys(value).length > 0
    return STRUCTURAL_KEYWORDS.includes(key)
  }
  return outputs.map(output => {
    const root: JsonSchema = z.toJSONSchema(output, { io: 'input', unrepresentable: 'any' })
    const definitions = isSchema(root.$defs) ? root.$defs : {}
    const compact = (schema: JsonSchema, depth: number, isItem = false): JsonSchema => {
      const component = typeof schema.$ref === 'string' ? componentName(schema.$ref) : undefined
      const title = component !== undefined && hasTitle(component) && { title: component }
      const source = resolveRef(schema, definitions)
      if (isPassedOn(source)) return { type: 'object' }
      if (component !== undefined && spelledOut.has(component)) return title || { type: source.type }
      if (component !== undefined && depth < MAX_DEPTH) spelledOut.add(component)
      // The description of a list is enough: its items need none.
      const kept = Object.entries(source).filter(
        ([key, value]) =>
          isKept(key, value, depth) && !(isItem && key === 'description' && !UNTRUSTED.test(`${value}`)),
      )
      const entries = kept.map(([key, value]) => [
        key,
        key === 'description'
          ? firstSentence(value)
          : mapSubschemas(key, value, inner =>
              key === 'items' ? compact(inner, depth, true) : compact(inner, depth + 1),
            ),
      ])
      return flattenNullable({ ...title, ...Object.fromEntries(entries) })
    }
    return { type: 'object', ...compact(root, 0) }
  })
}

/** Tells whether clients pass an object on as it is: its fields are of no use to a model. */
const isPassedOn = (schema: JsonSchema): boolean => schema['x-passed-on'] === true

/** Units that the server's instructions explain once for all fields. */
const COMMON_UNITS = /; (USDC base units \(6 decimals\)|Unix seconds)$/
const firstSentence = (text: unknown) => `${text}`.split('. ')[0]?.replace(COMMON_UNITS, '')

/** Shortens `anyOf: [{ type }, { type: 'null' }]` to `type: [type, 'null']`. */
function flattenNullable({ anyOf, ...rest }: JsonSchema): JsonSchema {
  const [value, other, ...more] = Array.isArray(anyOf) ? anyOf : []
  const isNullable = isSchema(value) && typeof value.type === 'string' && isSchema(other) && other.type === 'null'
  if (!isNullable || more.length > 0) return anyOf === undefined ? rest : { ...rest, anyOf }
  const values = Array.isArray(value.enum) && { enum: [...value.enum, null] }
  return { ...rest, ...value, ...values, type: [value.type, 'null'] }
}

const componentName = (ref: string) => ref.slice(ref.lastIndexOf('/') + 1)

/** Returns the schema behind a reference, with the keywords next to the reference. */
function resolveRef({ $ref, ...rest }: JsonSchema, definitions: JsonSchema): JsonSchema {
  if (typeof $ref !== 'string') return rest
  const target = definitions[componentName($ref)]
  return { ...(isSchema(target) ? target : {}), ...rest }
}

/** Maps every schema inside the value of a keyword. */
function mapSubschemas(key: string, value: unknown, map: (schema: JsonSchema, name?: string) => JsonSchema): unknown {
  if (key === 'properties' && isSchema(value))
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [name, isSchema(inner) ? map(inner, name) : inner]),
    )
  if (key === 'anyOf' && Array.isArray(value)) return value.map(inner => (isSchema(inner) ? map(inner) : inner))
  if ((key === 'items' || key === 'additionalProperties') && isSchema(value)) return map(value)
  return value
}
