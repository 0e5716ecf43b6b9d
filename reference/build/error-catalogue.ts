import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ErrorRow, root } from './service-description.ts'

export type ErrorEntry = {
  code: string
  status: number
  /** The message, with `{name}` for each fact. */
  sentence: string
  remedy: string
  details: { name: string; type: string }[]
  retryable: boolean
  retryAfterSeconds: number | undefined
}

/** Returns the catalogue for readers, ordered by status and code. */
export function errorEntries(errorRows: Record<string, ErrorRow>): ErrorEntry[] {
  const types = factTypes()
  const entries = Object.entries(errorRows).map(([code, row]) => ({
    code,
    status: row.status,
    sentence: sentenceOf(row),
    remedy: row.remedy,
    details: types.get(code) ?? [],
    retryable: row.retryable === true,
    retryAfterSeconds: row.retryAfterSeconds,
  }))
  return entries.sort((a, b) => a.status - b.status || a.code.localeCompare(b.code))
}

/** Returns a sentence with the names of its facts in place of their values. */
function sentenceOf({ sentence }: ErrorRow): string {
  const facts = new Proxy({}, { get: (_, name) => (typeof name === 'string' ? placeholder(name) : undefined) })
  return sentence(facts)
}

/** A value that shows as its name in a text, whatever method the sentence calls on it. */
function placeholder(name: string): unknown {
  const text = `{${name}}`
  return new Proxy(() => text, {
    get: (_, property) =>
      property === Symbol.toPrimitive || property === 'toString' ? () => text : () => placeholder(name),
  })
}

/** Reads the types of the facts from the sources of the catalogue: `CODE: row<{ name: type }>(`. */
function factTypes(): Map<string, ErrorEntry['details']> {
  const found = new Map<string, ErrorEntry['details']>()
  for (const file of globSync('src/errors/*-errors.ts', { cwd: root })) {
    const source = readFileSync(join(root, file), 'utf8')
    const aliases = new Map(
      [...source.matchAll(/^type (\w+) = (\{[\s\S]*?\})$/gm)].map(([, name, type]) => [name, type]),
    )
    for (const [, code = '', type = ''] of source.matchAll(/^ {2}(\w+): \w+<([\s\S]*?)>\(/gm))
      found.set(code, fieldsOf(aliases.get(type) ?? type))
  }
  return found
}

/**
 * Returns the fields of an object type as JSON has them: integers beyond 2^53 are digit strings, undefined is absent.
 */
function fieldsOf(type: string): ErrorEntry['details'] {
  const fields: ErrorEntry['details'] = []
  let depth = 0
  let start = 0
  const inner = type.trim().slice(1, -1)
  const add = (text: string) => {
    const [, name, , value] = /^\s*(?:\/\/.*\n\s*)*(\w+)(\??):\s*([\s\S]+?)\s*$/.exec(text) ?? []
    if (name === undefined || value === undefined) return
    fields.push({ name, type: jsonType(value.replaceAll(/\s+/g, ' ')) })
  }
  for (const [index, letter] of [...`${inner};`].entries()) {
    if ('{<['.includes(letter)) depth++
    if ('}>]'.includes(letter)) depth--
    if (depth > 0 || !(letter === ';' || letter === '\n')) continue
    add(inner.slice(start, index))
    start = index + 1
  }
  return fields
}

const jsonType = (type: string): string =>
  type
    .replace(/ \| undefined/g, '')
    .replace(/readonly /g, '')
    .replace(/\bbigint\b/g, 'digits')
    .replace(/\bAddress\b/g, 'address')
    .replace(/\bHex\b/g, 'hex')
