import type { Operation } from '../../src/operations/operation.ts'
import { jsonTokens } from '../json-tokens.ts'
import type { RequestValues, SampleOperation } from '../sample-types.ts'
import { languages, sampleOf } from '../samples.ts'
import type { ErrorEntry } from './error-catalogue.ts'
import { type fieldRenderer, objectIn } from './fields.ts'
import { Html, html } from './html.ts'
import { type LinkOf, markdown } from './markdown.ts'
import type { ApiDocument, Described, Parameter } from './service-description.ts'

const JSON_TYPE = 'application/json'
/** Stands for the service's address until the script replaces it. */
export const SAMPLE_BASE = 'https://api.example'

export type OperationPage = {
  operation: Operation
  described: Described
  document: ApiDocument
  fields: ReturnType<typeof fieldRenderer>
  errors: readonly ErrorEntry[]
  guides: readonly { title: string; url: string }[]
  linkOf: LinkOf
}

export const bodyOf = ({ requestBody }: Described) => requestBody?.content[JSON_TYPE]

/** Renders the description of an operation, and the form that sends it. */
export function operationMain(page: OperationPage): Html {
  const { operation, described, fields, guides, linkOf } = page
  const { method, path } = operation
  const groups = [
    ['path', 'Path parameters'],
    ['query', 'Query parameters'],
    ['header', 'Headers'],
  ] as const
  const body = bodyOf(described)
  return html`<p class="tag">${operation.tag}</p>
<h1>${operation.summary}</h1>
<p class="endpoint"><span class="method ${method}">${method.toUpperCase()}</span> <code>${breakable(path)}</code></p>
${markdown(operation.description, linkOf)}
${facts(operation)}
${guides.length > 0 && html`<p class="guides">Guides: ${guides.map(({ title, url }, index) => [index > 0 && ', ', html`<a href="${url}">${title}</a>`])}</p>`}
${groups.map(([place, title]) => {
  const found = (described.parameters ?? []).filter(parameter => parameter.in === place)
  return found.length > 0 && html`<h2 id="${place}">${title}</h2>${fields.parameters(found, place)}`
})}
${body?.schema && html`<h2 id="body">Body</h2>${fields.body(body.schema, 'body')}`}
${tryForm(page)}
${responses(page)}`
}

function facts(operation: Operation): Html {
  const tool = operation.kind === 'json' ? operation.tool?.name : undefined
  const items = [
    tool && html`MCP tool <code>${tool}</code>`,
    operation.kind === 'json' && operation.paid && html`Paid over <a href="/docs/guides/payment">x402</a>`,
    operation.kind === 'json' && operation.security && html`Bearer token: the operator's ${operation.security} secret`,
    operation.kind === 'text' && html`Bearer token: the operator's secret`,
    operation.kind === 'event-stream' && html`<a href="/docs/guides/streams">Server-sent events</a>`,
  ].filter(Boolean) as Html[]
  return items.length === 0 ? html`` : html`<ul class="facts">${items.map(item => html`<li>${item}</li>`)}</ul>`
}

/** Lets a long path wrap at its slashes. */
const breakable = (path: string): Html => new Html(html`${path}`.text.replaceAll('/', '<wbr>/'))

function responses({ operation, described, fields, errors }: OperationPage): Html {
  const entries = Object.entries(described.responses)
  const successes = entries.filter(([status]) => Number(status) < 300)
  const [main] = successes.filter(([status]) => operation.kind !== 'json' || Number(status) === operation.status)
  const others = entries.filter(entry => entry !== main)
  const schema = main?.[1].content?.[JSON_TYPE]?.schema
  return html`<h2 id="response">Response ${main?.[0]}</h2>
<p>${main?.[1].description}</p>
${schema && fields.body(schema, 'response')}
<h2 id="other-responses">Other responses</h2>
<ul class="statuses">${others.map(([status, { description }]) => {
    const count = errors.filter(error => `${error.status}` === status).length
    return html`<li><span class="status s${status[0]}">${status}</span> <span>${description}${
      count > 0 &&
      html`: <a href="/docs/errors#status-${status}">${count} ${count === 1 ? 'code' : 'codes'} with ${status}</a>`
    }</span></li>`
  })}</ul>`
}

/** Returns the recorded values of a request. */
export function recordedValues(described: Described): RequestValues {
  const at = (place: Parameter['in']) =>
    Object.fromEntries(
      (described.parameters ?? []).flatMap(({ name, in: where, example }) =>
        where === place && example !== undefined ? [[name, `${example}`]] : [],
      ),
    )
  const body = bodyOf(described)?.example
  return { path: at('path'), query: at('query'), headers: {}, ...(body !== undefined && { body }) }
}

/** Returns what samples need to know about an operation. */
export function sampleOperation({
  operation,
  described,
  document,
}: Pick<OperationPage, 'operation' | 'described' | 'document'>): SampleOperation {
  const { id, method, path } = operation
  const quotePath = `${path}/quote`
  const quote = method === 'get' ? undefined : document.paths[quotePath]?.get
  return {
    id,
    method,
    path,
    isStream: operation.kind === 'event-stream',
    isText: operation.kind === 'text',
    isPaid: operation.kind === 'json' && operation.paid === true,
    ...(operation.kind === 'json' && operation.tool && { tool: operation.tool.name }),
    numbers: (described.parameters ?? [])
      .filter(({ schema }) => [schema?.type].flat().some(type => type === 'integer' || type === 'number'))
      .map(({ name }) => name),
    ...(quote && { quote: { path: quotePath, parameters: recordedValues(quote).query } }),
  }
}

