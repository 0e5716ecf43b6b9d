import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Config } from '../config.ts'
import { refuse } from '../errors/refuse.ts'
import { exampleDeadline } from '../resources/primitives.ts'
import type { AppEnv } from './app-env.ts'
import { llmsFullText, llmsText } from './llms-txt.ts'
import { openApiJson } from './openapi-document.ts'
import { docsSecurityHeaders } from './response-headers.ts'

/** Serves the files under public/. */
export type Assets = { fetch: (request: Request) => Promise<Response> }

/** Adds the API documents: the OpenAPI description, the interactive page over it, and the texts for language models. */
export function addDocsRoutes(app: OpenAPIHono<AppEnv>, assets: Assets | undefined) {
  const documents = new WeakMap<Config, { deadline: string; json: string }>()
  app.get('/docs/swagger.json', c => {
    const { config } = c.var.context
    const deadline = exampleDeadline()
    const cached = documents.get(config)
    const document = cached?.deadline === deadline ? cached : { deadline, json: openApiJson(app, config) }
    documents.set(config, document)
    return c.body(document.json, 200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-cache' })
  })
  for (const [path, text] of [
    ['/llms.txt', llmsText],
    ['/llms-full.txt', llmsFullText],
  ] as const)
    app.get(path, c => c.text(text(c.var.context.config), 200, { 'Cache-Control': 'no-cache' }))

  for (const path of ['/docs', '/docs/*'])
    app.get(path, docsSecurityHeaders, async c => {
      const response = c.var.context.config.docsEnabled ? await fetchAsset(assets, c.req.raw) : undefined
      if (response === undefined) throw refuse('UNKNOWN_PATH', { path: c.req.path })
      return response
    })
}

/** Returns the file of a request, or undefined if there is none. Serves /docs as the directory's page, without a redirect. */
async function fetchAsset(assets: Assets | undefined, request: Request): Promise<Response | undefined> {
  const url = new URL(request.url)
  if (url.pathname === '/docs') url.pathname = '/docs/'
  const response = await assets?.fetch(new Request(url, { method: request.method, headers: request.headers }))
  return response && response.status !== 404 ? new Response(response.body, response) : undefined
}
