import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Config } from '../config/config.ts'
import { CONVENTIONS, SERVICE_DESCRIPTION } from '../operations/discovery.ts'
import { operations } from '../operations/index.ts'
import { tags } from '../operations/operation-definition.ts'
import { UNDOCUMENTED } from './openapi-of-operation.ts'
import type { AppEnv } from './request-state.ts'

/** The versions of OpenAPI that the API is described in. Many generators know only 3.0. */
export type OpenApiVersion = '3.1.0' | '3.0.3'

/** Returns the OpenAPI description of the HTTP surface as JSON, with the recorded examples if there are any. */
export const openApiJson = (
  app: OpenAPIHono<AppEnv>,
  config: Config,
  examples?: RecordedExamples,
  openapi: OpenApiVersion = '3.1.0',
): string =>
  JSON.stringify(openApiDocument(app, config, openapi, examples), (_key, value) =>
    isSchema(value) ? asGeneratorsReadIt(value) : value,
  )

type Schema = {
  type: string | string[]
  default?: unknown
  maximum?: number
  properties?: object
  additionalProperties?: unknown
}

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && 'type' in value && [value.type].flat().every(isText)
const isText = (value: unknown) => typeof value === 'string'

const INT32_END = 2 ** 31

/**
 * Adds the format of numbers, without which typed languages take 32 bits, and says that objects may gain fields,
 * because clients in Go and Java otherwise refuse those that they do not know. Presents a default that is a parsed
 * value, such as a bigint, as the string that it is on the wire.
 */
function asGeneratorsReadIt(schema: Schema): object {
  const types = [schema.type].flat()
  if (types.includes('integer'))
    return { ...schema, format: (schema.maximum ?? INT32_END) < INT32_END ? 'int32' : 'int64' }
  if (schema.properties) return { additionalProperties: true, ...schema }
  if (types.includes('number')) return { ...schema, format: 'double' }
  return types.includes('string') && schema.default !== undefined ? { ...schema, default: `${schema.default}` } : schema
}

function openApiDocument(
  app: OpenAPIHono<AppEnv>,
  { service, version, baseUrl = '' }: Config,
  openapi: OpenApiVersion,
  examples?: RecordedExamples,
) {
  const given = {
    openapi,
    info: {
      title: service,
      version,
      description: describeApi(baseUrl),
      contact: { name: 'The operator of this deployment', ...(baseUrl !== '' && { url: baseUrl }) },
      license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
    },
    servers: [{ url: baseUrl || '/', description: 'This deployment' }],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
  }
  const document = openapi === '3.1.0' ? app.getOpenAPI31Document(given) : app.getOpenAPIDocument(given)
  for (const operation of operations) {
    const path = document.paths?.[operation.path] as Record<string, DocumentOperation> | undefined
    const described = path?.[operation.method]
    if (described === undefined) continue
    described.parameters = (described.parameters ?? []).filter(({ schema }) => schema?.[UNDOCUMENTED] !== true)
    if (examples) addExamples(described, examples)
    if (openapi === '3.0.3') unifyErrors(described)
  }
  document.components = {
    ...document.components,
    securitySchemes: {
      refreshSecret: {
        type: 'http',
        scheme: 'bearer',
        description: "The operator's refresh secret; required only if the deployment has one",
      },
      operatorSecret: {
        type: 'http',
        scheme: 'bearer',
        description: "The operator's secret; without it, balances are null",
      },
    },
  }
  return document
}

/**
 * Gives an operation one type of error, because progenitor (Rust) generates nothing for several: a 304 has no body and
 * responds only to a client that sends an ETag, and a header also has what the body of a 402 adds to an error.
 */
function unifyErrors(described: DocumentOperation): void {
  const { 304: _, ...responses } = described.responses
  described.responses = responses
  const error = responses['400']?.content?.['application/json']
  const { 402: payment } = responses
  const { example } = payment?.content?.['application/json'] ?? {}
  if (payment && error)
    responses['402'] = { ...payment, content: { 'application/json': example ? { ...error, example } : error } }
}

/** Describes the API in short, because generators copy it into every file. */
const describeApi = (baseUrl: string) => `${SERVICE_DESCRIPTION}

## Conventions

${CONVENTIONS}

## Guides

- [How to sign](${baseUrl}/docs/guides/signing)
- [Errors](${baseUrl}/docs/errors)
`

/** The recorded examples of one operation: the request that succeeded, and a body for each status and media type. */
export type RecordedOperation = {
  request?: { parameters: Record<string, string>; body?: unknown }
  responses: Record<string, Record<string, unknown>>
}

/**
 * What `npm run examples` records. `errors` has one body for each status, for operations that did not respond with it.
 */
export type RecordedExamples = { operations: Record<string, RecordedOperation>; errors: Record<string, unknown> }

type DocumentMedia = { example?: unknown }
type DocumentSchema = { type?: string | string[]; default?: unknown; example?: unknown; [UNDOCUMENTED]?: boolean }
type DocumentOperation = {
  operationId?: string
  parameters?: { name: string; in: string; required?: boolean; schema?: DocumentSchema; example?: unknown }[]
  requestBody?: { content: Record<string, DocumentMedia> }
  responses: Record<string, { content?: Record<string, DocumentMedia> }>
}

/** Fields of a message that expire. */
const DEADLINES = ['deadline', 'suggestedDeadline']

/** Parses recorded examples, with the given deadline in place of the recorded ones, which have passed. */
export const parseRecordedExamples = (text: string, deadline: string): RecordedExamples =>
  JSON.parse(text, (name, value) => (DEADLINES.includes(name) && typeof value === 'string' ? deadline : value))

const withoutExample = ({ example: _, ...schema }: DocumentSchema = {}): DocumentSchema => schema

/** Adds the recorded examples to an operation of the OpenAPI document. */
function addExamples(described: DocumentOperation, { operations, errors }: RecordedExamples): void {
  const { request, responses = {} } = operations[described.operationId ?? ''] ?? {}
  for (const parameter of described.parameters ?? []) {
    const recorded = request?.parameters[parameter.name]
    const isNumber = [parameter.schema?.type].flat().some(type => type === 'integer' || type === 'number')
    if (recorded !== undefined) parameter.example = isNumber ? Number(recorded) : recorded
    // Importers send every example, so together they must be a request that succeeds: some parameters exclude others.
    else if (request && parameter.schema?.default === undefined) parameter.schema = withoutExample(parameter.schema)
  }
  for (const media of Object.values(described.requestBody?.content ?? {}))
    if (request?.body !== undefined) media.example = request.body
  for (const [status, { content = {} }] of Object.entries(described.responses))
    for (const [mediaType, media] of Object.entries(content)) {
      const example = responses[status]?.[mediaType] ?? (Number(status) >= 400 ? errors[status] : undefined)
      if (example !== undefined) media.example = example
    }
}
