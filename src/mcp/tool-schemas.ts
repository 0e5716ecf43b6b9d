import { z } from 'zod'

// JSON Schemas of the tools, made small: a model reads all of them before its first call.

/** The JSON Schema of a tool's input or output. */
export type ToolSchema = { type: 'object'; [key: string]: unknown }
type JsonSchema = { [key: string]: unknown }

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Descriptions and the server's instructions say which form a string has; the server's refusal says it again. */
const OMITTED_KEYWORDS = new Set([
  '$schema',
  '$defs',
  'id',
  'example',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'pattern',
  'x-list',
])

const isOmitted = (key: string, value: unknown) =>
  OMITTED_KEYWORDS.has(key) ||
  // The bounds of a double say nothing about the field.
  ((key === 'minimum' || key === 'maximum') && Math.abs(Number(value)) >= Number.MAX_SAFE_INTEGER)

/** Returns the input schema of a tool without references, and without constraints on the length and form of strings and lists. */
export function inputSchema(input: z.ZodType): ToolSchema {
  const root: JsonSchema = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' })
  const definitions = isSchema(root.$defs) ? root.$defs : {}
  const compact = (schema: JsonSchema, name?: string): JsonSchema => {
    const source = resolveRef(schema, definitions)
    const entries = Object.entries(source).filter(
      ([key, value]) => !isOmitted(key, value) && !(key === 'description' && isKnown(value, name)),
    )
    return Object.fromEntries(entries.map(([key, value]) => [key, mapSubschemas(key, value, compact)]))
  }
  return compact(root) as ToolSchema
}

/** Input fields that many tools share and the server's instructions explain. */
const COMMON_INPUTS = [
  'deadline',
  'nonce',
  'note',
  'signature',
  'cursor',
  'triggerBps',
  'maxLossUsdc',
  'takeProfitPercent',
]

/** Tells whether a description says no more than the instructions, or only repeats the field's name, as `Agent id` of `agentId`. */
const isKnown = (text: unknown, name = '') =>
  COMMON_INPUTS.includes(name) || `${text}`.replaceAll(' ', '').toLowerCase() === name.toLowerCase()

/** Output fields that most responses have and the instructions explain. */
const COMMON_OUTPUTS = [
  ...['asOf', 'lagBlocks', 'total', 'warnings', 'serverTime', 'suggestedDeadline'],
  ...['blockNumber', 'fill', 'realizedPnlUsdc', 'pendingRules'],
]

/** Descriptions that mark untrusted text stay at any depth. */
const UNTRUSTED = /untrusted/

/**
 * Returns the output schema of a tool: the names and types of its fields, because a model reads the list before its first call and
 * the values themselves later. Fields that only repeat the input are left out, and what is deeper is only there where it marks
 * untrusted text.
 */
export function outputSchema(output: z.ZodType, input: ToolSchema): ToolSchema {
  const root: JsonSchema = z.toJSONSchema(output, { io: 'input', unrepresentable: 'any' })
  const definitions = isSchema(root.$defs) ? root.$defs : {}
  const propertiesOf = ({ properties }: JsonSchema): [string, JsonSchema][] =>
    Object.entries(isSchema(properties) ? properties : {}).map(([name, field]) => [
      name,
      resolveRef(isSchema(field) ? field : {}, definitions),
    ])
  const untrusted = (schema: JsonSchema): JsonSchema | undefined => {
    const { type, description, items } = schema
    if (UNTRUSTED.test(`${description}`)) return { type, description }
    const item = isSchema(items) ? untrusted(resolveRef(items, definitions)) : undefined
    if (item) return { type, items: item }
    const marked = propertiesOf(schema).flatMap(([name, field]) => {
      const kept = untrusted(field)
      return kept ? [[name, kept] as const] : []
    })
    return marked.length === 0 ? undefined : { type, properties: Object.fromEntries(marked) }
  }
  const inputs = Object.keys(isSchema(input.properties) ? input.properties : {})
  const fields = propertiesOf(resolveRef(root, definitions))
    .filter(([name]) => !COMMON_OUTPUTS.includes(name) && !inputs.includes(name))
    .map(([name, field]) => [name, untrusted(field) ?? typeOf(field)] as const)
  return { type: 'object', properties: Object.fromEntries(fields) }
}

/** Returns only the type of a schema: that of `anyOf: [{ type }, { type: 'null' }]` is `[type, 'null']`. */
function typeOf({ type, anyOf }: JsonSchema): JsonSchema {
  if (type !== undefined) return { type }
  const types = Array.isArray(anyOf) ? anyOf.flatMap(branch => (isSchema(branch) ? [branch.type] : [])) : []
  return types.length > 0 && types.every(given => typeof given === 'string') ? { type: [...new Set(types)] } : {}
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
  if ((key === 'anyOf' || key === 'oneOf') && Array.isArray(value))
    return value.map(inner => (isSchema(inner) ? map(inner) : inner))
  if ((key === 'items' || key === 'additionalProperties') && isSchema(value)) return map(value)
  return value
}
