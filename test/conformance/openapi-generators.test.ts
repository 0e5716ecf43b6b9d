import { beforeAll, describe, expect, it } from 'vitest'
import type { Body } from '../support/body.ts'
import { request } from '../support/surfaces.ts'

// What code generators of other languages need of the documents, so that CI needs none of them.

type Schema = Body
const METHODS = ['get', 'post', 'put']
const INT32_END = 2 ** 31

describe.each(['/openapi.json', '/openapi-3.0.json'])('%s', path => {
  let document: Body
  let schemas: [path: string, schema: Schema][]
  let operations: [path: string, operation: Body][]

  beforeAll(async () => {
    document = await (await request(path)).json()
    schemas = [...schemasOf(document)]
    operations = Object.entries<Body>(document.paths).flatMap(([path, item]) =>
      METHODS.flatMap(method => (item[method] ? [[`${method} ${path}`, item[method]] as [string, Body]] : [])),
    )
  })
  const where = (isWrong: (schema: Schema) => unknown) =>
    schemas.flatMap(([at, schema]) => (isWrong(schema) ? [at] : []))
  const resolve = (schema: Schema): Schema =>
    schema.$ref ? document.components.schemas[schema.$ref.split('/').at(-1)] : schema

  it('has no two parameters of an operation whose names differ in case and punctuation only', () => {
    for (const [operation, { parameters = [] }] of operations) {
      const names = parameters.map(({ name }: Body) => name.toLowerCase().replaceAll(/[^a-z0-9]/g, ''))
      expect(new Set(names).size, `${operation}: ${names}`).toBe(names.length)
    }
  })

  it('names the format of every integer: int32 below a maximum of 2^31, otherwise int64', () => {
    const formatOf = ({ maximum }: Schema) => (maximum < INT32_END ? 'int32' : 'int64')
    const integers = schemas.filter(([, { type }]) => [type].flat().includes('integer'))
    expect(integers.length).toBeGreaterThan(200)
    expect(integers.filter(([, schema]) => schema.format !== formatOf(schema)).map(([at]) => at)).toEqual([])
    expect(where(({ type, format }) => type === 'number' && format !== 'double')).toEqual([])
  })

  it('has unions of objects only where a property and a mapping tell their members apart', () => {
    expect(where(({ anyOf, allOf }) => anyOf ?? allOf)).toEqual([])
    const unions = schemas.filter(([, { oneOf }]) => oneOf)
    expect(unions.length).toBeGreaterThan(3)
    for (const [at, { oneOf, discriminator }] of unions) {
      const references = oneOf.map(({ $ref }: Schema) => $ref)
      expect(Object.values(discriminator.mapping), at).toEqual(references)
      for (const [value, reference] of Object.entries(discriminator.mapping)) {
        const member = resolve({ $ref: reference })
        expect(member.required).toContain(discriminator.propertyName)
        expect(member.properties[discriminator.propertyName].enum).toEqual([value])
      }
    }
  })

  it('says that responses may gain fields, which Go and Java clients of openapi-generator otherwise refuse', () => {
    const isOpen = ({ properties, additionalProperties }: Schema) => !properties || additionalProperties === true
    const closed = schemas.filter(([, schema]) => !isOpen(schema)).map(([at]) => at)
    // The specification closes the rules of a ladder.
    expect(closed.filter(at => !/ body|Input/.test(at))).toEqual(['ExitRule', 'PendingExit'])
  })

  it('has no objects as defaults', () => {
    expect(
      where(given => typeof given.default === 'object' && given.default !== null && !Array.isArray(given.default)),
    ).toEqual([])
  })

  it('has patterns without flags, which every example and default matches', () => {
    const patterns = schemas.filter(([, { pattern }]) => pattern !== undefined)
    expect(patterns.length).toBeGreaterThan(100)
    for (const [at, { pattern, example, default: fallback }] of patterns) {
      expect(pattern, at).toMatch(/^\^.*\$$/)
      expect(pattern, at).not.toMatch(/\\p|\(\?/)
      for (const value of [example, fallback])
        if (value !== undefined) expect(value, at).toMatch(new RegExp(pattern, 'u'))
    }
  })

  it('describes itself in a few sentences, and leaves the rest to the guides', () => {
    expect(document.info.description.length).toBeLessThan(1_000)
    expect(document.info.description).toContain('/docs/guides/signing')
  })

  it('has as examples of the parameters of an operation one request that succeeded, and no placeholder', () => {
    for (const [operation, { parameters = [] }] of operations) {
      const examples = parameters.flatMap(({ name, schema, example = schema.example }: Body) =>
        example === undefined ? [] : [[name, `${example}`]],
      )
      const named = Object.fromEntries(examples)
      for (const { name, required } of parameters) if (required) expect(named, operation).toHaveProperty(name)
      for (const value of Object.values(named)) expect(value, operation).not.toMatch(/%7B|[{}<>]/)
      for (const [one, other] of EXCLUSIVE)
        expect(one in named && other in named, `${operation}: ${one}, ${other}`).toBe(false)
    }
  })

  it('sends Min-Block as 0 by default, which every read accepts', async () => {
    const headers = operations.flatMap(([, { parameters = [] }]) =>
      parameters.filter(({ name }: Body) => name === 'min-block'),
    )
    expect(headers.length).toBeGreaterThan(50)
    for (const { example, schema } of headers) expect(example ?? schema.default).toBe('0')
    expect((await request('/vaults', { headers: { 'min-block': '0' } })).status).toBe(200)
  })
})

/** Parameters that are refused together. */
const EXCLUSIVE: [string, string][] = [
  ['exits', 'stopLossPercent'],
  ['exits', 'takeProfitPercent'],
  ['usdcAmount', 'maxLossUsdc'],
]

it('/openapi-3.0.json says the same as /openapi.json, with nullable in place of null as a type', async () => {
  const [newer, older] = await Promise.all(
    ['/openapi.json', '/openapi-3.0.json'].map(async path => (await request(path)).json() as Promise<Body>),
  )
  expect(older?.openapi).toBe('3.0.3')
  expect(Object.keys(older?.paths)).toEqual(Object.keys(newer?.paths))
  expect(Object.keys(older?.components.schemas)).toEqual(Object.keys(newer?.components.schemas))
  const nullable = [...schemasOf(newer)].filter(([, { type }]) => Array.isArray(type)).map(([at]) => at)
  const inOlder = new Map(schemasOf(older))
  expect(nullable.length).toBeGreaterThan(100)
  for (const at of nullable) expect(inOlder.get(at), at).toMatchObject({ nullable: true, type: expect.any(String) })
  for (const [at, { type, const: value, exclusiveMinimum = true }] of inOlder) {
    expect([typeof type, value, typeof exclusiveMinimum], at).toEqual([
      expect.stringMatching(/^(string|undefined)$/),
      undefined,
      'boolean',
    ])
  }
})

/** Yields every schema of a document, with its place. */
function* schemasOf(document: Body): Generator<[path: string, schema: Schema]> {
  for (const [name, schema] of Object.entries<Schema>(document.components.schemas)) yield* within(schema, name)
  for (const [path, item] of Object.entries<Body>(document.paths))
    for (const [method, { parameters = [], requestBody, responses }] of Object.entries<Body>(item)) {
      const at = `${method} ${path}`
      for (const { name, schema } of parameters) yield* within(schema, `${at} ${name}`)
      for (const { schema } of Object.values<Body>(requestBody?.content ?? {})) yield* within(schema, `${at} body`)
      for (const [status, { content = {} }] of Object.entries<Body>(responses))
        for (const { schema } of Object.values<Body>(content)) yield* within(schema, `${at} ${status}`)
    }
}

function* within(schema: Schema, at: string): Generator<[path: string, schema: Schema]> {
  yield [at, schema]
  for (const [name, inner] of Object.entries<Schema>(schema.properties ?? {})) yield* within(inner, `${at}.${name}`)
  for (const inner of [schema.anyOf, schema.oneOf, schema.allOf].flat()) if (inner) yield* within(inner, `${at}|`)
  if (schema.items) yield* within(schema.items, `${at}[]`)
  if (typeof schema.additionalProperties === 'object') yield* within(schema.additionalProperties, `${at}.*`)
}

it('/openapi-3.0.json has one type of error for each operation, which a generator for Rust needs', async () => {
  const { paths }: Body = await (await request('/openapi-3.0.json')).json()
  const several = Object.entries<Body>(paths).flatMap(([path, operations]) =>
    Object.entries<Body>(operations).flatMap(([method, { responses }]) => {
      const errors = Object.entries<Body>(responses).filter(([status]) => !status.startsWith('2'))
      const types = new Set(errors.map(([, { content }]) => JSON.stringify(content?.['application/json']?.schema)))
      return types.size > 1 ? [`${method} ${path}: ${[...types]}`] : []
    }),
  )
  expect(several).toEqual([])
  expect(Object.keys(paths).length).toBeGreaterThan(50)
})
