import type { Context } from 'hono'
import { accepts } from 'hono/accepts'
import { z } from 'zod'
import type { Operation } from '../operations/define-operation.ts'
import { csvOf } from './csv.ts'

/** What a read also answers over HTTP, besides JSON. */
export type Format = {
  name: 'md' | 'csv'
  mediaType: string
  /** The query parameter that asks for it. */
  query: z.ZodObject
  example: string
  /** The text of an answer; what has no place in it goes into headers. */
  write(c: Context, answer: never): string
}

const JSON_TYPE = 'application/json'

/** The other format of an operation; undefined where it has none. */
export const formatOf = (operation: Operation): Format | undefined => markdownOf(operation) ?? tableOf(operation)

/** Whether a request asks for a format, by its query or by what it accepts; JSON where it has no preference. */
export const isAskedFor = ({ name, mediaType }: Format, c: Context, asked: unknown): boolean =>
  asked === name || accepts(c, { header: 'Accept', supports: [JSON_TYPE, mediaType], default: JSON_TYPE }) === mediaType

const queryOf = (name: Format['name'], what: string) =>
  z.object({
    format: z
      .enum([name])
      .optional()
      .meta({ description: `\`${name}\` answers ${what} instead of JSON` }),
  })

const markdownOf = ({ markdown }: Operation): Format | undefined =>
  markdown && {
    name: 'md',
    mediaType: 'text/markdown',
    query: queryOf('md', 'markdown'),
    example: '# Vaults\n',
    write: (_, answer) => markdown(answer),
  }

function tableOf({ csv, output }: Operation): Format | undefined {
  const list = csv !== undefined && output instanceof z.ZodObject ? output.shape[csv] : undefined
  const row = list instanceof z.ZodArray ? list.element : undefined
  if (csv === undefined || !(row instanceof z.ZodObject)) return undefined
  const columns = Object.keys(row.shape)
  return {
    name: 'csv',
    mediaType: 'text/csv',
    query: queryOf('csv', 'CSV'),
    example: `${columns.join(',')}\r\n`,
    write(c, answer: Record<string, unknown>) {
      const { nextCursor, asOf, lagBlocks } = answer as Partial<Around>
      if (nextCursor) c.header('Link', `<${withCursor(c.req.url, nextCursor)}>; rel="next"`)
      if (asOf) c.header('X-As-Of-Block', asOf.blockNumber)
      if (lagBlocks !== undefined) c.header('X-Lag-Blocks', `${lagBlocks}`)
      return csvOf(columns, answer[csv] as Record<string, unknown>[])
    },
  }
}

/** What an answer says around its list. */
type Around = { nextCursor: string | null; asOf: { blockNumber: string }; lagBlocks: number }

function withCursor(url: string, cursor: string): string {
  const { pathname, searchParams } = new URL(url)
  searchParams.set('cursor', cursor)
  return `${pathname}?${searchParams}`
}
