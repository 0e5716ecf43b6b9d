import { losslessJson } from './lossless-json.ts'

/** The part of a JSON Schema that decides what a value may be converted to. */
export type InputSchema = {
  type?: string | string[]
  enum?: readonly unknown[]
  anyOf?: readonly InputSchema[]
  properties?: Readonly<Record<string, InputSchema>>
  required?: readonly string[]
  additionalProperties?: boolean | InputSchema
  items?: InputSchema
  $ref?: string
  $defs?: Readonly<Record<string, InputSchema>>
  /** A text that stands for a list: its items separated by commas, or as JSON. */
  'x-list'?: 'comma' | 'json' | undefined
  /** In this optional field, absence allows more than an empty list would: it is refused instead. */
  'x-keeps-empty'?: boolean
  minimum?: number
  minItems?: number
  pattern?: string
}

/** A double keeps every decimal of at most this many digits. */
const MAX_DECIMAL_DIGITS = 15

/**
 * Returns the input of a tool as its JSON Schema wants it, because models write numbers as texts, texts as numbers and
 * lists as JSON. A value is converted only if converting it back gives the same one: no unsafe integer, no exponent, no
 * fraction in place of an integer. Hosts with strict schemas make models fill every field, so an optional field is
 * absent if it is null, an empty text, or an empty list or a zero that its schema refuses. Everything else stays as it
 * was sent, so that the schema refuses it.
 */
export function losslessInput(given: unknown, root: InputSchema): unknown {
  const resolved = ({ $ref, ...rest }: InputSchema): InputSchema =>
    $ref === undefined ? rest : { ...root.$defs?.[$ref.slice($ref.lastIndexOf('/') + 1)], ...rest }

  const branchesOf = (schema: InputSchema): InputSchema[] =>
    (schema.anyOf ?? [schema]).map(branch => resolved({ ...branch, 'x-list': branch['x-list'] ?? schema['x-list'] }))

  function convert(value: unknown, schema: InputSchema): unknown {
    const branches = branchesOf(resolved(schema))
    const own = branches.find(branch => typesOf(branch).some(type => isOfType(value, type)))
    if (own) return convertInside(value, own)
    for (const branch of branches)
      for (const type of typesOf(branch)) {
        const converted = toType(value, type, branch)
        if (converted !== undefined) return convertInside(converted, branch)
      }
    return value
  }

  function convertInside(value: unknown, schema: InputSchema): unknown {
    if (Array.isArray(value)) return schema.items ? value.map(item => convert(item, schema.items ?? {})) : value
    return isRecord(value) ? convertFields(value, schema) : value
  }

  function convertFields(fields: Record<string, unknown>, schema: InputSchema): Record<string, unknown> {
    const { properties = {}, required = [], additionalProperties } = schema
    const converted = Object.entries(fields).flatMap(([name, value]) => {
      const known = Object.hasOwn(properties, name) ? properties[name] : undefined
      if (known && !required.includes(name) && isAbsent(value, known)) return []
      const field = known ?? (typeof additionalProperties === 'object' ? additionalProperties : {})
      return [[name, convert(value, field)]]
    })
    return Object.fromEntries(converted)
  }

  const isAbsent = (value: unknown, schema: InputSchema) =>
    value === '' ||
    (isEmpty(value) &&
      !(Array.isArray(value) && resolved(schema)['x-keeps-empty']) &&
      !branchesOf(resolved(schema)).some(branch => accepts(branch, convert(value, schema))))

  return convert(given, root)
}

const isEmpty = (value: unknown) =>
  value === null ||
  Object.is(value, 0) ||
  (Array.isArray(value) ? value.length === 0 : typeof value !== 'object' && /^(0+(\.0+)?|\[\])$/.test(`${value}`))

/** Tells whether a schema accepts an empty value: a list, a number, a text or null. */
function accepts(schema: InputSchema, value: unknown): boolean {
  if (value === null) return typesOf(schema).includes('null')
  if (!typesOf(schema).some(type => isOfType(value, type)) || schema.enum?.includes(value) === false) return false
  if (Array.isArray(value)) return schema.minItems === undefined || schema.minItems === 0
  if (typeof value === 'number') return schema.minimum === undefined || value >= schema.minimum
  return typeof value !== 'string' || (schema['x-list'] === undefined && new RegExp(schema.pattern ?? '').test(value))
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the types that a schema names; `any` if it names none. */
function typesOf({ type, enum: values, anyOf }: InputSchema): readonly string[] {
  if (anyOf !== undefined) return ['any']
  return [type ?? (values ? [...new Set(values.map(value => typeof value))] : 'any')].flat()
}

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case 'any':
      return true
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isRecord(value)
    case 'integer':
      return typeof value === 'number'
    default:
      return typeof value === type
  }
}

/** Returns a value as another type; undefined if it cannot be converted without loss. */
function toType(value: unknown, type: string, schema: InputSchema): unknown {
  if (type === 'string') return toText(value, schema)
  if (typeof value !== 'string') return undefined
  switch (type) {
    case 'integer':
    case 'number':
      return toNumber(value)
    case 'boolean':
      return value === 'true' || value === 'false' ? value === 'true' : undefined
    default: {
      const parsed = losslessJson(value)
      return isOfType(parsed, type) ? parsed : undefined
    }
  }
}

function toText(value: unknown, { enum: values, 'x-list': list }: InputSchema): string | undefined {
  if (typeof value === 'boolean') return values?.includes(`${value}`) ? `${value}` : undefined
  if (typeof value === 'number') return isExact(value) ? `${value}` : undefined
  if (!Array.isArray(value) || value.length === 0) return undefined
  if (list === 'json') return JSON.stringify(value)
  const isListOfNames = value.every(item => typeof item === 'string' && item !== '' && !item.includes(','))
  return list === 'comma' && isListOfNames ? value.join(',') : undefined
}

function toNumber(text: string): number | undefined {
  const number = Number(text)
  return isExact(number) && `${number}` === text ? number : undefined
}

/**
 * Tells whether the digits of a number are the ones that were sent: no unsafe integer, no exponent and no negative
 * zero.
 */
function isExact(number: number): boolean {
  if (Object.is(number, -0)) return false
  if (Number.isInteger(number)) return Number.isSafeInteger(number)
  const text = `${number}`
  return /^-?\d+\.\d+$/.test(text) && text.replace(/^-?0*\.?0*|\./g, '').length <= MAX_DECIMAL_DIGITS
}
