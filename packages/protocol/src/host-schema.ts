/** The JSON Schema of a tool. */
export type ToolSchema = { type: 'object'; [keyword: string]: unknown }
export type JsonSchema = { [keyword: string]: unknown }

/**
 * The keywords that every host of MCP converts to its model's form. `additionalProperties: false`, `const`, `oneOf` and
 * `propertyNames` make some of them refuse the whole list; the server refuses unknown fields by itself.
 */
const KEYWORDS = new Set([
  ...['type', 'properties', 'required', 'items', 'enum', 'anyOf'],
  ...['description', 'default', 'minimum', 'maximum'],
])

/**
 * Returns the JSON Schema of a tool's input as hosts convert it: without references and other keywords. Members of a
 * union that a property tells apart become one object with the fields of all. `isKnown` says which descriptions a model
 * does not need.
 */
export function hostSchema(root: JsonSchema, isKnown = (_description: unknown, _name?: string) => false): ToolSchema {
  const definitions = isSchema(root.$defs) ? root.$defs : {}
  const convert = (given: JsonSchema, name?: string): JsonSchema => {
    const { const: only, oneOf, ...schema } = resolveRef(given, definitions)
    const source = {
      ...schema,
      ...(only !== undefined && { enum: [only] }),
      ...(Array.isArray(oneOf) && merged(oneOf.filter(isSchema).map(member => resolveRef(member, definitions)))),
    }
    const kept = Object.entries(source).filter(
      ([key, value]) =>
        KEYWORDS.has(key) && !isBoundOfDouble(key, value) && !(key === 'description' && isKnown(value, name)),
    )
    return Object.fromEntries(kept.map(([key, value]) => [key, mapSubschemas(key, value, convert)]))
  }
  return convert(root) as ToolSchema
}

/** Returns one object with the fields of several, of which those that all of them require are required. */
function merged(members: readonly JsonSchema[]): JsonSchema {
  const fields: Record<string, unknown> = {}
  for (const { properties } of members)
    for (const [name, field] of Object.entries(properties ?? {})) {
      const values = [...valuesOf(fields[name]), ...valuesOf(field)]
      fields[name] = values.length > 0 ? { type: 'string', enum: values } : (fields[name] ?? field)
    }
  const isRequired = (name: string) =>
    members.every(({ required }) => Array.isArray(required) && required.includes(name))
  return { type: 'object', properties: fields, required: Object.keys(fields).filter(isRequired) }
}

/** Returns the values that a schema allows, if it lists them. */
function valuesOf(schema: unknown): unknown[] {
  if (!isSchema(schema)) return []
  const { const: only, enum: values } = schema
  return Array.isArray(values) ? values : only === undefined ? [] : [only]
}

export const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The bounds of a double say nothing about the field. */
const isBoundOfDouble = (key: string, value: unknown) =>
  (key === 'minimum' || key === 'maximum') && Math.abs(Number(value)) >= Number.MAX_SAFE_INTEGER

const componentName = (ref: string) => ref.slice(ref.lastIndexOf('/') + 1)

/** Returns the schema behind a reference, with the keywords next to the reference. */
export function resolveRef({ $ref, ...rest }: JsonSchema, definitions: JsonSchema): JsonSchema {
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
  return key === 'items' && isSchema(value) ? map(value) : value
}
