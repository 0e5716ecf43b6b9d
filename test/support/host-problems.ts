import type { JsonSchema } from '@agent-trading-service/protocol/host-schema'

const KEYWORDS = [
  ...['type', 'properties', 'required', 'items', 'enum', 'anyOf'],
  ...['description', 'default', 'minimum', 'maximum'],
]

type Subschemas = { properties?: Record<string, JsonSchema>; items?: JsonSchema; anyOf?: JsonSchema[] }

/** Returns what of a tool's schema some MCP host does not convert to its model's form, with the place of each. */
export function hostProblems(schema: JsonSchema, at: string): string[] {
  const { type, properties, items, anyOf } = schema as { type?: unknown } & Subschemas
  return [
    ...Object.keys(schema).flatMap(keyword => (KEYWORDS.includes(keyword) ? [] : [`${at} has ${keyword}`])),
    ...([type].flat().includes('array') && items === undefined ? [`${at} has no items`] : []),
    ...Object.entries(properties ?? {}).flatMap(([name, field]) => hostProblems(field, `${at}.${name}`)),
    ...(items === undefined ? [] : hostProblems(items, `${at}[]`)),
    ...(anyOf ?? []).flatMap(branch => hostProblems(branch, `${at}|`)),
  ]
}
