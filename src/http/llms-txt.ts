import type { z } from 'zod'
import type { Config } from '../config/config.ts'
import { errorCodes } from '../errors/catalogue.ts'
import { HOW_TO_TRADE, SERVICE_DESCRIPTION, SHORT_CONVENTIONS, TRADING_STEPS } from '../operations/discovery.ts'
import { operations } from '../operations/index.ts'
import { errorStatuses, type Operation } from '../operations/operation.ts'
import { tags } from '../operations/operation-definition.ts'

/** The guides of the documentation, in their order, with their files in the repository. */
export const guides = [
  {
    slug: 'first-trade',
    file: 'docs/for-agents.md',
    about: 'from an empty folder to a first trade, in TypeScript, in Python and as a model',
  },
  { slug: 'signing', file: 'docs/guides/signing.md', about: 'typed data, digests, and who signs what' },
  {
    slug: 'exit-ladders',
    file: 'docs/guides/exit-ladders.md',
    about: 'stop-loss and take-profit rules, and when they fire',
  },
  { slug: 'owner-messages', file: 'docs/guides/owner-messages.md', about: "the owner's mandate, stop and signer" },
  {
    slug: 'depositors',
    file: 'docs/guides/depositors.md',
    about: "a share's costs, holding time and breaker, weekends, and who loses first",
  },
  { slug: 'payment', file: 'docs/guides/payment.md', about: 'the registration fee over x402, and what a trade costs' },
  { slug: 'streams', file: 'docs/guides/streams.md', about: 'events as they happen' },
  { slug: 'webhooks', file: 'docs/guides/webhooks.md', about: 'events posted to your server' },
  { slug: 'retries', file: 'docs/guides/retries.md', about: 'what to send again after an error, and what never to' },
  { slug: 'cli', file: 'docs/cli.md', about: 'the command line `ats`, and its local MCP server with keys and limits' },
  { slug: 'rehearsal', file: 'docs/rehearsal.md', about: 'a month of market in minutes, before you trade' },
  { slug: 'rehearsal-examples', file: 'docs/rehearsal-examples.md', about: 'how three example agents did in one' },
  { slug: 'client', file: 'packages/client/README.md', about: 'the TypeScript client' },
  { slug: 'python', file: 'packages/python/README.md', about: 'the Python client' },
] as const

const listed: readonly Operation[] = operations
const endpointOf = ({ method, path }: Operation) => `${method.toUpperCase()} ${path}`

const header = ({ service, version, chain }: Config) =>
  `# ${service}

> ${SERVICE_DESCRIPTION} Version ${version}, ${chain ? `chain id ${chain.id}` : 'no chain configured'}.

${SHORT_CONVENTIONS}`

/** Returns the index for language models: one line per operation, and links to the rest. */
export function llmsText(config: Config): string {
  const { baseUrl = '', docsEnabled } = config
  const indexLine = (operation: Operation): string => {
    const tool = operation.kind === 'json' && operation.tool ? ` (tool \`${operation.tool.name}\`)` : ''
    const endpoint = `\`${endpointOf(operation)}\``
    const link = docsEnabled ? `[${endpoint}](${baseUrl}/docs/operations/${operation.id}.md)` : endpoint
    return `- ${link}: ${operation.summary}${tool}`
  }
  const guideLinks = guides.map(({ slug, about }) => `- [${slug}](${baseUrl}/docs/guides/${slug}.md): ${about}\n`)
  const sections = Object.entries(tags).map(([tag, description]) => {
    const lines = listed.filter(operation => operation.tag === tag).map(indexLine)
    return `## ${tag}\n\n${description}\n\n${lines.join('\n')}`
  })
  const markdownLinks = listed
    .filter(operation => operation.kind === 'json' && operation.markdown !== undefined)
    .map(({ tag, path }) => `- [${tag} as Markdown](${baseUrl}${path}?format=md)\n`)
  return `${header(config)}

${TRADING_STEPS}

${docsEnabled ? `## Guides\n\n${guideLinks.join('')}\n` : ''}${sections.join('\n\n')}

## More

- [How to trade, in 1,000 tokens](${baseUrl}/llms-small.txt)
- [Everything in one text](${baseUrl}/llms-full.txt): every field, how to sign, the guides, every error code
- [OpenAPI 3.1](${baseUrl}/docs/swagger.json)
- [MCP server](${baseUrl}/mcp): the same operations as tools, over Streamable HTTP
- [Skills](${baseUrl}/.well-known/agent-skills/index.json): how to onboard, trade, manage risk and recover, step by step
${markdownLinks.join('')}`
}

/** Returns how to trade, for a language model with little room: at most 1,000 tokens. */
export function llmsSmallText(config: Config): string {
  const { baseUrl = '' } = config
  return `${header(config)}

## How to trade

Over HTTP at ${baseUrl || 'this address'}, or with the same operations as MCP tools at ${baseUrl}/mcp. The service holds no keys: it returns typed data (EIP-712), the agent's signer signs it, and the service relays it and pays the gas. Compare \`typedData\` with what you asked for before you sign.

${HOW_TO_TRADE}

## More

- [Index](${baseUrl}/llms.txt), [everything](${baseUrl}/llms-full.txt), [OpenAPI](${baseUrl}/docs/swagger.json)
`
}

/**
 * Returns everything a language model needs to use the service, in one text. `guideTexts` are the guides as Markdown.
 */
export function llmsFullText(config: Config, guideTexts: string): string {
  const codes = errorCodes.map(({ code, status, remedy }) => `- \`${code}\` (${status}) ${remedy}`)
  return `${header(config)}

${guideTexts}
${listed.map(operationMarkdown).join('\n\n')}

## Error codes

${codes.join('\n')}
`
}

/** Describes an operation and its fields as Markdown. */
export function operationMarkdown(operation: Operation): string {
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
