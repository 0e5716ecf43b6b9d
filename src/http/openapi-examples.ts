import { z } from 'zod'
import { errorCodes } from '../errors/catalogue.ts'

type ExampleSchema = {
  $ref?: string
  type?: string | string[]
  anyOf?: ExampleSchema[]
  allOf?: ExampleSchema[]
  enum?: unknown[]
  const?: unknown
  default?: unknown
  example?: unknown
  pattern?: string
  properties?: Record<string, ExampleSchema>
  required?: string[]
  items?: ExampleSchema
  additionalProperties?: ExampleSchema | boolean
  minimum?: number
  description?: string
}

/** Returns an example of a schema on the wire, assembled from the examples of its leaves, with every optional field. */
export function exampleOf(schema: z.ZodType): unknown {
  const { $defs = {}, ...root } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as ExampleSchema & {
    $defs?: Record<string, ExampleSchema>
  }
  return instance(root, $defs)
}

function instance(schema: ExampleSchema, definitions: Record<string, ExampleSchema>): unknown {
  const { $ref, example, enum: values, anyOf, properties, items, additionalProperties: others } = schema
  const [type] = [schema.type].flat()
  if (example !== undefined) return example
  if ($ref !== undefined) return instance(definitions[$ref.slice($ref.lastIndexOf('/') + 1)] ?? {}, definitions)
  if (schema.const !== undefined) return schema.const
  if (schema.default !== undefined) return type === 'string' ? `${schema.default}` : schema.default
  if (values !== undefined) return values[0]
  const [first] = anyOf ?? schema.allOf ?? []
  if (first !== undefined) return instance(first, definitions)
  if (properties !== undefined)
    return Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, instance(inner, definitions)]))
  if (items !== undefined) return [instance(items, definitions)]
  if (typeof others === 'object') return { NVDA: instance(others, definitions) }
  if (type === 'integer' || type === 'number')
    return schema.minimum !== undefined && schema.minimum > 0 ? schema.minimum : 1
  if (type === 'boolean') return true
  if (type === 'object') return {}
  return schema.pattern === undefined ? (schema.description ?? 'text') : exampleOfPattern(schema.pattern)
}

/** Returns a text that matches one of the few patterns in use: a hash, an address, a signature or digits. */
function exampleOfPattern(pattern: string): string {
  const [, digits] = /\{(40|64)\}/.exec(pattern) ?? []
  if (digits !== undefined) return `0x${'5f'.repeat(Number(digits) / 2)}`
  return pattern.includes('0x') ? `0x${'5f'.repeat(65)}` : '1'
}

/** Returns an example error body of a status. */
export function errorExample(status: number) {
  const found = errorCodes.find(code => code.status === status) ?? { code: 'PAYMENT_REQUIRED', remedy: undefined }
  return {
    error: 'A message that says what is wrong.',
    code: found.code,
    requestId: '5e7ad1ca-6fc2-4a5f-8b8a-3d6f0f2f7f11',
    ...(found.remedy !== undefined && { remedy: found.remedy }),
  }
}
