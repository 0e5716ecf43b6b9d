import { shorten } from '@agent-trading-service/protocol/shorten'
import {
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  ResourceNotFoundError,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { type Call, respondInTime } from '../call.ts'
import { getAgents } from '../chain/agents.ts'
import { contractCodes } from '../chain/contract-error-refusals.ts'
import type { Context } from '../context.ts'
import { errorCodes } from '../errors/catalogue.ts'
import type { ClientLimits } from '../limits/rate-limits.ts'
import { operations } from '../operations/index.ts'
import type { JsonOperation, Operation } from '../operations/operation.ts'
import type { ResourceDefinition } from '../operations/operation-definition.ts'
import { readSigningReference } from '../operations/signing.ts'
import { readCard } from './apps.ts'
import { inClientTurn, measureCall } from './calls.ts'
import { errorBodyOf } from './errors.ts'
import { responseForTools, toolRemedy } from './replace-endpoints-with-tools.ts'
import { listedSkillFiles, readSkillFile } from './skills.ts'

const mimeType = 'application/json'
/** The protocol asks for the URI of a resource that does not exist as it was sent. */
export const MAX_URI = 256

type ResourceOperation = JsonOperation & { resource: ResourceDefinition }
const resourceOperations = (operations as readonly Operation[]).filter(
  (operation): operation is ResourceOperation => operation.kind === 'json' && operation.resource !== undefined,
)
const isTemplate = ({ resource }: ResourceOperation) => resource.uri.includes('{')

type Reader = (context: Context, call: Call) => Promise<unknown>

/** Reference documents that are not the output of an operation. */
const documents: (ResourceDefinition & { read: Reader })[] = [
  {
    uri: 'svc://errors',
    name: 'errors',
    title: 'Error codes',
    description: 'Every error code of the service and of the contracts, each with its status and remedy.',
    read: async () => {
      const codes = errorCodes.map(({ code, status, remedy }) => ({ code, status, remedy: toolRemedy(code, remedy) }))
      return {
        service: codes.filter(({ code }) => !contractCodes.includes(code)),
        contracts: codes.filter(({ code }) => contractCodes.includes(code)),
      }
    },
  },
  {
    uri: 'svc://signing',
    name: 'signing',
    title: 'Signing',
    description: 'EIP-712 types and domains of every message an agent signs, and how to compute exitsHash.',
    read: (context, call) => respondInTime(call, readSigningReference(context)),
  },
]

export const listedResources = [
  ...[
    ...resourceOperations.filter(operation => !isTemplate(operation)).map(({ resource }) => resource),
    ...documents,
  ].map(({ uri, name, title, description }) => ({ uri, name, title, description, mimeType })),
  ...listedSkillFiles,
]

const templates = resourceOperations.filter(isTemplate)

export const listedResourceTemplates = templates.map(({ resource: { uri, ...about } }) => ({
  uriTemplate: uri,
  ...about,
  mimeType,
}))

/** Returns the URIs of all resources of an agent. */
export const agentUris = (agentId: number) =>
  templates.map(({ resource }) => resource.uri.replace('{agentId}', `${agentId}`))

/** Reads a resource. Throws a protocol error for an unknown URI, or with the error body of the refusal as its data. */
export async function readResource(
  context: Context,
  client: ClientLimits | undefined,
  uri: string,
  request: ServerContext,
): Promise<ReadResourceResult> {
  const file = readSkillFile(uri) ?? (await readCard(uri))
  if (file !== undefined) return file
  const read = findReader(uri)
  if (read === undefined) throw new ResourceNotFoundError(shorten(uri, MAX_URI))
  const value = await inClientTurn(client, 'request', () => read(context, { client })).catch((error: unknown) => {
    const body = errorBodyOf(error, uri, request)
    throw new ProtocolError(ProtocolErrorCode.InternalError, body.error, body)
  })
  return { contents: [{ uri, mimeType, text: JSON.stringify(responseForTools(value)) }] }
}

/** Tells whether a URI names a resource, which can then be read and subscribed to. */
export const isResource = (uri: string): boolean => findReader(uri) !== undefined

/** How many resources a session or a listen stream may follow. */
export const MAX_FOLLOWED_RESOURCES = 100

type Listen = { method?: unknown; params?: { notifications?: { resourceSubscriptions?: unknown } | null } | null }

/** Returns the resources that a message asks to follow with a listen stream; none of what is no text. */
export const resourcesOfListen = (message: unknown): string[] => {
  const given = subscriptionsOf(message)
  return Array.isArray(given) ? given.filter(uri => typeof uri === 'string') : []
}

const subscriptionsOf = (message: unknown): unknown => {
  const { method, params } = (message ?? {}) as Listen
  return method === 'subscriptions/listen' ? params?.notifications?.resourceSubscriptions : undefined
}

/** Says what is wrong with the resources of a listen stream, which takes memory for each of them. */
export function problemOfListen(message: unknown): string | undefined {
  const uris = subscriptionsOf(message)
  if (uris === undefined || uris === null) return undefined
  if (!Array.isArray(uris) || !uris.every(uri => typeof uri === 'string'))
    return 'resourceSubscriptions must be an array of URIs'
  if (uris.length > MAX_FOLLOWED_RESOURCES)
    return `resourceSubscriptions has ${uris.length} URIs; a stream follows at most ${MAX_FOLLOWED_RESOURCES}`
  const unknown = uris.find(uri => !isResource(uri))
  return unknown === undefined ? undefined : noResource(unknown)
}

/** Says that a resource does not exist. */
export const noResource = (uri: string): string => `there is no resource ${JSON.stringify(shorten(uri, MAX_URI))}`

/** Returns the first of some resources whose agent is not registered. Throws CHAIN_UNREACHABLE. */
export async function findUnregistered({ chain }: Context, uris: readonly string[]): Promise<string | undefined> {
  const idOf = (uri: string) => {
    const [, , kind, id = ''] = uri.split('/')
    return kind === 'agents' && /^\d+$/.test(id) ? id : undefined
  }
  const ids = new Set(uris.flatMap(uri => idOf(uri) ?? []))
  if (ids.size === 0) return undefined
  const { agents } = await getAgents(chain, [...ids].map(BigInt))
  for (const { agentId } of agents) ids.delete(`${agentId}`)
  return uris.find(uri => ids.has(idOf(uri) ?? ''))
}

function findReader(uri: string): Reader | undefined {
  const document = documents.find(document => document.uri === uri)
  if (document) return document.read
  for (const operation of resourceOperations) {
    const params = matchTemplate(operation.resource.uri, uri)
    if (params && operation.input.safeParse(params).success)
      return (context, call) => measureCall(operation.id, () => operation.run(context, operation.parse(params), call))
  }
  return undefined
}

/** Returns the parameters of a URI that matches a template; undefined if it does not match. */
function matchTemplate(template: string, uri: string): Record<string, string> | undefined {
  const pattern = template.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')
  const match = new RegExp(`^${pattern}$`).exec(uri)
  return match ? { ...match.groups } : undefined
}
