import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Config } from '../config/config.ts'
import { errorCodes } from '../errors/catalogue.ts'
import { CONVENTIONS, SERVICE_DESCRIPTION } from '../operations/discovery.ts'
import { operations } from '../operations/index.ts'
import { tags } from '../operations/operation.ts'
import { signingGuide } from '../operations/signing.ts'
import type { AppEnv } from './request-state.ts'

/** Returns the OpenAPI 3.1 description of the HTTP surface as JSON, with the recorded examples if there are any. */
export const openApiJson = (app: OpenAPIHono<AppEnv>, config: Config, examples?: RecordedExamples): string =>
  JSON.stringify(openApiDocument(app, config, examples), (_key, value) =>
    isStringWithDefault(value) ? { ...value, default: `${value.default}` } : value,
  )

/** Recognises a string schema whose default is the parsed value, such as a bigint. On the wire it is a string too. */
const isStringWithDefault = (value: unknown): value is { type: 'string'; default: unknown } =>
  typeof value === 'object' && value !== null && 'default' in value && 'type' in value && value.type === 'string'

function openApiDocument(app: OpenAPIHono<AppEnv>, { service, version, baseUrl }: Config, examples?: RecordedExamples) {
  const document = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: service,
      version,
      description: apiDescription(),
      contact: { name: 'The operator of this deployment', ...(baseUrl !== undefined && { url: baseUrl }) },
      license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
    },
    servers: [{ url: baseUrl ?? '/', description: 'This deployment' }],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
  })
  for (const operation of operations) {
    const path = document.paths?.[operation.path] as Record<string, DocumentOperation> | undefined
    const described = path?.[operation.method]
    if (described && examples) addExamples(described, examples)
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

const apiDescription = () => `${SERVICE_DESCRIPTION}

## Conventions

${CONVENTIONS}

## Signing

${signingGuide}

## Errors

The error body is \`{error, code, requestId}\`, plus \`details\`, \`remedy\` and \`retryable\` where they help. Codes by status:

${codesByStatus()}
`

function codesByStatus(): string {
  const statuses = [...new Set(errorCodes.map(({ status }) => status))].sort()
  const codesOf = (wanted: number) =>
    new Set(errorCodes.flatMap(({ code, status }) => (status === wanted ? [`\`${code}\``] : [])))
  return statuses.map(status => `- ${status}: ${[...codesOf(status)].join(', ')}`).join('\n')
}

/** The recorded examples of one operation: the request that succeeded, and a body for each status and media type. */
export type RecordedOperation = {
  request?: { parameters: Record<string, string>; body?: unknown }
  responses: Record<string, Record<string, unknown>>
}

/** What `npm run examples` records. `errors` has one body for each status, for operations that did not respond with it. */
export type RecordedExamples = { operations: Record<string, RecordedOperation>; errors: Record<string, unknown> }

type DocumentMedia = { example?: unknown }
type DocumentOperation = {
  operationId?: string
  parameters?: { name: string; schema?: { type?: string | string[] }; example?: unknown }[]
  requestBody?: { content: Record<string, DocumentMedia> }
  responses: Record<string, { content?: Record<string, DocumentMedia> }>
}

/** Fields of a message that expire. */
const DEADLINES = ['deadline', 'suggestedDeadline']

/** Parses recorded examples, with the given deadline in place of the recorded ones, which have passed. */
export const parseRecordedExamples = (text: string, deadline: string): RecordedExamples =>
  JSON.parse(text, (name, value) => (DEADLINES.includes(name) && typeof value === 'string' ? deadline : value))

/** Adds the recorded examples to an operation of the OpenAPI document. */
function addExamples(described: DocumentOperation, { operations, errors }: RecordedExamples): void {
  const { request, responses = {} } = operations[described.operationId ?? ''] ?? {}
  for (const parameter of described.parameters ?? []) {
    const recorded = request?.parameters[parameter.name]
    const isNumber = [parameter.schema?.type].flat().some(type => type === 'integer' || type === 'number')
    if (recorded !== undefined) parameter.example = isNumber ? Number(recorded) : recorded
  }
  for (const media of Object.values(described.requestBody?.content ?? {}))
    if (request?.body !== undefined) media.example = request.body
  for (const [status, { content = {} }] of Object.entries(described.responses))
    for (const [mediaType, media] of Object.entries(content)) {
      const example = responses[status]?.[mediaType] ?? (Number(status) >= 400 ? errors[status] : undefined)
      if (example !== undefined) media.example = example
    }
}
