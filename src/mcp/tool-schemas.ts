import {
  hostSchema,
  isSchema,
  type JsonSchema,
  resolveRef,
  type ToolSchema,
} from '@agent-trading-service/protocol/host-schema'
import { z } from 'zod'

// JSON Schemas of the tools, made small: a model reads all of them before its first call.

/**
 * Returns the input schema of a tool, without what descriptions and the server's instructions say about the form of
 * strings.
 */
export const inputSchema = (input: z.ZodType): ToolSchema =>
  hostSchema(z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }), isKnown)

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

/**
 * Tells whether a description says no more than the instructions, or only repeats the field's name, as `Agent id` of
 * `agentId`.
 */
const isKnown = (text: unknown, name = '') =>
  COMMON_INPUTS.includes(name) || `${text}`.replaceAll(' ', '').toLowerCase() === name.toLowerCase()

/** Output fields that most responses have and the instructions explain, or that explain themselves. */
const COMMON_OUTPUTS = [
  ...['asOf', 'lagBlocks', 'total', 'warnings', 'serverTime', 'suggestedDeadline'],
  ...['blockNumber', 'calls', 'effects', 'examination', 'fill', 'realizedPnlUsdc', 'pendingRules'],
]

/** Descriptions that mark untrusted text stay at any depth. */
const UNTRUSTED = /untrusted/

/**
 * Returns the output schema of a tool: the names and types of its fields, because a model reads the list before its
 * first call and the values themselves later. Fields that only repeat the input are left out, and what is deeper is
 * only there where it marks untrusted text.
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
    .map(([name, field]) => [name, untrusted(field) ?? typeOf(field, definitions)] as const)
  return { type: 'object', properties: Object.fromEntries(fields) }
}

/**
 * Returns only the type of a schema and of its items: that of `anyOf: [{ type }, { type: 'null' }]` is `[type,
 * 'null']`.
 */
function typeOf({ type, anyOf, items }: JsonSchema, definitions: JsonSchema): JsonSchema {
  const branches = (Array.isArray(anyOf) ? anyOf : [{ type, items }]).map(branch => resolveRef(branch, definitions))
  const types = [...new Set(branches.flatMap(branch => branch.type))]
  const [list] = branches.filter(branch => isSchema(branch.items))
  if (!types.every(given => typeof given === 'string')) return {}
  return {
    type: types.length === 1 ? types[0] : types,
    ...(isSchema(list?.items) && { items: typeOf(resolveRef(list.items, definitions), definitions) }),
  }
}
