import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Context as HonoContext } from 'hono'
import { keccak256, stringToHex } from 'viem'
import { chargeBeforeReading, respondInTime } from '../call.ts'
import { signingContracts } from '../chain/signing-domains.ts'
import type { Config } from '../config/config.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import { skills } from '../generated/skills.ts'
import { unitsOfDocument } from '../limits/prices.ts'
import { readClearSigning } from '../operations/signing.ts'
import { prefers } from '../requests/accept.ts'
import { exampleDeadline } from '../resources/primitives.ts'
import { llmsFullText, llmsSmallText, llmsText } from './llms-txt.ts'
import { type OpenApiVersion, openApiJson, parseRecordedExamples, type RecordedExamples } from './openapi-document.ts'
import { matchesETag } from './operation-route.ts'
import type { Assets } from './page-routes.ts'
import type { AppEnv } from './request-state.ts'
import { docsSecurityHeaders } from './response-headers.ts'

/** Where the description is served in each version of OpenAPI. */
const documentPaths: Record<OpenApiVersion, string[]> = {
  '3.1.0': ['/docs/swagger.json', '/openapi.json'],
  '3.0.3': ['/openapi-3.0.json'],
}

/** A document with its tag, which is computed once. */
type TaggedDocument = { text: string; etag: string }

const tagged = (text: string): TaggedDocument => ({
  text,
  etag: `W/"${keccak256(stringToHex(text)).slice(2, 18)}"`,
})

/** Sends a document, unless the client has it already. It pays for the size. Throws RATE_LIMITED. */
async function sendDocument(c: HonoContext<AppEnv>, { text, etag }: TaggedDocument, type: string): Promise<Response> {
  c.header('ETag', etag)
  c.header('Cache-Control', 'no-cache')
  if (matchesETag(c.req.header('If-None-Match'), etag)) return c.body(null, 304)
  await chargeBeforeReading(c.var.call, unitsOfDocument(text.length))
  return c.body(text, 200, { 'Content-Type': type })
}

/**
 * Adds the API documents: the OpenAPI description, the interactive page over it, the texts for language models, the
 * skills, and what hardware wallets show.
 */
export function addDocsRoutes(app: OpenAPIHono<AppEnv>, context: Context, assets: Assets | undefined): void {
  const { config } = context
  for (const [version, paths] of Object.entries(documentPaths) as [OpenApiVersion, string[]][]) {
    let current = { deadline: '', document: tagged('') }
    for (const path of paths)
      app.get(path, async c => {
        const deadline = exampleDeadline()
        if (current.deadline !== deadline) {
          const json = openApiJson(app, config, await readExamples(assets, deadline), version)
          current = { deadline, document: tagged(json) }
        }
        return sendDocument(c, current.document, 'application/json')
      })
  }
  const readGuides = async () => {
    const response = await assets?.fetch(new Request('https://assets/docs/guides.md'))
    return response?.ok ? response.text() : ''
  }
  for (const [path, write] of [
    ['/llms.txt', llmsText],
    ['/llms-small.txt', llmsSmallText],
    ['/llms-full.txt', async (config: Config) => llmsFullText(config, await readGuides())],
  ] as const) {
    let document: TaggedDocument | undefined
    app.get(path, async c => {
      document ??= tagged(await write(config))
      return sendDocument(c, document, 'text/plain; charset=UTF-8')
    })
  }

  for (const path of ['/docs', '/docs/*', '/docs.md'])
    app.get(path, docsSecurityHeaders, async c => {
      if (!config.docsEnabled) throw refuse('UNKNOWN_PATH', { path: c.req.path })
      const page = c.req.path.replace(/\/$/, '')
      const isPage = !/\.\w+$/.test(page)
      const isMarkdown = isPage && prefers(c.req.header('Accept'), 'text/markdown', 'text/html')
      const response =
        page === '/docs.md' || page === '/docs/index.md' || (page === '/docs' && isMarkdown)
          ? new Response(llmsText(config), { headers: { 'Content-Type': 'text/markdown; charset=utf-8' } })
          : await fetchAsset(assets, c.req.raw, isMarkdown ? `${page}.md` : page)
      if (response === undefined) throw refuse('UNKNOWN_PATH', { path: c.req.path })
      if (isPage) response.headers.append('Vary', 'Accept')
      return response
    })
  addSkillRoutes(app)
  addClearSigningRoutes(app, context)
}

/** Reads the recorded examples, which are a file because they would take much of the Worker's size limit. */
async function readExamples(assets: Assets | undefined, deadline: string): Promise<RecordedExamples | undefined> {
  const response = await assets?.fetch(new Request('https://assets/docs/examples.json'))
  return response?.ok ? parseRecordedExamples(await response.text(), deadline) : undefined
}

/** Returns a file, or undefined if there is none. Serves /docs as the directory's page, without a redirect. */
async function fetchAsset(assets: Assets | undefined, request: Request, path: string): Promise<Response | undefined> {
  const url = new URL(request.url)
  url.pathname = path === '/docs' ? '/docs/' : path
  const response = await assets?.fetch(new Request(url, { method: request.method, headers: request.headers }))
  return response && response.status !== 404 ? new Response(response.body, response) : undefined
}

/** Adds an ERC-7730 descriptor for each contract that verifies messages, and for the service. */
function addClearSigningRoutes(app: OpenAPIHono<AppEnv>, context: Context): void {
  for (const contract of signingContracts)
    app.get(`/.well-known/erc7730/${contract}.json`, async c => {
      const descriptor = (await respondInTime(c.var.call, readClearSigning(context))).get(contract)
      if (descriptor === undefined) throw refuse('UNKNOWN_PATH', { path: c.req.path })
      return c.json(descriptor, 200, { 'Cache-Control': 'no-cache' })
    })
}

const SKILLS_FOLDER = '/.well-known/agent-skills'

/** The index of the skills, as the discovery format for agent skills defines it. */
const skillIndex = {
  $schema: 'https://schemas.agentskills.io/discovery/0.2.0/schema.json',
  skills: skills.map(({ frontmatter: { name, description }, resources: [file] }) => ({
    name,
    type: 'skill-md',
    description,
    url: `${SKILLS_FOLDER}/${name}/SKILL.md`,
    digest: file?.digest,
  })),
}

const skillHeaders = { 'Cache-Control': 'public, max-age=3600' }

/** Adds the skills for agents: their index, and one file each. */
function addSkillRoutes(app: OpenAPIHono<AppEnv>): void {
  app.get(`${SKILLS_FOLDER}/index.json`, c => c.json(skillIndex, 200, skillHeaders))
  for (const { text, frontmatter } of skills)
    app.get(`${SKILLS_FOLDER}/${frontmatter.name}/SKILL.md`, c =>
      c.body(text, 200, { ...skillHeaders, 'Content-Type': 'text/markdown; charset=utf-8' }),
    )
}
