import { showUnseen } from '@agent-trading-service/protocol/unseen-text'
import { errorRows } from '../errors/catalogue.ts'
import type { ErrorRow } from '../errors/refusal.ts'
import { operations } from '../operations/index.ts'
import type { Operation } from '../operations/operation.ts'

const toolOf = new Map<string, string>(
  (operations as readonly Operation[]).flatMap(operation =>
    operation.kind === 'json' && operation.tool
      ? [[`${operation.method.toUpperCase()} ${operation.path}`, operation.tool.name]]
      : [],
  ),
)

/** Returns a text with the name of the tool in place of each endpoint, which is a method and a path. */
export const namingTools = (text: string): string =>
  text.replace(/\b(?:GET|POST|PUT) \/[\w/{}-]*/g, endpoint => toolOf.get(endpoint) ?? endpoint)

/** Returns the remedy of a code as callers of tools need it. `remedy` is what the refusal says. */
export function toolRemedy(code: string, remedy: string): string {
  const row = Object.hasOwn(errorRows, code) ? (errorRows[code as keyof typeof errorRows] as ErrorRow) : undefined
  return namingTools((row?.remedy === remedy && row.toolRemedy) || remedy)
}

/** The fields of responses with texts of the service about what to do. No agent writes into them. */
const TEXT_FIELDS = ['remedy', 'warnings']

/**
 * Returns a response as a model may read it: with tools in place of endpoints in its remedies and warnings, and with
 * the names of unseen characters in their place, because others write names into the chain. HTTP has the texts as they
 * are.
 */
export function responseForTools(value: unknown): unknown {
  if (typeof value === 'string') return showUnseen(value)
  if (Array.isArray(value)) return value.map(responseForTools)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      showUnseen(name),
      TEXT_FIELDS.includes(name) ? textsForTools(inner) : responseForTools(inner),
    ]),
  )
}

function textsForTools(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(textsForTools)
  return typeof value === 'string' ? showUnseen(namingTools(value)) : value
}
