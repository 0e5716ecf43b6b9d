import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResponse,
  type JSONRPCMessage,
  type RequestId,
  WebStandardStreamableHTTPServerTransport,
  type WebStandardStreamableHTTPServerTransportOptions,
} from '@modelcontextprotocol/server'
import { rpcError } from './json-rpc-errors.ts'

type Transport = WebStandardStreamableHTTPServerTransport

/**
 * The SDK's transport, which also refuses a request whose id another request in flight has: the SDK would send both
 * responses to the stream of the later one and leave the other stream open.
 */
export class SessionTransport extends WebStandardStreamableHTTPServerTransport {
  private readonly idsInFlight = new Set<RequestId>()
  private readonly onIdle: (() => void) | undefined

  /** `onIdle` is called with each message that leaves no request in flight. */
  constructor({ onIdle, ...options }: WebStandardStreamableHTTPServerTransportOptions & { onIdle?: () => void }) {
    super(options)
    this.onIdle = onIdle
  }

  override async handleRequest(...[request, options]: Parameters<Transport['handleRequest']>): Promise<Response> {
    const messages = [options?.parsedBody ?? []].flat()
    for (const message of messages) {
      const isCancelled = isJSONRPCNotification(message) && message.method === 'notifications/cancelled'
      if (isCancelled) this.idsInFlight.delete(message.params?.requestId as RequestId)
    }
    const ids = messages.flatMap(message => (isJSONRPCRequest(message) ? message.id : []))
    const repeated = ids.find((id, index) => this.idsInFlight.has(id) || ids.indexOf(id) < index)
    if (repeated !== undefined)
      return rpcError(400, -32600, `Invalid Request: a request with the id ${JSON.stringify(repeated)} is in flight`)
    for (const id of ids) this.idsInFlight.add(id)
    const response = await super.handleRequest(request, options)
    if (!response.ok) for (const id of ids) this.idsInFlight.delete(id)
    return response
  }

  override async send(message: JSONRPCMessage, options?: Parameters<Transport['send']>[1]): Promise<void> {
    if (isJSONRPCResponse(message) && message.id !== undefined) this.idsInFlight.delete(message.id)
    await super.send(message, options)
    if (this.idsInFlight.size === 0) this.onIdle?.()
  }
}
