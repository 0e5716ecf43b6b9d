import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Config } from '../config/config.ts'
import { refuse } from '../errors/refuse.ts'
import { exampleDeadline } from '../resources/primitives.ts'
import type { AppEnv } from './app-env.ts'
import { llmsFullText, llmsText } from './llms-txt.ts'
import { openApiJson } from './openapi-document.ts'
import { parseRecordedExamples, type RecordedExamples } from './openapi-examples.ts'
import { docsSecurityHeaders } from './response-headers.ts'

/** Serves the files under public/. */
export type Assets = { fetch: (request: Request) => Promise<Response> }

/** Adds the API documents: the OpenAPI description, the interactive page over it, and the texts for language models. */
export function addDocsRoutes(app: OpenAPIHono<AppEnv>, assets: Assets | undefined) {
  const documents = new WeakMap<Config, { deadline: string; json: string }>()
  for (const path of ['/docs/swagger.json', '/openapi.json'])
    app.get(path, async c => {
      const { config } = c.var.context
      const deadline = exampleDeadline()
      let document = documents.get(config)
      if (document?.deadline !== deadline) {
        document = { deadline, json: openApiJson(app, config, await readExamples(assets, deadline)) }
        documents.set(config, document)
      }
      return c.body(document.json, 200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-cache' })
    })
  for (const [path, text] of [
    ['/llms.txt', llmsText],
    ['/llms-full.txt', llmsFullText],
  ] as const)
    app.get(path, c => c.text(writtenOnce(text, c.var.context.config), 200, { 'Cache-Control': 'no-cache' }))

  for (const path of ['/docs', '/docs/*'])
    app.get(path, docsSecurityHeaders, async c => {
      const response = c.var.context.config.docsEnabled ? await fetchAsset(assets, c.req.raw) : undefined
      if (response === undefined) throw refuse('UNKNOWN_PATH', { path: c.req.path })
      return response
    })
}

type WriteText = (config: Config) => string
const texts = new WeakMap<Config, Map<WriteText, string>>()

/** Returns a text that depends on nothing but the configuration, written once per isolate. */
function writtenOnce(write: WriteText, config: Config): string {
  const written = texts.get(config) ?? new Map<WriteText, string>()
  texts.set(config, written)
  const text = written.get(write) ?? write(config)
  written.set(write, text)
  return text
}

/** Reads the recorded examples, which are a file because they would take much of the Worker's size limit. */
async function readExamples(assets: Assets | undefined, deadline: string): Promise<RecordedExamples | undefined> {
  const response = await assets?.fetch(new Request('https://assets/docs/examples.json'))
  return response?.ok ? parseRecordedExamples(await response.text(), deadline) : undefined
}

/** Returns the file of a request, or undefined if there is none. Serves /docs as the directory's page, without a redirect. */
async function fetchAsset(assets: Assets | undefined, request: Request): Promise<Response | undefined> {
  const url = new URL(request.url)
  if (url.pathname === '/docs') url.pathname = '/docs/'
  const response = await assets?.fetch(new Request(url, { method: request.method, headers: request.headers }))
  return response && response.status !== 404 ? new Response(response.body, response) : undefined
}
