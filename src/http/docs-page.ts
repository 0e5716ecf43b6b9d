import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Config } from '../config.ts'
import { refuse } from '../errors/catalogue.ts'
import type { AppEnv } from './app.ts'
import { docsHeaders } from './headers.ts'
import { llmsFullText, llmsText } from './llms-txt.ts'
import { openApiText } from './openapi.ts'

/** What fetches the files under public/. */
export type Assets = { fetch: (request: Request) => Promise<Response> }

/** The pages about the API: its description, the interactive page over it, and the texts for language models. */
export function addDocs(app: OpenAPIHono<AppEnv>, assets: Assets | undefined) {
  const described = new WeakMap<Config, string>()
  app.get('/docs/swagger.json', c => {
    const { config } = c.var.context
    const text = described.get(config) ?? openApiText(app, config)
    described.set(config, text)
    return c.body(text, 200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-cache' })
  })
  for (const [path, text] of [
    ['/llms.txt', llmsText],
    ['/llms-full.txt', llmsFullText],
  ] as const)
    app.get(path, c => c.text(text(c.var.context.config), 200, { 'Cache-Control': 'no-cache' }))

  for (const path of ['/docs', '/docs/*'])
    app.get(path, docsHeaders, async c => {
      const answer = c.var.context.config.docsEnabled ? await fetchAsset(assets, c.req.raw) : undefined
      if (answer === undefined) throw refuse('UNKNOWN_PATH', { path: c.req.path })
      return answer
    })
}

/** The file of a request, or undefined when there is none. /docs is the directory's page, without a redirect. */
async function fetchAsset(assets: Assets | undefined, request: Request): Promise<Response | undefined> {
  const url = new URL(request.url)
  if (url.pathname === '/docs') url.pathname = '/docs/'
  const answer = await assets?.fetch(new Request(url, { method: request.method, headers: request.headers }))
  return answer && answer.status !== 404 ? new Response(answer.body, answer) : undefined
}
