import { env } from 'cloudflare:workers'
import {
  acceptedContent,
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  completable,
  createRequestStateCodec,
  fromJsonSchema,
  type InputRequests,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  McpServer,
  ResourceTemplate,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import { parseConfig } from '../../src/config/config.ts'
import { createMcpRoute } from '../../src/mcp/route.ts'
import type { ServerFactory, ServerOptions } from '../../src/mcp/server.ts'
import { createSessionIds } from '../../src/mcp/session-id.ts'
import { McpSessionObject } from '../../src/mcp/session-object.ts'
import { McpHubObject } from '../../src/mcp/subscription-hub-object.ts'

// The service's MCP transport with the tools, resources and prompts that the official conformance suite expects. Their
// names and texts are the suite's. Never deployed: `wrangler dev --config wrangler.conformance.toml`.

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=='
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=='
const image = { type: 'image' as const, data: PNG, mimeType: 'image/png' }
const text = (value: string) => ({ type: 'text' as const, text: value })
const say = (value: string): CallToolResult => ({ content: [text(value)] })
const pause = () => new Promise(resolve => setTimeout(resolve, 50))

type Result = CallToolResult | InputRequiredResult
type Tool = (call: ServerContext) => Result | Promise<Result>

const logging: Tool = async ({ mcpReq }) => {
  await mcpReq.log('info', 'Tool execution started')
  await pause()
  await mcpReq.log('info', 'Tool processing data')
  await pause()
  await mcpReq.log('info', 'Tool execution completed')
  return say('Logged three times.')
}

const progress: Tool = async ({ mcpReq }) => {
  const progressToken = mcpReq._meta?.progressToken
  for (const done of [0, 50, 100]) {
    if (progressToken !== undefined)
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: done, total: 100 } })
    await pause()
  }
  return say('Reported progress.')
}

const reconnection: Tool = async ({ http }) => {
  http?.closeSSE?.()
  await pause()
  return say('The stream was closed in between.')
}

/** Requests inputs until all have arrived, then reports them. */
const requestInputs =
  (requests: InputRequests, finish: (responses: Record<string, unknown>) => string, requestState?: string): Tool =>
  async ({ mcpReq }) => {
    const responses = mcpReq.inputResponses ?? {}
    const open = Object.entries(requests).filter(([key]) => inputResponse(responses, key).kind === 'missing')
    if (open.length === 0) return say(finish(responses))
    return inputRequired({ inputRequests: Object.fromEntries(open), ...(requestState && { requestState }) })
  }

const state = createRequestStateCodec<string>({ key: 'the conformance suite may know this key', ttlSeconds: 300 })
/** Requests inputs in rounds. Each round carries the state that the previous one has signed. */
const requestInRounds =
  (rounds: readonly InputRequests[], done: string): Tool =>
  async ({ mcpReq }) => {
    const answered = mcpReq.inputResponses ?? {}
    const round = Number(mcpReq.requestState<string>() ?? '0')
    const before = rounds[round - 1] ?? {}
    const isComplete = Object.keys(before).every(key => inputResponse(answered, key).kind !== 'missing')
    const next = isComplete ? round : round - 1
    const inputRequests = rounds[next]
    if (inputRequests === undefined) return say(done)
    return inputRequired({ inputRequests, requestState: await state.mint(`${next + 1}`) })
  }

const form = (message: string, properties: Record<string, unknown>, required = Object.keys(properties)) =>
  inputRequired.elicit({ message, requestedSchema: { type: 'object', properties, required } as never })
const sample = (prompt: string, maxTokens = 100) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: text(prompt) }], maxTokens })
const askName = { user_name: form('What is your name?', { name: { type: 'string' } }) }
const confirm = { confirm: form('Please confirm', { ok: { type: 'boolean' } }) }

const completed = (key: string) => (responses: Record<string, unknown>) => {
  const { action, content } = responses[key] as { action: string; content?: unknown }
  return `Elicitation completed: action=${action}, content=${JSON.stringify(content)}`
}
const titled = (first: string) => [
  { const: 'value1', title: first },
  { const: 'value2', title: 'Second' },
  { const: 'value3', title: 'Third' },
]

const greeting: Tool = ({ mcpReq }) => {
  const answer = acceptedContent(mcpReq.inputResponses, 'user_name', z.object({ name: z.string() }))
  return answer ? say(`Hello, ${answer.name}!`) : inputRequired({ inputRequests: askName })
}

