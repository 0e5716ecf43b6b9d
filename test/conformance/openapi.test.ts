import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { z } from 'zod'
import recorded from '../../src/generated/recorded-examples.json'
import { operations } from '../../src/operations/index.ts'
import { errorStatuses, type JsonOperation, type Operation } from '../../src/operations/operation.ts'
import { tags } from '../../src/operations/operation-definition.ts'
import { errorBody, paymentRequiredBody } from '../../src/resources/error-body.ts'
import type { Body } from '../support/body.ts'
import { deployment, request, strict } from '../support/surfaces.ts'

type Schema = Body
let document: Body
let requestedAt: number
const all: readonly Operation[] = operations
const listed = all.filter((operation): operation is JsonOperation => operation.kind === 'json')
const streams = all.filter(({ kind }) => kind === 'event-stream')
const described = ({ path, method }: Operation): Body => document.paths[path][method]
const JSON_TYPE = 'application/json'

beforeAll(async () => {
  requestedAt = Date.now()
  const response = await request('/docs/swagger.json')
  expect(response.headers.get('content-type')).toContain(JSON_TYPE)
  document = await response.json()
})

it('the document is OpenAPI 3.1.0 of API version 0.1.0, for this deployment', () => {
  expect(document).toMatchObject({
    openapi: '3.1.0',
    info: { version: '0.1.0', license: { name: 'MIT' }, contact: { name: expect.any(String) } },
    servers: [{ url: deployment.baseUrl }],
  })
  expect(document.tags.map(({ name }: Body) => name)).toEqual(Object.keys(tags))
})

it('the document has every operation and nothing else', () => {
  const entries = Object.entries(document.paths as Record<string, object>)
  const found = entries.flatMap(([path, item]) => Object.keys(item).map(method => `${method} ${path}`))
  expect(found.sort()).toEqual(all.map(({ method, path }) => `${method} ${path}`).sort())
})

it.each(streams)('$path is documented as an event stream', operation => {
  const { id, path, tag } = operation
  const entry = document.paths[path].get
  expect(entry).toMatchObject({ operationId: id, tags: [tag], summary: expect.any(String) })
  expect(entry.responses[200].content).toEqual({
    'text/event-stream': { schema: { type: 'string' }, example: expect.any(String) },
  })
  expect(Object.keys(entry.responses).map(Number)).toEqual([200, ...errorStatuses(operation)])
  expect(entry.parameters.map(({ name }: Body) => name)).toContain('after')
})

it.each(all.filter(operation => operation.kind === 'text'))('$path is documented as text', operation => {
  const entry = described(operation)
  expect(entry).toMatchObject({ operationId: operation.id, tags: [operation.tag], security: [{ operatorSecret: [] }] })
  expect(entry.responses[200].content).toEqual({
    [operation.contentType]: { schema: { type: 'string' }, example: expect.any(String) },
  })
  expect(Object.keys(entry.responses).map(Number)).toEqual([200, ...errorStatuses(operation)])
})

it('the document has an ETag, is not sent again to a client that has it, and costs by its size', async () => {
  const headers = { 'cf-connecting-ip': '192.0.2.200' }
  const first = await request('/openapi.json', { headers })
  const left = (response: Response) => Number(/r=(\d+)/.exec(response.headers.get('ratelimit') ?? '')?.[1])
  const { length } = await first.text()
  const known = { ...headers, 'if-none-match': first.headers.get('etag') ?? '' }
  const again = await request('/openapi.json', { headers: known })
  expect([again.status, await again.text()]).toEqual([304, ''])
  expect(left(first) - left(again)).toBeGreaterThanOrEqual(Math.floor(length / 16_384) - 3)
  expect((await request('/llms.txt', { headers: { 'if-none-match': '"another"' } })).status).toBe(200)
})

it('the document is also served as /openapi.json', async () => {
  // The examples of deadlines change with the hour.
  vi.useFakeTimers({ now: requestedAt, toFake: ['Date'] })
  const alias = await request('/openapi.json').finally(() => vi.useRealTimers())
  expect(await alias.json()).toEqual(document)
})

it('a run has recorded every operation, and no other', () => {
  expect(Object.keys(recorded.operations).sort()).toEqual(all.map(({ id }) => id).sort())
})

