/** Returns a JSON-RPC error response without a request id, as the transport sends it. */
export const rpcError = (status: number, code: number, message: string, headers: HeadersInit = {}): Response =>
  Response.json({ jsonrpc: '2.0', id: null, error: { code, message } }, { status, headers })

export const sessionNotFound = () => rpcError(404, -32001, 'Session not found')
