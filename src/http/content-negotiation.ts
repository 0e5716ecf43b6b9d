import type { Context } from 'hono'
import { z } from 'zod'
import type { JsonOperation } from '../operations/operation.ts'
import { prefers } from '../requests/accept.ts'
import { csvOf } from './csv.ts'

/** A response format other than JSON. */
type AlternativeFormat = {
  name: 'md' | 'csv'
  mediaType: (typeof ALTERNATIVE_TYPES)[number]
  /** What the text is called. */
  label: string
  /** The schema of the text, a component named after the one of the JSON. */
  schema: z.ZodString
  example: string
  /** Renders the output; sets headers for what has no place in the text. */
  write(c: Context, output: unknown): string
}

const JSON_TYPE = 'application/json'
const ALTERNATIVE_TYPES = ['text/markdown', 'text/csv'] as const

/** Returns the formats of an operation besides JSON. */
export const alternativeFormats = (operation: JsonOperation): AlternativeFormat[] =>
  [markdownFormat(operation), csvFormat(operation)].filter(format => format !== undefined)

/** Returns the query parameter that requests one of the formats; nothing without any. */
export function formatQuery(formats: readonly AlternativeFormat[]): z.ZodRawShape {
  const names = formats.map(({ name }) => name)
  if (names.length === 0) return {}
  const description = `${formats.map(({ name, label }) => `\`${name}\` returns ${label}`).join(', ')} instead of JSON`
  return { format: z.enum(names).optional().describe(description) }
}

/**
 * Returns the format that a request prefers to JSON, by its query or its Accept header; undefined if it prefers none.
 */
export function preferredFormat(
  formats: readonly AlternativeFormat[],
  c: Context,
  requested: unknown,
): AlternativeFormat | undefined {
  const accept = c.req.header('Accept')
  const named = formats.find(({ name }) => name === requested)
  const [first, second] = formats.filter(({ mediaType }) => prefers(accept, mediaType, JSON_TYPE))
  if (named || first === undefined || second === undefined) return named ?? first
  return prefers(accept, second.mediaType, first.mediaType) ? second : first
}

/** Returns all that the representation of a URL depends on: the formats that an Accept header prefers to JSON. */
export const negotiatedFormats = (accept: string | undefined): string =>
  accept === undefined || accept === '*/*' || accept === JSON_TYPE
    ? ''
    : ALTERNATIVE_TYPES.filter(mediaType => prefers(accept, mediaType, JSON_TYPE)).join(' ')

const textSchema = (output: z.ZodType, suffix: string, description: string) => {
  const id = output.meta()?.id
  return z.string().meta({ ...(id !== undefined && { id: `${id}${suffix}` }), description })
}

function markdownFormat(operation: JsonOperation): AlternativeFormat | undefined {
  if (operation.markdown === undefined) return undefined
  const { markdown, output } = operation
  return {
    name: 'md',
    mediaType: 'text/markdown',
    label: 'Markdown',
    schema: textSchema(output, 'Markdown', 'The same as Markdown'),
    example: '# Vaults\n',
    write: (_, output) => markdown(output),
  }
}

function csvFormat({ csv, output }: JsonOperation): AlternativeFormat | undefined {
  const list = csv !== undefined && output instanceof z.ZodObject ? output.shape[csv] : undefined
  // A list of rows, or an object of columns.
  const row = list instanceof z.ZodArray ? list.element : list
  if (csv === undefined || !(row instanceof z.ZodObject)) return undefined
  const columns = Object.keys(row.shape)
  return {
    name: 'csv',
    mediaType: 'text/csv',
    label: 'CSV',
    schema: textSchema(
      output,
      'Csv',
      `RFC 4180 with a header row; an empty cell is null. Columns: ${columns.join(', ')}`,
    ),
    example: `${columns.join(',')}\r\n`,
    write(c, output) {
      const page = output as ListPage
      if (page.nextCursor) c.header('Link', `<${withCursor(c.req.url, page.nextCursor)}>; rel="next"`)
      if (page.lagBlocks !== undefined) c.header('X-Lag-Blocks', `${page.lagBlocks}`)
      return csvOf(columns, rowsOf(page[csv] as Rows | Columns))
    },
  }
}

type Rows = Record<string, unknown>[]
type Columns = Record<string, unknown[]>

function rowsOf(table: Rows | Columns): Rows {
  if (Array.isArray(table)) return table
  const length = Object.values(table)[0]?.length ?? 0
  return Array.from({ length }, (_, index) =>
    Object.fromEntries(Object.entries(table).map(([column, values]) => [column, values[index]])),
  )
}

/** The fields around the list of an output, which become headers of its CSV. */
type ListPage = {
  nextCursor?: string | null
  asOf?: { blockNumber: string }
  lagBlocks?: number
  [list: string]: unknown
}

function withCursor(url: string, cursor: string): string {
  const { pathname, searchParams } = new URL(url)
  searchParams.set('cursor', cursor)
  return `${pathname}?${searchParams}`
}
