import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import type { Operation } from '../../src/operations/operation.ts'

/** A JSON Schema of the OpenAPI document. */
export type Schema = {
  $ref?: string
  type?: string | string[]
  description?: string
  enum?: unknown[]
  const?: unknown
  default?: unknown
  example?: unknown
  format?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  allOf?: Schema[]
  oneOf?: Schema[]
  additionalProperties?: Schema | boolean
}
type Media = Record<string, { schema?: Schema; example?: unknown }>
export type Parameter = {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description?: string
  schema?: Schema
  example?: unknown
}
/** An operation of the OpenAPI document. */
export type Described = {
  operationId: string
  summary: string
  description: string
  tags: string[]
  security?: Record<string, unknown>[]
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Media }
  responses: Record<string, { description: string; content?: Media }>
}
export type ApiDocument = {
  info: { title: string; version: string; description: string }
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Described>>
  components: { schemas: Record<string, Schema> }
}
/** A row of the error catalogue. */
export type ErrorRow = {
  status: number
  sentence: (facts: Record<string, unknown>) => string
  remedy: string
  retryable?: true
  retryAfterSeconds?: number
}
export type ServiceDescription = {
  document: ApiDocument
  operations: readonly Operation[]
  errorRows: Record<string, ErrorRow>
  guideFiles: readonly { slug: string; file: string }[]
  operationMarkdown: (operation: Operation) => string
}

export const root = join(import.meta.dirname, '../..')
export const RECORDED_EXAMPLES = join(root, 'src/generated/recorded-examples.json')

/** Keeps the pages the same at every build; the script in the page moves it ahead. */
const BUILD_DEADLINE = '1893456000'

/** The part of the Workers runtime that src/ imports; the description needs none of it. */
const WORKERS_RUNTIME = `data:text/javascript,${encodeURIComponent(
  'export class DurableObject {}; export const env = {}; export const exports = {}; export const waitUntil = () => {}; export const tracing = {}',
)}`

/** Loads the Worker's sources in Node and returns what they say about the API. */
export async function readServiceDescription(): Promise<ServiceDescription> {
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      specifier.startsWith('cloudflare:') ? { url: WORKERS_RUNTIME, shortCircuit: true } : next(specifier, context),
  })
  try {
    const [
      { createApp },
      { openApiJson, parseRecordedExamples },
      { parseConfig },
      { createContext },
      { operations },
      { errorRows },
      { guides, operationMarkdown },
    ] = await Promise.all([
      import('../../src/http/app.ts'),
      import('../../src/http/openapi-document.ts'),
      import('../../src/config/config.ts'),
      import('../../src/context.ts'),
      import('../../src/operations/index.ts'),
      import('../../src/errors/catalogue.ts'),
      import('../../src/http/llms-txt.ts'),
    ])
    const config = parseConfig({})
    const app = createApp(createContext(config, {} as Parameters<typeof createContext>[1]))
    const recorded = readFileSync(RECORDED_EXAMPLES, 'utf8')
    const parsed = parseRecordedExamples(recorded, BUILD_DEADLINE)
    const document: ApiDocument = JSON.parse(openApiJson(app, config, parsed))
    return {
      document,
      operations,
      errorRows: errorRows as unknown as Record<string, ErrorRow>,
      guideFiles: guides,
      operationMarkdown,
    }
  } finally {
    hooks.deregister()
  }
}
