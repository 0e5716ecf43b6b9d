import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import type { SearchEntry } from '../search-entry.ts'
import { type ErrorEntry, errorEntries } from './error-catalogue.ts'
import { fieldRenderer } from './fields.ts'
import { Html, html } from './html.ts'
import { layout, type NavigationGroup } from './layout.ts'
import { type LinkOf, markdown } from './markdown.ts'
import { fieldAnchors, operationAside, operationMain, SAMPLE_BASE } from './operation-page.ts'
import { type Described, root, type ServiceDescription } from './service-description.ts'

type Guide = { slug: string; title: string; url: string; source: string }

const EXAMPLES = globSync('examples/**/*.{py,sh,ts}', { cwd: root })

/** Returns every page and the search index, by file name under public/docs. */
export function pages({
  document,
  operations,
  errorRows,
  guideFiles,
  operationMarkdown,
}: ServiceDescription): Map<string, string> {
  const { info, tags, paths, components } = document
  const errors = errorEntries(errorRows)
  const guides = readGuides(guideFiles)
  const linkOf = linksOf({ operations, errors })
  const fields = fieldRenderer(components.schemas, linkOf)
  const describedOf = ({ path, method }: { path: string; method: string }) => paths[path]?.[method] as Described
  const urlOf = (id: string) => `/docs/operations/${id}`

  const navigation: NavigationGroup[] = [
    {
      title: 'Start',
      entries: [
        { title: 'Overview', url: '/docs' },
        ...guides.map(({ title, url }) => ({ title, url })),
        { title: 'Errors', url: '/docs/errors' },
        { title: 'Changelog', url: '/docs/changelog' },
      ],
    },
    ...tags.map(({ name }) => ({
      title: name,
      entries: operations
        .filter(({ tag }) => tag === name)
        .map(({ id, summary, method }) => ({ title: summary, url: urlOf(id), method })),
    })),
  ]
  const page = layout(info.title, info.version, navigation)
  const files = new Map<string, string>()
  const search: SearchEntry[] = []

  files.set(
    'index.html',
    page({ title: info.title, url: '/docs', description: firstSentence(info.description), main: overview() }),
  )
  for (const operation of operations) {
    const { id, summary, method, path, description, tag } = operation
    const described = describedOf(operation)
    const endpoint = `${method.toUpperCase()} ${path}`
    const named = guides.filter(({ source }) => source.includes(`\`${endpoint}\``))
    const parts = { operation, described, document, fields, errors, guides: named, linkOf }
    const url = urlOf(id)
    const main = operationMain(parts)
    files.set(
      `operations/${id}.html`,
      page({ title: summary, url, description: firstSentence(description), main, aside: operationAside(parts) }),
    )
    files.set(`operations/${id}.md`, `${operationMarkdown(operation).replace('## ', '# ')}\n`)
    const tool = operation.kind === 'json' ? (operation.tool?.name ?? '') : ''
    search.push({ kind: 'operation', title: summary, url, text: `${endpoint} ${id} ${tool} ${tag}` })
  }
  for (const guide of guides) {
    const { slug, title, url, source } = guide
    const text = firstSentence(source.split('\n').slice(1).join(' '))
    files.set(
      `guides/${slug}.html`,
      page({ title, url, description: text, main: html`<article class="guide">${markdown(source, linkOf)}</article>` }),
    )
    files.set(`guides/${slug}.md`, source)
    search.push({ kind: 'guide', title, url, text })
    for (const [, heading = '', body = ''] of source.matchAll(/^## (.+)\n([\s\S]*?)(?=^## |(?![\s\S]))/gm))
      search.push({
        kind: 'guide',
        title: plainText(heading),
        url: `${url}#${anchorOf(heading)}`,
        text: `${title}: ${plainText(body)}`,
      })
  }
  files.set('guides.md', guides.map(({ source }) => demoteHeadings(source)).join('\n'))
  for (const file of EXAMPLES) files.set(file, readFileSync(posix.join(root, file), 'utf8'))
  files.set('errors.md', errorsMarkdown(errors))
  const changelog = readFileSync(posix.join(root, 'CHANGELOG.md'), 'utf8').replaceAll(
    /\[([^\]]+)\]\((?!https?:)[^)]*\)/g,
    '$1',
  )
  files.set(
    'changelog.html',
    page({
      title: 'Changelog',
      url: '/docs/changelog',
      description: 'What each version added, changed and fixed.',
      main: html`<article class="guide">${markdown(changelog, linkOf)}</article>`,
    }),
  )
  files.set('changelog.md', changelog)
  search.push({
    kind: 'guide',
    title: 'Changelog',
    url: '/docs/changelog',
    text: 'What each version added, changed and fixed.',
  })
  files.set(
    'errors.html',
    page({
      title: 'Errors',
      url: '/docs/errors',
      description: 'Every error code, with what to do next.',
      main: errorsMain(errors, linkOf),
    }),
  )
  for (const { code, status, sentence } of errors)
    search.push({ kind: 'error', title: code, url: `/docs/errors#${code}`, text: `${status} ${plainText(sentence)}` })
  search.push(...fieldEntries())
  files.set('search.json', JSON.stringify(search))
  return files

  /** One entry for each field name, which leads to the first operation with it. */
  function fieldEntries(): SearchEntry[] {
    const byName = new Map<string, SearchEntry>()
    for (const operation of operations)
      for (const { name, anchor, description } of fieldAnchors({ described: describedOf(operation), fields })) {
        const text = `${operation.summary}: ${plainText(description).slice(0, 120)}`
        if (!byName.has(name))
          byName.set(name, { kind: 'field', title: name, url: `${urlOf(operation.id)}#${anchor}`, text })
      }
    return [...byName.values()]
  }

  function overview(): Html {
    return html`<h1>API reference</h1>
<p class="lead">Agents register, request a quote, sign it and post it; the service relays it and pays the gas. No API key, no account.</p>
<p class="links"><a href="/docs/guides/signing">Signing</a><a href="/docs/errors">Errors</a><a href="/mcp">MCP at <code>/mcp</code></a></p>
${tags.map(
  ({ name, description }) =>
    html`<section class="group"><h2 id="${name}">${name}</h2><p>${description}</p><ul class="operations">${operations
      .filter(({ tag }) => tag === name)
      .map(
        ({ id, summary, method, path }) =>
          html`<li><a href="${urlOf(id)}"><span class="summary">${summary}</span><span class="endpoint"><span class="method ${method}">${method.toUpperCase()}</span> <code>${new Html(html`${path}`.text.replaceAll('/', '<wbr>/'))}</code></span></a></li>`,
      )}</ul></section>`,
)}
<section class="group"><h2 id="conventions">Conventions</h2>${markdown(conventionsOf(info.description), linkOf)}
<h3 id="first-request">A first request</h3><pre tabindex="0" aria-label="Sample"><code data-base>curl -s '${SAMPLE_BASE}/vaults/genesis'</code></pre></section>`
  }
}

