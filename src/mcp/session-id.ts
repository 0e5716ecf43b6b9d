/**
 * What the id of a session says: which object it belongs to, when it was issued (epoch milliseconds), which revision of the
 * protocol its client asked for and which tools its URL selects. So nothing is stored before the session is used.
 */
type SessionId = { objectId: string; issuedAt: number; protocolVersion: string; selection: string }

const SESSION_ID = /^([0-9a-f]{64})\.([0-9a-z]{1,10})\.(\d{4}-\d{2}-\d{2})\.([a-z,:]{1,200})$/
/** A revision that does not exist, for what is none: the server offers its newest then. */
const UNKNOWN_VERSION = '0000-00-00'

/** Returns a session id. A protocol version that is not a date is replaced. */
export function formatSessionId({ objectId, issuedAt, protocolVersion, selection }: SessionId): string {
  const version = /^\d{4}-\d{2}-\d{2}$/.test(protocolVersion) ? protocolVersion : UNKNOWN_VERSION
  return `${objectId}.${issuedAt.toString(36)}.${version}.${selection.replace(' ', ':')}`
}

/** Parses a session id; undefined if it is malformed. */
export function parseSessionId(id: string): SessionId | undefined {
  const [, objectId, issuedAt, protocolVersion, selection] = SESSION_ID.exec(id) ?? []
  if (objectId === undefined || issuedAt === undefined || protocolVersion === undefined || selection === undefined)
    return undefined
  return { objectId, issuedAt: Number.parseInt(issuedAt, 36), protocolVersion, selection: selection.replace(':', ' ') }
}
