import { Html, html } from './html.ts'
import { inlineMarkdown, type LinkOf } from './markdown.ts'
import type { Parameter, Schema } from './service-description.ts'

const MAX_DEPTH = 6
/** Objects of a response with more fields than this start collapsed. */
const OPEN_FIELDS = 3

/** Renders the fields of JSON schemas of one document. */
export function fieldRenderer(schemas: Record<string, Schema>, linkOf: LinkOf) {
  const resolve = (schema: Schema): Schema => {
    const { $ref, ...own } = schema
    if ($ref !== undefined) return resolve({ ...schemas[$ref.slice($ref.lastIndexOf('/') + 1)], ...own })
    const [only, ...others] = schema.allOf ?? []
    if (only !== undefined && others.length === 0) {
      const { allOf: _, ...rest } = own
      return resolve({ ...only, ...rest })
    }
    return schema
  }
  const text = (description: string | undefined) =>
    description !== undefined && html`<p>${new Html(inlineMarkdown(description, linkOf))}</p>`

  function field(name: string, given: Schema, isRequired: boolean, anchor: string, depth: number): Html {
    const schema = resolve(given)
    const nested = depth < MAX_DEPTH ? nestedFields(schema, anchor, depth + 1) : undefined
    return html`<li id="${anchor}"><div class="field"><code class="name">${name}</code> <span class="type">${typeOf(schema, resolve)}</span>${
      isRequired && html` <span class="required">required</span>`
    }</div>${text(schema.description)}${values(schema)}${nested}</li>`
  }

  function nestedFields(schema: Schema, anchor: string, depth: number): Html | undefined {
    const inner = objectIn(schema, resolve)
    if (inner === undefined) return undefined
    const count = Object.keys(inner.properties ?? {}).length
    const isOpen = depth === 2 && (anchor.startsWith('body') || count <= OPEN_FIELDS)
    const label = `${count} ${count === 1 ? 'field' : 'fields'}`
    return html`<details${isOpen && html` open`}><summary>${label}</summary>${list(inner, anchor, depth)}</details>`
  }

  const list = ({ properties = {}, required = [] }: Schema, anchor: string, depth: number): Html =>
    html`<ul class="fields">${Object.entries(properties).map(([name, schema]) =>
      field(name, schema, required.includes(name), `${anchor}-${name}`, depth),
    )}</ul>`

  return {
    resolve,
    /** Renders the fields of a body. */
    body(schema: Schema, anchor: string): Html {
      const inner = objectIn(resolve(schema), resolve)
      return inner === undefined
        ? html`<p><span class="type">${typeOf(resolve(schema), resolve)}</span></p>`
        : list(inner, anchor, 1)
    },
    /** Renders parameters. */
    parameters: (parameters: readonly Parameter[], anchor: string): Html =>
      html`<ul class="fields">${parameters.map(({ name, schema = {}, description, required }) =>
        field(
          name,
          { ...schema, ...(description !== undefined && { description }) },
          required === true,
          `${anchor}-${name}`,
          1,
        ),
      )}</ul>`,
  }
}

/** Returns the object schema whose fields a schema shows: its own, or that of its list, map or nullable value. */
export function objectIn(schema: Schema, resolve: (schema: Schema) => Schema): Schema | undefined {
  if (schema.properties !== undefined) return schema
  const others = [schema.items, ...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]
  if (typeof schema.additionalProperties === 'object') others.push(schema.additionalProperties)
  for (const other of others) {
    const found = other && objectIn(resolve(other), resolve)
    if (found) return found
  }
  return undefined
}

function typeOf(schema: Schema, resolve: (schema: Schema) => Schema): string {
  const alternatives = schema.anyOf ?? schema.oneOf
  if (alternatives) return [...new Set(alternatives.map(one => typeOf(resolve(one), resolve)))].join(' or ')
  const types = [schema.type ?? (schema.properties ? 'object' : 'any')].flat()
  const name = types.map(type => {
    if (type === 'array') return `list of ${schema.items ? typeOf(resolve(schema.items), resolve) : 'any'}`
    if (type === 'object' && typeof schema.additionalProperties === 'object')
      return `map of ${typeOf(resolve(schema.additionalProperties), resolve)}`
    return type
  })
  return name.join(' or ')
}

function values({ enum: options, const: constant, default: fallback }: Schema): Html {
  const allowed = options ?? (constant === undefined ? [] : [constant])
  return html`${
    allowed.length > 0 &&
    html`<p class="values">One of ${allowed.map((value, index) => [index > 0 && ', ', html`<code>${String(value)}</code>`])}</p>`
  }${fallback !== undefined && html`<p class="values">Default <code>${String(fallback)}</code></p>`}`
}
