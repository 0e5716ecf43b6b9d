import { Buffer } from 'node:buffer'

/**
 * What the id of a session says: which object it belongs to, when it was issued (epoch milliseconds), what its client asked for
 * in the initialize request, and which tools its URL selects. So nothing is stored before the session is used.
 */
type SessionId = {
  objectId: string
  issuedAt: number
  protocolVersion: string
  selection: string
  capabilities: Record<string, unknown>
}

const SESSION_ID = /^([0-9a-f]{64})\.([0-9a-z]{1,10})\.(\d{4}-\d{2}-\d{2})\.([a-z,:]{1,200})\.([\w-]{1,1000})$/
/** Stands for every revision that the server does not know: it offers its newest then. */
export const UNKNOWN_VERSION = '0000-00-00'
/** Larger capabilities count as none: the server asks nothing of such a client. */
const MAX_CAPABILITIES_BYTES = 600

export function formatSessionId(session: SessionId): string {
  const { objectId, issuedAt, protocolVersion, selection } = session
  const json = JSON.stringify(session.capabilities)
  const capabilities = toBase64Url(Buffer.byteLength(json) > MAX_CAPABILITIES_BYTES ? '{}' : json)
  return [objectId, issuedAt.toString(36), protocolVersion, selection.replace(' ', ':'), capabilities].join('.')
}

/** Parses a session id; undefined if it is malformed. */
export function parseSessionId(id: string): SessionId | undefined {
  const [, objectId = '', issuedAt = '', protocolVersion = '', selection = '', encoded] = SESSION_ID.exec(id) ?? []
  if (encoded === undefined) return undefined
  return {
    objectId,
    issuedAt: Number.parseInt(issuedAt, 36),
    protocolVersion,
    selection: selection.replace(':', ' '),
    capabilities: parseCapabilities(encoded),
  }
}

/** Returns an initialize request with what a session depends on: the server uses nothing else of the client's. */
export const initializeRequestOf = ({
  protocolVersion,
  capabilities,
}: Pick<SessionId, 'protocolVersion' | 'capabilities'>) => ({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion, capabilities, clientInfo: { name: 'client', version: '0' } },
})

const toBase64Url = (text: string) => Buffer.from(text).toString('base64url')

/** Returns the capabilities in a session id; none if a client has replaced them by something that is not an object. */
function parseCapabilities(encoded: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(Buffer.from(encoded, 'base64url').toString())
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
