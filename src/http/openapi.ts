import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Config } from '../config.ts'
import { errorCodes } from '../errors/catalogue.ts'
import { type Operation, tags } from '../operations/define-operation.ts'
import { DESCRIPTION } from '../operations/discovery.ts'
import { streams } from '../operations/event-streams.ts'
import { operations } from '../operations/index.ts'
import { paymentRequiredBody } from '../resources/registration.ts'
import { signingWords } from '../resources/typed-data-glossary.ts'
import type { AppEnv } from './app.ts'
import { errorExample, exampleOf } from './examples.ts'

const JSON_TYPE = 'application/json'
type Media = { example?: unknown }
type Described = {
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, { content?: Record<string, Media> }>
}

/** The OpenAPI 3.1 description of the HTTP surface, made from the operations, with an example of every body. */
export const openApiText = (app: OpenAPIHono<AppEnv>, config: Config): string =>
  JSON.stringify(openApiDocument(app, config), (_key, value) =>
    isText(value) ? { ...value, default: `${value.default}` } : value,
  )

/** A schema of text whose default is what the text is parsed to; on the wire it is text too. */
const isText = (value: unknown): value is { type: 'string'; default: unknown } =>
  typeof value === 'object' && value !== null && 'default' in value && 'type' in value && value.type === 'string'

function openApiDocument(app: OpenAPIHono<AppEnv>, { service, version, baseUrl }: Config) {
  const document = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: service,
      version,
      description: descriptionOf(),
      contact: { name: 'The operator of this deployment', ...(baseUrl !== undefined && { url: baseUrl }) },
      license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
    },
    servers: [{ url: baseUrl ?? '/', description: 'This deployment' }],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
  })
  for (const operation of operations as readonly Operation[]) {
    const path = document.paths?.[operation.path] as Record<string, Described> | undefined
    const described = path?.[operation.method]
    if (described) addExamples(described, operation)
  }
  for (const { path } of streams) {
    const described = document.paths?.[path] as Record<'get', Described> | undefined
    for (const [status, { content }] of Object.entries(described?.get.responses ?? {}))
      if (content?.[JSON_TYPE]) content[JSON_TYPE].example = errorExample(Number(status))
  }
  document.components = {
    ...document.components,
    securitySchemes: {
      refreshSecret: {
        type: 'http',
        scheme: 'bearer',
        description: 'The refresh secret of the operator; only where the deployment has one',
      },
    },
  }
  return document
}

function addExamples({ requestBody, responses }: Described, { body, output }: Operation) {
  const input = requestBody?.content[JSON_TYPE]
  if (input && body) input.example = exampleOf(body, 'input')
  for (const [status, { content }] of Object.entries(responses)) {
    const media = content?.[JSON_TYPE]
    if (media) media.example = exampleOfStatus(Number(status), output)
  }
}

function exampleOfStatus(status: number, output: Operation['output']): unknown {
  if (status < 300) return exampleOf(output, 'output')
  return status === 402 ? exampleOf(paymentRequiredBody, 'output') : errorExample(status)
}

const descriptionOf = () => `${DESCRIPTION}

## Conventions

Amounts are strings of base units and may be negative where that makes sense (USDC: 6 decimals, tokens their own); each description names the unit. Fields ending in \`Bps\` are basis points, 10000 = 100 %. Times are Unix seconds as strings, in the time of the chain. Addresses are accepted in any case and answered checksummed. \`asOf\` is the one block that all values of an answer are of; it is also the \`ETag\`.

## Signing

${signingWords}

## Errors

A refusal is \`{error, code, requestId}\` with \`details\`, \`remedy\` and \`retryable\` where they help. Codes by status:

${codesByStatus()}
`

function codesByStatus(): string {
  const all = errorCodes
  const statuses = [...new Set(all.map(({ status }) => status))].sort()
  const codesOf = (asked: number) =>
    new Set(all.flatMap(({ code, status }) => (status === asked ? [`\`${code}\``] : [])))
  return statuses.map(status => `- ${status}: ${[...codesOf(status)].join(', ')}`).join('\n')
}
