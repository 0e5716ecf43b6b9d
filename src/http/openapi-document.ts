import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Config } from '../config.ts'
import { errorCodes } from '../errors/catalogue.ts'
import { CONVENTIONS, SERVICE_DESCRIPTION } from '../operations/api-texts.ts'
import { operations } from '../operations/index.ts'
import { type Operation, tags } from '../operations/operation.ts'
import { signingGuide } from '../operations/signing-guide-text.ts'
import { paymentRequiredBody } from '../resources/payment-required.ts'
import type { AppEnv } from './app-env.ts'
import { errorExample, exampleOf } from './openapi-examples.ts'

const JSON_TYPE = 'application/json'
type DocumentMedia = { example?: unknown }
type DocumentOperation = {
  requestBody?: { content: Record<string, DocumentMedia> }
  responses: Record<string, { content?: Record<string, DocumentMedia> }>
}

/** Returns the OpenAPI 3.1 description of the HTTP surface as JSON, with an example of every body. */
export const openApiJson = (app: OpenAPIHono<AppEnv>, config: Config): string =>
  JSON.stringify(openApiDocument(app, config), (_key, value) =>
    isStringWithDefault(value) ? { ...value, default: `${value.default}` } : value,
  )

/** Recognises a string schema whose default is the parsed value, such as a bigint. On the wire it is a string too. */
const isStringWithDefault = (value: unknown): value is { type: 'string'; default: unknown } =>
  typeof value === 'object' && value !== null && 'default' in value && 'type' in value && value.type === 'string'

function openApiDocument(app: OpenAPIHono<AppEnv>, { service, version, baseUrl }: Config) {
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
    if (described) addExamples(described, operation)
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

function addExamples({ requestBody, responses }: DocumentOperation, operation: Operation) {
  const input = requestBody?.content[JSON_TYPE]
  if (input && operation.kind === 'json' && operation.body) input.example = exampleOf(operation.body)
  for (const [status, { content }] of Object.entries(responses)) {
    const media = content?.[JSON_TYPE]
    if (media) media.example = responseExample(Number(status), operation)
  }
}

function responseExample(status: number, operation: Operation): unknown {
  if (status === 402) return exampleOf(paymentRequiredBody)
  return status < 300 && operation.kind === 'json' ? exampleOf(operation.output) : errorExample(status)
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