const onlyDeclared: Tool = ({ mcpReq }) => {
  const declared = (mcpReq.envelope as Record<string, object> | undefined)?.[CLIENT_CAPABILITIES_META_KEY] ?? {}
  return inputRequired({
    inputRequests: {
      ...('sampling' in declared && { greeting: sample('Generate a greeting') }),
      ...('elicitation' in declared && askName),
    },
  })
}

const tools: Record<string, Tool> = {
  test_simple_text: () => say('This is a simple text response for testing.'),
  test_image_content: () => ({ content: [image] }),
  test_audio_content: () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] }),
  test_embedded_resource: () => ({
    content: [
      {
        type: 'resource',
        resource: {
          uri: 'test://embedded-resource',
          mimeType: 'text/plain',
          text: 'This is an embedded resource content.',
        },
      },
    ],
  }),
  test_multiple_content_types: () => ({
    content: [
      text('Multiple content types test:'),
      image,
      {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: JSON.stringify({ test: 'data', value: 123 }),
        },
      },
    ],
  }),
  test_tool_with_logging: logging,
  test_logging_tool: logging,
  test_tool_with_progress: progress,
  test_error_handling: () => {
    throw new Error('This tool intentionally returns an error for testing')
  },
  test_reconnection: reconnection,
  test_missing_capability: requestInputs({ greeting: sample('Generate a greeting') }, () => 'done'),
  test_streaming_elicitation: greeting,
  test_elicitation_sep1034_defaults: requestInputs(
    {
      defaults: form(
        'Please check these values',
        {
          name: { type: 'string', default: 'John Doe' },
          age: { type: 'integer', default: 30 },
          score: { type: 'number', default: 95.5 },
          status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
          verified: { type: 'boolean', default: true },
        },
        [],
      ),
    },
    completed('defaults'),
  ),
  test_elicitation_sep1330_enums: requestInputs(
    {
      enums: form(
        'Please choose',
        {
          untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
          titledSingle: { type: 'string', oneOf: titled('First Option') },
          legacyEnum: {
            type: 'string',
            enum: ['opt1', 'opt2', 'opt3'],
            enumNames: ['Option One', 'Option Two', 'Option Three'],
          },
          untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
          titledMulti: { type: 'array', items: { anyOf: titled('First Choice') } },
        },
        [],
      ),
    },
    completed('enums'),
  ),
  test_input_required_result_elicitation: greeting,
  test_input_required_result_sampling: requestInputs(
    { capital_question: sample('What is the capital of France?') },
    ({ capital_question: answer }) => `The client says: ${JSON.stringify(answer)}`,
  ),
  test_input_required_result_list_roots: requestInputs(
    { client_roots: inputRequired.listRoots() },
    ({ client_roots: answer }) => `The client has: ${JSON.stringify(answer)}`,
  ),
  test_input_required_result_request_state: requestInRounds([confirm], 'state-ok'),
  test_input_required_result_tampered_state: requestInRounds([confirm], 'state-ok'),
  test_input_required_result_multiple_inputs: requestInRounds(
    [{ ...askName, greeting: sample('Generate a greeting', 50), client_roots: inputRequired.listRoots() }],
    'All three inputs came.',
  ),
  test_input_required_result_multi_round: requestInRounds(
    [
      { step1: form('Step 1: What is your name?', { name: { type: 'string' } }) },
      { step2: form('Step 2: What is your favorite color?', { color: { type: 'string' } }) },
    ],
    'Both steps are done.',
  ),
  test_input_required_result_capabilities: onlyDeclared,
}

/** The suite's schema with JSON Schema 2020-12 keywords that a server must pass on unchanged. */
const wholeVocabulary = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  // biome-ignore-start lint/suspicious/noThenProperty: a keyword of JSON Schema
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
  // biome-ignore-end lint/suspicious/noThenProperty: a keyword of JSON Schema
} as const

