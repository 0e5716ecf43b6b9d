import { z } from 'zod'

/** A JSON Schema of an object, as a tool lists it. */
export type ToolSchema = { type: 'object'; [key: string]: unknown }
type Schema = { [key: string]: unknown }

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const never = new Set(['$schema', '$defs', 'id', 'example'])
/** What says nothing to a reader: bounds that only keep numbers safe, and the length of a number in digits. */
const isBound = (key: string, value: unknown) =>
  (key === 'minimum' || key === 'maximum' || key === 'maxLength') && Math.abs(Number(value)) > 4096

/** The input of a tool with every constraint that matters, and without references. */
export function inputSchema(input: z.ZodType): ToolSchema {
  const root: Schema = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' })
  const definitions = isSchema(root.$defs) ? root.$defs : {}
  const compact = (schema: Schema): Schema => {
    const source = resolve(schema, definitions)
    const entries = Object.entries(source).filter(([key, value]) => !never.has(key) && !isBound(key, value))
    return Object.fromEntries(entries.map(([key, value]) => [key, nested(key, value, compact)]))
  }
  return compact(root) as ToolSchema
}

const inOutputs = ['type', 'properties', 'items', 'enum', 'const', 'anyOf', 'additionalProperties']
const MARKED = /untrusted/

/**
 * Makes the output schemas of one tool list, kept short: names and types at any depth, the text of the first level,
 * and no constraints, which are the service's business. A component is spelled out where the list first has it and
 * bears only its title afterwards.
 */
export function outputSchemas(): (output: z.ZodType) => ToolSchema {
  const spelledOut = new Set<string>()
  const said = new Set<unknown>()
  return output => {
    const root: Schema = z.toJSONSchema(output, { io: 'output', unrepresentable: 'any' })
    const definitions = isSchema(root.$defs) ? root.$defs : {}
    const compact = (schema: Schema, depth: number): Schema => {
      const title = typeof schema.$ref === 'string' ? nameOf(schema.$ref) : undefined
      const source = resolve(schema, definitions)
      if (title !== undefined && spelledOut.has(title)) return { type: source.type, title }
      if (title !== undefined) spelledOut.add(title)
      const result: Schema = title === undefined ? {} : { title }
      for (const [key, value] of Object.entries(source)) {
        if (
          key === 'description'
            ? isWorthSaying(value, depth)
            : key === 'required'
              ? depth === 0
              : inOutputs.includes(key)
        )
          result[key] = nested(key, value, inner => compact(inner, key === 'items' ? depth : depth + 1))
      }
      return result
    }
    const isWorthSaying = (text: unknown, depth: number) => {
      if (MARKED.test(`${text}`)) return true
      if (depth > 1 || said.has(text)) return false
      said.add(text)
      return true
    }
    return { type: 'object', ...compact(root, 0) }
  }
}

const nameOf = (ref: string) => ref.slice(ref.lastIndexOf('/') + 1)

/** The schema that a reference stands for, with what is said beside the reference. */
function resolve({ $ref, ...beside }: Schema, definitions: Schema): Schema {
  if (typeof $ref !== 'string') return beside
  const target = definitions[nameOf($ref)]
  return { ...(isSchema(target) ? target : {}), ...beside }
}

/** A keyword's value with every schema in it made compact. */
function nested(key: string, value: unknown, compact: (schema: Schema) => Schema): unknown {
  if (key === 'properties' && isSchema(value))
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [name, isSchema(inner) ? compact(inner) : inner]),
    )
  if (key === 'anyOf' && Array.isArray(value)) return value.map(inner => (isSchema(inner) ? compact(inner) : inner))
  if ((key === 'items' || key === 'additionalProperties') && isSchema(value)) return compact(value)
  return value
}