describe.each(listed.map(operation => [operation.id, operation] as const))('%s', (id, operation) => {
  it('has id, summary, description, one tag and a schema per status', () => {
    const entry = described(operation)
    expect(entry).toMatchObject({ operationId: id, tags: [operation.tag] })
    expect(entry.summary.length).toBeGreaterThan(3)
    expect(entry.description.length).toBeGreaterThan(20)
    const statuses = Object.keys(entry.responses).map(Number)
    expect(statuses).toEqual(expect.arrayContaining([operation.status, ...errorStatuses(operation)]))
    for (const [status, { description, content }] of Object.entries<Body>(entry.responses)) {
      expect(description).toEqual(expect.any(String))
      if (status === '304') expect(content).toBeUndefined()
      else expect(content[JSON_TYPE]).toMatchObject({ schema: expect.any(Object), example: expect.anything() })
    }
  })

  it('has recorded examples that its schemas accept', () => {
    const { requestBody, responses, parameters = [] } = described(operation)
    const { params, query, body, output } = operation
    if (body) body.strict().parse(requestBody.content[JSON_TYPE].example)
    const shape = { ...params?.shape, ...query?.shape } as Record<string, z.ZodType>
    for (const { name, schema, example = schema.example } of parameters)
      if (example !== undefined) shape[name]?.parse(example)
    for (const [status, { content }] of Object.entries<Body>(responses)) {
      if (content === undefined) continue
      const { example } = content[JSON_TYPE]
      const schema = Number(status) < 300 ? output : status === '402' ? paymentRequiredBody : errorBody
      strict(schema).parse(example)
    }
  })

  it('names the unit of every amount and distance', () => {
    const { responses } = described(operation)
    const response = responses[operation.status].content[JSON_TYPE].schema
    for (const [path, schema] of leavesOf(response)) {
      const unit = unitOf(path)
      if (unit) expect(schema.description ?? '', path.join('.')).toMatch(unit)
    }
  })
})

it('the document has examples of deadlines one to two hours ahead', () => {
  const deadlines: string[] = []
  JSON.stringify(document, (key, value) => {
    if (key === 'deadline' || key === 'suggestedDeadline')
      deadlines.push(...[value, value.example].filter(example => typeof example === 'string'))
    for (const { name, schema } of key === 'parameters' && Array.isArray(value) ? value : [])
      if (name === 'deadline') deadlines.push(schema.example)
    return value
  })
  const now = requestedAt / 1000
  expect(deadlines.length).toBeGreaterThan(20)
  expect(deadlines.filter(deadline => Number(deadline) < now + 3_500 || Number(deadline) > now + 7_200)).toEqual([])
})

it('the examples of quotes agree with themselves, and no example is a placeholder', () => {
  for (const operation of listed.filter(({ path }) => path.endsWith('/quote'))) {
    const { example } = described(operation).responses[200].content[JSON_TYPE]
    const { eip712, typedData } = example
    expect(eip712.primaryType).toBe(typedData.primaryType)
    expect(eip712.types[eip712.primaryType]).toEqual(typedData.types[eip712.primaryType])
    expect(eip712.types[eip712.primaryType].map(({ name }: Body) => name)).toEqual(Object.keys(typedData.message))
  }
  for (const operation of listed) {
    const { example } = described(operation).responses[operation.status].content[JSON_TYPE]
    expect(JSON.stringify(example)).not.toContain('"text"')
  }
})

it('every reference resolves', () => {
  const references = JSON.stringify(document).match(/"#\/components\/schemas\/\w+"/g) ?? []
  for (const reference of references) expect(resolve({ $ref: JSON.parse(reference) })).toBeDefined()
})

/** Returns what the description of a property must contain, by its name. Bodies to post have human amounts. */
function unitOf(path: string[]): RegExp | undefined {
  const name = path.at(-1) ?? ''
  if (path[0] === 'body' && /Usdc$|usdcAmount/.test(name)) return /human USDC/i
  if (/Bps$/.test(name)) return /basis points|bps/i
  if (/Usdc$|^(cap|used|available|initialAllocation|maxAllocation|totalAssets|idleAssets)$/.test(name))
    return /base units/
  if (/^(createdAt|openedAt|updatedAt|blockTimestamp|serverTime|suggestedDeadline)$/.test(name)) return /Unix seconds/
  if (/Seconds$|^evaluationPeriod$/.test(name)) return /seconds/i
  if (/^(priceUsd|displayUsd)$/.test(name)) return /dollar|price/i
  return undefined
}

const resolve = ({ $ref, ...schema }: Schema): Schema =>
  $ref ? { ...document.components.schemas[$ref.split('/').at(-1)], ...schema } : schema

/** Yields every property at any depth, with its path. */
function* leavesOf(given: Schema, path: string[] = []): Generator<[string[], Schema]> {
  const schema = resolve(given)
  for (const inner of schema.anyOf ?? schema.allOf ?? []) yield* leavesOf(inner, path)
  for (const [name, inner] of Object.entries<Schema>(schema.properties ?? {})) {
    const at = [...path, name]
    const resolved = resolve(inner)
    if (resolved.type !== 'object' && resolved.type !== 'array') yield [at, resolved]
    yield* leavesOf(inner, at)
  }
  if (schema.items) yield* leavesOf(schema.items, [...path, '[]'])
  if (typeof schema.additionalProperties === 'object') yield* leavesOf(schema.additionalProperties, [...path, '*'])
}
