import { losslessJson } from '@agent-trading-service/protocol/lossless-json'
import { shorten } from '@agent-trading-service/protocol/shorten'

export type Fields = Record<string, unknown>

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns messages in the form that the SDK reads: fields that are null are absent, and arguments may be JSON text. */
export const normalizeMessages = (messages: unknown): unknown =>
  Array.isArray(messages) ? messages.map(normalizeMessage) : normalizeMessage(messages)

function normalizeMessage(message: unknown): unknown {
  if (!isFields(message) || typeof message.method !== 'string') return message
  const { params, ...rest } = message
  if (params === null) return rest
  return isFields(params) ? { ...rest, params: normalizeParams(params) } : message
}

function normalizeParams({ _meta, arguments: given, ...rest }: Fields): Fields {
  const parsed = typeof given === 'string' ? fieldsOfJson(given) : given
  return {
    ...rest,
    ...(_meta !== null && _meta !== undefined && { _meta }),
    ...(parsed !== null && parsed !== undefined && { arguments: parsed }),
  }
}

/** Returns the object that a text encodes; the text if it encodes none. */
function fieldsOfJson(text: string): unknown {
  const value = losslessJson(text)
  return isFields(value) ? value : text
}

/** Says what is wrong with the parameters of a tool's call, which the SDK would report as its validator does. */
export function problemOfCall(message: unknown): string | undefined {
  if (!isFields(message) || message.method !== 'tools/call') return undefined
  const { name, arguments: given } = isFields(message.params) ? message.params : {}
  if (name === undefined) return 'params.name is missing: name a tool of tools/list'
  if (typeof name !== 'string') return `params.name must be a string, not ${shown(name)}`
  if (given !== undefined && !isFields(given)) return `params.arguments must be an object, not ${shown(given)}`
  return undefined
}

const shown = (value: unknown) => shorten(JSON.stringify(value) ?? `${value}`)
