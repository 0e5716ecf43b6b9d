import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Context, MiddlewareHandler } from 'hono'
import type { Context as Services } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import { createShareFigures } from '../operations/share-figures.ts'
import { mediaRangesOf, qualityOf } from '../requests/accept.ts'
import type { AppEnv } from './request-state.ts'
import { pageSecurityHeaders } from './response-headers.ts'
import { withShareCard } from './share-card.ts'

/** Serves the files under public/. */
export type Assets = { fetch: (request: Request) => Promise<Response> }

const PAGE = '/app/'
/** Built files carry a hash of their content in their name. */
const HASHED = '/app/assets/'
/** The pages whose cards have a name and a return. */
const SUBJECT = /^\/app\/(agents|vaults)\/[\w-]+$/
/** Only files of these folders: what is deeper is a page, also if it ends in a symbol such as BRK.B. */
const FILE = /^\/app\/(assets\/.+|[^/]+\.\w+)$/
/** The paths of web/src/app.tsx. */
const PAGES =
  /^\/app(\/(vaults|leaderboard|trades|compare|owner|depositor|status)|\/(vaults|tokens|agents|agents\/[^/]+\/positions|intents|transactions)\/[^/]+)?\/?$/

/**
 * Serves the pages of web/ under /app and, to browsers, at `/`. Must be added before the operations, one of which is
 * `/`.
 */
export function addPageRoutes(app: OpenAPIHono<AppEnv>, context: Services, assets: Assets | undefined) {
  const { baseUrl } = context.config
  const figures = createShareFigures(context)
  const servePage: MiddlewareHandler<AppEnv> = async (c, next) => {
    if (!prefersHtml(c.req.header('Accept'))) {
      await next()
      c.res.headers.append('Vary', 'Accept')
      return
    }
    const page = await fetchFile(assets, c.req.raw, PAGE)
    if (page === undefined) return next()
    page.headers.append('Vary', 'Accept')
    return pageSecurityHeaders(c, async () => {
      c.res = withShareCard(page, { path: c.req.path, baseUrl })
    })
  }
  app.get('/', servePage)

  for (const path of ['/app', '/app/*'])
    app.get(path, pageSecurityHeaders, async c => {
      // Every other path is a page, so that deep links and reloads work; one that is unknown says so.
      const isFile = FILE.test(c.req.path)
      const response = await fetchFile(assets, c.req.raw, isFile ? c.req.path : PAGE)
      if (response === undefined) throw refuse('UNKNOWN_PATH', { path: c.req.path })
      if (!isFile) {
        const { path } = c.req
        // Browsers say that they navigate. Nobody sees their card, so they do not wait for it.
        const isShared = c.req.header('Sec-Fetch-Dest') !== 'document' && SUBJECT.test(path)
        const page = withShareCard(response, { path, baseUrl, figure: isShared ? await figures.of(path) : undefined })
        return PAGES.test(path) ? page : new Response(page.body, { status: 404, headers: page.headers })
      }
      if (c.req.path.startsWith(HASHED)) response.headers.set('Cache-Control', 'public, max-age=31536000, immutable')
      return response
    })
}

/** Returns the page that tells a browser of an unknown path; undefined for other clients. */
export async function findUnknownPage(c: Context<AppEnv>, assets: Assets | undefined): Promise<Response | undefined> {
  if (c.req.method !== 'GET' || !prefersHtml(c.req.header('Accept'))) return undefined
  const page = await fetchFile(assets, c.req.raw, PAGE)
  if (page === undefined) return undefined
  page.headers.append('Vary', 'Accept')
  await pageSecurityHeaders(c, async () => {
    c.res = new Response(page.body, { status: 404, headers: page.headers })
  })
  return c.res
}

/** Tells whether a client names HTML and prefers it to JSON. A browser does; `*\/*` alone does not. */
function prefersHtml(accept: string | undefined): boolean {
  const ranges = mediaRangesOf(accept)
  const html = ranges.find(({ type }) => type === 'text/html')?.q ?? 0
  return html > qualityOf(ranges, 'application/json')
}

/** Returns a file under public/, or undefined if there is none. */
async function fetchFile(assets: Assets | undefined, request: Request, path: string): Promise<Response | undefined> {
  const { method, headers } = request
  const response = await assets?.fetch(new Request(new URL(path, request.url), { method, headers }))
  return response && response.status !== 404 ? new Response(response.body, response) : undefined
}
