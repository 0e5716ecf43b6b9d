import { registerHooks } from 'node:module'

/** The parts of an OpenAPI document that the generator of the client reads. */
export type OpenApiParameter = {
  name: string
  in: 'path' | 'query' | 'header'
  description?: string
  schema?: { description?: string; enum?: (string | number | boolean)[] }
}
export type OpenApiOperation = {
  operationId: string
  summary: string
  description: string
  parameters?: OpenApiParameter[]
  responses: Record<string, { content?: Record<string, unknown> }>
}
export type OpenApiDocument = { paths: Record<string, Record<string, OpenApiOperation>> }

// The app's modules import the classes of workerd. The document needs none of them.
const WORKERD_STUB = new URL('./workerd-stub.ts', import.meta.url).href

/** Returns the OpenAPI document as the app serves it, without starting a server or reading a chain. */
export async function readOpenApiDocument(): Promise<OpenApiDocument> {
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'cloudflare:workers' ? { url: WORKERD_STUB, shortCircuit: true } : next(specifier, context),
  })
  const { createApp } = await import('../src/http/app.ts')
  const { parseConfig } = await import('../src/config/config.ts')
  const { createContext } = await import('../src/context.ts')
  const context = createContext(parseConfig({}), {} as Parameters<typeof createContext>[1])
  const response = await createApp(context).request('/docs/swagger.json')
  if (!response.ok) throw new Error(`The app returned ${response.status} for its OpenAPI document.`)
  return (await response.json()) as OpenApiDocument
}