const conventionsOf = (description: string) => /## Conventions\n\n([\s\S]*?)\n\n##/.exec(description)?.[1] ?? ''

const anchorOf = (title: string) =>
  title
    .toLowerCase()
    .replace(/[^\w]+/g, '-')
    .replace(/^-|-$/g, '')

/** Returns the first sentence of a Markdown text as plain text. */
const firstSentence = (text: string): string => plainText(/^[\s\S]*?[.:](?=\s|$)/.exec(text.trim())?.[0] ?? text)

/** Returns a Markdown text as one line without its marks and the addresses of its links. */
const plainText = (text: string): string =>
  text
    .replaceAll(/\]\([^)]*\)/g, ']')
    .replaceAll(/[`*[\]|#]/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()

function readGuides(guideFiles: ServiceDescription['guideFiles']): Guide[] {
  return guideFiles.map(({ slug, file }) => {
    const text = withoutPictures(readFileSync(posix.join(root, file), 'utf8'))
    const source = withServedLinks(text, file, guideFiles)
    return { slug, title: plainText(/^# (.+)$/m.exec(source)?.[1] ?? slug), url: `/docs/guides/${slug}`, source }
  })
}

/** Leaves out the pictures of the repository, which are not served. */
const withoutPictures = (source: string): string => source.replaceAll(/^!\[[^\]]*\]\((?!https?:)[^)]*\)\n+/gm, '')

/** Lets the links of a file in the repository lead to what the service serves. */
function withServedLinks(source: string, file: string, guideFiles: ServiceDescription['guideFiles']): string {
  return source.replaceAll(/\]\((?!https?:|#)([^)#\s]+)(#[^)\s]+)?\)/g, (_, link: string, anchor = '') => {
    const target = posix.join(posix.dirname(file), link)
    const guide = guideFiles.find(guide => guide.file === target)
    if (guide === undefined && !EXAMPLES.includes(target))
      throw new Error(`${file} links to ${target}, which is not served.`)
    return `](/docs/${guide ? `guides/${guide.slug}` : target}${anchor})`
  })
}

/** Lets a page be a section of another one. Leaves the comments of code alone. */
const demoteHeadings = (source: string): string =>
  source
    .split(/^(```[\s\S]*?^```)/m)
    .map((part, index) => (index % 2 === 0 ? part.replaceAll(/^#/gm, '##') : part))
    .join('')

const errorsMarkdown = (errors: readonly ErrorEntry[]): string =>
  `# Errors

${ERRORS_INTRODUCTION}

| code | status | retryable | message | remedy |
|---|---|---|---|---|
${errors
  .map(({ code, status, retryable, sentence, remedy }) =>
    `| \`${code}\` | ${status} | ${retryable ? 'yes' : 'no'} | ${sentence} | ${remedy} |`.replaceAll('\n', ' '),
  )
  .join('\n')}
`

/** Returns the page of `GET /path` (its values may be examples), of an operation's tool, and of an error code. */
function linksOf({
  operations,
  errors,
}: {
  operations: ServiceDescription['operations']
  errors: readonly ErrorEntry[]
}): LinkOf {
  const links = new Map<string, string>()
  for (const operation of operations) {
    const url = `/docs/operations/${operation.id}`
    links.set(`${operation.method.toUpperCase()} ${operation.path}`, url)
    if (operation.kind === 'json' && operation.tool) links.set(operation.tool.name, url)
  }
  for (const { code } of errors) links.set(code, `/docs/errors#${code}`)
  return code => links.get(code.split('?')[0] ?? '')
}

