/**
 * What requests cost, in units. A unit is what a simple read costs the operator: a six-millionth of a dollar, in rows,
 * calls of objects and nodes, and CPU. docs/limits.md derives the figures. A kind of request has its price; its size,
 * and what it turns out to read, come on top.
 */
export const PRICES = {
  reads: 1,
  quotes: 4,
  submissions: 4,
  /** Requests that reduce risk have a budget of their own, which no other request uses up. */
  reductions: 4,
  streams: 8,
  mcpSessions: 32,
  registrations: 40,
  signatureSearches: 80,
  /** A signed message, charged to the account that signed it. */
  signer: 4,
} as const

export type RequestKind = keyof typeof PRICES

/** How many rows of the index cost a unit. */
export const ROWS_PER_UNIT = 60
/** What a message in an MCP session costs on top: a request of the session's object. */
export const SESSION_UNITS = 1
/** What a subscription costs, or the end of one: both write to the hub and look through its subscribers. */
export const SUBSCRIPTION_UNITS = 15
/** The cost of a second of waiting: memory, a connection, and the requests to nodes. */
export const UNITS_PER_SECOND = 8
/** What of a minute's budget an open stream takes: its place in memory, its heartbeats and the events it is sent. */
export const UNITS_PER_OPEN_STREAM = 20
/** How much of a body, and of a document that is sent, costs a unit, beyond the first as much. */
const BYTES_PER_UNIT = 16 * 1024

/** Returns what the size of a request's body costs, before it is read. An undeclared length is the largest. */
export function unitsOfBody({ headers, body }: Request, maxBytes: number): number {
  if (body === null) return 0
  const declared = headers.get('Content-Length')
  return Math.floor((declared === null ? maxBytes : Math.min(Number(declared) || 0, maxBytes)) / BYTES_PER_UNIT)
}

/** Returns what sending a document of a number of characters costs. */
export const unitsOfDocument = (length: number): number => Math.floor(length / BYTES_PER_UNIT)
