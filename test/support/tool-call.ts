/** An endpoint as `GET /` lists it. */
export type Endpoint = { method: string; path: string; tool: string | null }

/**
 * Returns the MCP request (2026 revision) that calls the tool of an HTTP request: path, query and body as one flat
 * input. Undefined if its endpoint has no tool.
 */
export function toolCallOf(
  endpoints: readonly Endpoint[],
  { path, method, body }: { path: string; method?: string; body?: object },
): { headers: Record<string, string>; body: string } | undefined {
  const { pathname, searchParams } = new URL(path, 'http://localhost')
  const found = endpoints
    .filter(endpoint => endpoint.method.toUpperCase() === (method ?? (body ? 'POST' : 'GET')))
    .map(endpoint => ({ endpoint, params: pathParamsOf(endpoint.path, pathname) }))
    .filter(({ params }) => params !== undefined)
    .sort((a, b) => Object.keys(a.params ?? {}).length - Object.keys(b.params ?? {}).length)[0]
  if (!found?.endpoint.tool) return undefined
  const name = found.endpoint.tool
  // Over HTTP a quote has every detail.
  const detail = name.endsWith('_quote') ? { detail: 'full' } : {}
  const input = { ...found.params, ...Object.fromEntries(searchParams), ...body, ...detail }
  return {
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': name,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name,
        arguments: input,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    }),
  }
}

function pathParamsOf(template: string, pathname: string): Record<string, string> | undefined {
  const pattern = template.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')
  const match = new RegExp(`^${pattern}$`).exec(pathname)
  return match ? { ...match.groups } : undefined
}
