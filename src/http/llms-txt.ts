import type { z } from 'zod'
import type { Config } from '../config/config.ts'
import { errorCodes } from '../errors/catalogue.ts'
import { SERVICE_DESCRIPTION, SHORT_CONVENTIONS, TRADING_STEPS } from '../operations/discovery.ts'
import { operations } from '../operations/index.ts'
import { errorStatuses, type Operation, tags } from '../operations/operation.ts'
import { signingGuide } from '../operations/signing.ts'

const listed: readonly Operation[] = operations
const endpointOf = ({ method, path }: Operation) => `${method.toUpperCase()} ${path}`

const header = ({ service, version, chain }: Config) =>
  `# ${service}

> ${SERVICE_DESCRIPTION} Version ${version}, ${chain ? `chain id ${chain.id}` : 'no chain configured'}.

${SHORT_CONVENTIONS}`

/** Returns the index for language models: one line per operation, and links to the rest. */
export function llmsText(config: Config): string {
  const { baseUrl = '' } = config
  const sections = Object.entries(tags).map(([tag, description]) => {
    const lines = listed.filter(operation => operation.tag === tag).map(indexLine)
    return `## ${tag}\n\n${description}\n\n${lines.join('\n')}`
  })
  const markdownLinks = listed
    .filter(operation => operation.kind === 'json' && operation.markdown !== undefined)
    .map(({ tag, path }) => `- [${tag} as Markdown](${baseUrl}${path}?format=md)\n`)
  return `${header(config)}

${TRADING_STEPS}

${sections.join('\n\n')}

## More

- [Everything in one text](${baseUrl}/llms-full.txt): every field, how to sign, every error code
- [OpenAPI 3.1](${baseUrl}/docs/swagger.json)
- [MCP server](${baseUrl}/mcp): the same operations as tools, over Streamable HTTP
- [Skills](${baseUrl}/.well-known/agent-skills/index.json): how to onboard, trade, manage risk and recover, step by step
${markdownLinks.join('')}`
}

function indexLine(operation: Operation): string {
  const tool = operation.kind === 'json' && operation.tool ? ` (tool \`${operation.tool.name}\`)` : ''
  return `- \`${endpointOf(operation)}\`: ${operation.summary}${tool}`
}

/** Returns everything a language model needs to use the service, in one text. */
export function llmsFullText(config: Config): string {
  const codes = errorCodes.map(({ code, status, remedy }) => `- \`${code}\` (${status}) ${remedy}`)
  return `${header(config)}

## Signing

${signingGuide}

${listed.map(operationSection).join('\n\n')}

## Error codes

${codes.join('\n')}
`
}

function operationSection(operation: Operation): string {
  const { summary, description, params, query } = operation
  const parts = [
    `## ${endpointOf(operation)}`,
    `${summary}. ${description}`,
    ...fieldList('Path', params),
    ...fieldList('Query', query),
    ...(operation.kind === 'json'
      ? [...fieldList('Body', operation.body), ...fieldList(`Response ${operation.status}`, operation.output)]
      : []),
    `Error statuses: ${errorStatuses(operation).join(', ')}.`,
  ]
  return parts.join('\n\n')
}

/** Returns the fields of an object schema as a list, or nothing if it has none. */
function fieldList(title: string, schema: z.ZodType | undefined): string[] {
  const shape = schema && 'shape' in schema ? (schema.shape as Record<string, z.ZodType>) : {}
  const lines = Object.entries(shape).map(([name, field]) => {
    const description = field.meta()?.description
    const optional = field.safeParse(undefined).success ? ' (optional)' : ''
    return `- \`${name}\`${optional}${description === undefined ? '' : `: ${description}`}`
  })
  return lines.length === 0 ? [] : [`${title}:\n${lines.join('\n')}`]
}