function tryForm({ operation, described, document }: OperationPage): Html {
  const sample = sampleOperation({ operation, described, document })
  const values = recordedValues(described)
  const parameters = (described.parameters ?? []).filter(({ in: place }) => place !== 'header')
  return html`<section class="try" aria-labelledby="try"><h2 id="try">Try it</h2>
<p>${sample.isStream ? 'Opens the stream of' : 'Sends the request to'} the service that serves this page.${
    sample.quote && html` The body is a recorded one, so its signature is refused: quote, sign and post your own.`
  }</p>
<form data-try>${parameters.map(({ name, in: place, schema = {}, required }) =>
    input(name, place, schema.enum ?? [], required === true, values[place === 'path' ? 'path' : 'query'][name] ?? ''),
  )}${
    values.body !== undefined &&
    html`<label class="wide">Body<textarea name="body" rows="${Math.min(16, JSON.stringify(values.body, null, 2).split('\n').length + 1)}" spellcheck="false">${JSON.stringify(values.body, null, 2)}</textarea></label>`
  }<p class="actions"><button type="submit" class="primary">${sample.isStream ? 'Open the stream' : 'Send'}</button> <button type="button" data-stop hidden>Stop</button> <span data-state role="status"></span></p></form>
<div data-result hidden></div>
<script type="application/json" id="operation">${embedded({ operation: sample, values })}</script></section>`
}

/** Returns JSON that is safe inside a script element. */
const embedded = (value: unknown): Html => new Html(JSON.stringify(value).replaceAll('<', '\\u003c'))

function input(name: string, place: string, options: readonly unknown[], isRequired: boolean, value: string): Html {
  const required = new Html(isRequired ? ' required' : '')
  const control =
    options.length > 0
      ? html`<select name="${place}:${name}"${required}>${!isRequired && html`<option value=""></option>`}${options.map(option => html`<option${new Html(`${option}` === value ? ' selected' : '')}>${String(option)}</option>`)}</select>`
      : html`<input name="${place}:${name}" value="${value}" autocomplete="off" spellcheck="false"${required}>`
  return html`<label>${name}${isRequired && html` <span class="required">required</span>`}${control}</label>`
}

/** Renders the samples and the recorded examples. */
export function operationAside({ operation, described, document }: OperationPage): Html {
  const sample = sampleOperation({ operation, described, document })
  const values = recordedValues(described)
  const samples = Object.entries(languages).flatMap(([language, label]) => {
    const code = sampleOf(language as keyof typeof languages, SAMPLE_BASE, sample, values)
    return code === undefined ? [] : [{ id: language, label, content: html`<code>${code}</code>` }]
  })
  const examples = Object.entries(described.responses).flatMap(([status, { content = {} }]) =>
    Object.entries(content).flatMap(([mediaType, { example }]) =>
      example === undefined
        ? []
        : [
            {
              id: `example-${status}-${mediaType.split('/')[1]}`,
              label: mediaType === JSON_TYPE ? status : `${status} ${mediaLabels[mediaType] ?? mediaType}`,
              content: html`<code>${exampleCode(example)}</code>`,
            },
          ],
    ),
  )
  return html`${tabs('Samples', samples, true)}${tabs('Recorded responses', examples, false)}`
}

const mediaLabels: Record<string, string> = {
  'text/csv': 'CSV',
  'text/markdown': 'Markdown',
  'text/event-stream': 'events',
}

const exampleCode = (example: unknown): Html | string =>
  typeof example === 'string'
    ? example
    : html`${jsonTokens(JSON.stringify(example, null, 2)).map(({ kind, text }) =>
        kind === 'plain' ? text : html`<span class="${kind}">${text}</span>`,
      )}`

type Tab = { id: string; label: string; content: Html }

function tabs(title: string, entries: readonly Tab[], isSample: boolean): Html {
  return html`<section class="panel" data-tabs${new Html(isSample ? ' data-samples' : '')}><header><h2>${title}</h2><button type="button" data-copy>Copy</button></header>
<div role="tablist" aria-label="${title}">${entries.map(
    ({ id, label }, index) =>
      html`<button type="button" role="tab" id="tab-${id}" aria-controls="panel-${id}" aria-selected="${index === 0 ? 'true' : 'false'}" tabindex="${index === 0 ? '0' : '-1'}">${label}</button>`,
  )}</div>
${entries.map(
  ({ id, content }, index) =>
    html`<pre role="tabpanel" id="panel-${id}" aria-labelledby="tab-${id}" tabindex="0"${new Html(index === 0 ? '' : ' hidden')}>${content}</pre>`,
)}</section>`
}

/** Returns the fields of an operation's bodies and parameters by name, with their place on its page. */
export function fieldAnchors({ described, fields }: Pick<OperationPage, 'described' | 'fields'>) {
  const found: { name: string; anchor: string; description: string }[] = []
  for (const { name, in: place, description, schema } of described.parameters ?? [])
    found.push({ name, anchor: `${place}-${name}`, description: description ?? schema?.description ?? '' })
  const success = Object.entries(described.responses).find(([status]) => Number(status) < 300)?.[1]
  for (const [anchor, schema] of [
    ['body', bodyOf(described)?.schema],
    ['response', success?.content?.[JSON_TYPE]?.schema],
  ] as const) {
    const inner = schema && objectIn(fields.resolve(schema), fields.resolve)
    for (const [name, field] of Object.entries(inner?.properties ?? {}))
      found.push({ name, anchor: `${anchor}-${name}`, description: fields.resolve(field).description ?? '' })
  }
  return found
}