/** Only whoever deploys or administers the contracts can cause and remedy these. */
const isOfDeployment = ({ remedy }: ErrorEntry) => remedy === 'Report it to the operator of the deployment.'

function errorsMain(errors: readonly ErrorEntry[], linkOf: LinkOf): Html {
  const ofRequests = errors.filter(error => !isOfDeployment(error))
  const groups = [...new Set(ofRequests.map(({ status }) => status))].map(status => ({
    id: `status-${status}`,
    link: `${status}`,
    title: `${status} ${statusNames[status]}`,
    entries: ofRequests.filter(error => error.status === status),
  }))
  const deployment = { id: 'deployment', link: 'Deployment', title: 'Faults of a deployment' }
  const all = [...groups, { ...deployment, entries: errors.filter(isOfDeployment) }]
  return html`<h1>Errors</h1>
${markdown(ERRORS_INTRODUCTION, linkOf)}
<p class="filter"><label>Filter <input type="search" data-filter placeholder="Code or word" autocomplete="off" spellcheck="false"></label> <span role="status" data-filter-count>${errors.length} codes</span></p>
<p class="links">${all.map(({ id, link }) => html`<a href="#${id}">${link}</a>`)}</p>
${all.map(
  ({ id, title, entries }) =>
    html`<section data-filter-group><h2 id="${id}">${title}</h2><ul class="errors">${entries.map(errorItem)}</ul></section>`,
)}`

  function errorItem({ code, status, sentence, remedy, details, retryable, retryAfterSeconds }: ErrorEntry): Html {
    const wait = retryAfterSeconds === undefined ? '' : ` after ${retryAfterSeconds} s`
    return html`<li id="${code}" data-filter-item><h3><a href="#${code}">${code}</a> <span class="status s${`${status}`[0]}">${status}</span></h3>
<p>${sentence}</p><p class="remedy">${markdownInline(remedy)}</p>
<dl><div><dt>Retryable</dt><dd>${retryable ? `yes, the identical request may succeed${wait}` : 'no'}</dd></div>${
      details.length > 0 &&
      html`<div><dt>Details</dt><dd>${details.map(({ name, type }, index) => [index > 0 && ', ', html`<code>${name}</code> ${type}`])}</dd></div>`
    }</dl></li>`
  }

  /** Remedies name operations without code marks. */
  function markdownInline(remedy: string): Html {
    const marked = remedy.replaceAll(/\b(GET|POST|PUT) (\/[\w/{}-]*)/g, '`$1 $2`')
    return new Html(markdown(marked, linkOf).text.replace(/^<p>|<\/p>$/g, ''))
  }
}

const ERRORS_INTRODUCTION =
  'The body of an error has `error` (a sentence), `code` (stable) and `requestId`, and where they help `details`, `remedy`, `retryable` and `retryAfterSeconds`. Decide by `code`. Names in braces stand for values, which `details` has too; digits are decimal strings. See [Retries](/docs/guides/retries).'

const statusNames: Record<number, string> = {
  400: 'Rejected',
  401: 'Unauthorized',
  402: 'Payment',
  404: 'Not found',
  405: 'Method not allowed',
  409: 'Conflict',
  413: 'Too large',
  429: 'Too many requests',
  500: 'Internal',
  502: 'Chain unreachable or outcome unknown',
  503: 'Unavailable',
}