const createServer: ServerFactory = ({ subscriptions }: ServerOptions) => {
  const server = new McpServer(
    { name: 'conformance', version: '0.1.0' },
    {
      capabilities: { logging: {}, tools: { listChanged: false }, resources: { subscribe: true }, prompts: {} },
      requestState: { verify: state.verify },
    },
  )
  for (const [name, run] of Object.entries(tools))
    server.registerTool(name, { description: `Fixture ${name}`, inputSchema: z.object({}) }, (_, call) => run(call))
  server.registerTool(
    'test_sampling',
    { description: 'Asks the client for a sample', inputSchema: z.object({ prompt: z.string() }) },
    ({ prompt }, call) =>
      requestInputs(
        { sample: sample(prompt) },
        ({ sample: answer }) => `LLM response: ${JSON.stringify(answer)}`,
      )(call),
  )
  server.registerTool(
    'test_elicitation',
    { description: 'Asks the user', inputSchema: z.object({ message: z.string() }) },
    ({ message }, call) => {
      const user = form(message, {
        username: { type: 'string', description: "User's response" },
        email: { type: 'string', description: "User's email address" },
      })
      return requestInputs({ user }, ({ user: answer }) => `User response: ${JSON.stringify(answer)}`)(call)
    },
  )
  server.registerTool(
    'json_schema_2020_12_tool',
    { description: 'Tool with JSON Schema 2020-12 features', inputSchema: fromJsonSchema(wholeVocabulary as never) },
    () => say('done'),
  )
  server.registerTool(
    'test_header_mirror',
    {
      description: 'Has an argument that clients mirror into a header',
      inputSchema: z.object({ region: z.string().meta({ 'x-mcp-header': 'Region' }) }),
    },
    ({ region }) => say(region),
  )
  registerResources(server)
  registerPrompts(server)
  if (subscriptions === undefined) return server

  server.server.setRequestHandler('resources/subscribe', async ({ params: { uri } }) => {
    await subscriptions.subscribe(uri)
    return {}
  })
  server.server.setRequestHandler('resources/unsubscribe', async ({ params: { uri } }) => {
    await subscriptions.unsubscribe(uri)
    return {}
  })
  return server
}

function registerResources(server: McpServer) {
  const description = 'Fixture'
  const contents = (uri: URL, mimeType: string, value: { text: string } | { blob: string }) => ({
    contents: [{ uri: uri.href, mimeType, ...value }],
  })
  server.registerResource('static-text', 'test://static-text', { description, mimeType: 'text/plain' }, uri =>
    contents(uri, 'text/plain', { text: 'This is the content of the static text resource.' }),
  )
  server.registerResource('static-binary', 'test://static-binary', { description, mimeType: 'image/png' }, uri =>
    contents(uri, 'image/png', { blob: PNG }),
  )
  server.registerResource('watched', 'test://watched-resource', { description, mimeType: 'text/plain' }, uri =>
    contents(uri, 'text/plain', { text: 'Watched' }),
  )
  const template = new ResourceTemplate('test://template/{id}/data', { list: undefined })
  server.registerResource('template', template, { description, mimeType: 'application/json' }, (uri, { id }) =>
    contents(uri, 'application/json', {
      text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
    }),
  )
}

function registerPrompts(server: McpServer) {
  const description = 'Fixture'
  const user = <Content>(content: Content) => ({ role: 'user' as const, content })
  server.registerPrompt('test_simple_prompt', { description }, () => ({
    messages: [user(text('This is a simple prompt for testing.'))],
  }))
  const argsSchema = z.object({
    arg1: completable(z.string().meta({ description: 'First test argument' }), typed =>
      ['paris', 'park', 'party'].filter(value => value.startsWith(typed)),
    ),
    arg2: z.string().meta({ description: 'Second test argument' }),
  })
  server.registerPrompt('test_prompt_with_arguments', { description, argsSchema }, ({ arg1, arg2 }) => ({
    messages: [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
  }))
  const resourceUri = z.string().meta({ description: 'URI of the resource to embed' })
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description, argsSchema: z.object({ resourceUri }) },
    ({ resourceUri: uri }) => ({
      messages: [
        user({
          type: 'resource' as const,
          resource: { uri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
        }),
        user(text('Please process the embedded resource above.')),
      ],
    }),
  )
  server.registerPrompt('test_prompt_with_image', { description }, () => ({
    messages: [user(image), user(text('Please analyze the image above.'))],
  }))
  server.registerPrompt('test_input_required_result_prompt', { description }, ({ mcpReq }) => {
    const answer = acceptedContent(mcpReq.inputResponses, 'user_context', z.object({ context: z.string() }))
    if (answer) return { messages: [user(text(`In the context ${answer.context}.`))] }
    const ask = form('What context should the prompt use?', { context: { type: 'string' } })
    return inputRequired({ inputRequests: { user_context: ask } })
  })
}

const sessionIds = createSessionIds(parseConfig({ ...env }).mcpSessionKey)
const mcp = createMcpRoute({ createServer, sessionIds, allowedHosts: ['localhost', '127.0.0.1'], namespaces: env })

export class McpSession extends McpSessionObject {
  protected override readonly createServer = createServer
}
export class McpHub extends McpHubObject {
  protected override readonly createServer = createServer
}

export default {
  fetch: request => (new URL(request.url).pathname === '/mcp' ? mcp(request) : Response.json({ status: 'ok' })),
} satisfies ExportedHandler<Env>
