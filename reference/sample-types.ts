/** What a sample of an operation needs to know about it; also embedded in its page. */
export type SampleOperation = {
  id: string
  method: string
  path: string
  isStream: boolean
  /** Whether its response is text, not JSON. */
  isText: boolean
  isPaid: boolean
  /** The name of its MCP tool, if it has one. */
  tool?: string
  /** The parameters that are numbers; the others are strings. */
  numbers: string[]
  /** The quote of a signed message, if the operation takes one. */
  quote?: { path: string; parameters: Record<string, string> }
}
/** The values of a request: parameters by place, and the body as JSON. */
export type RequestValues = {
  path: Record<string, string>
  query: Record<string, string>
  headers: Record<string, string>
  body?: unknown
}
