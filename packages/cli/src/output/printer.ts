import { exitCodes, type Failure } from '../failure.ts'
import { clean, cleanLines, printableJson } from './clean.ts'
import { type Json, renderTable, type TableOptions } from './table.ts'

export type OutputFormat = 'table' | 'json'

/** Where a command writes: results to stdout, everything else to stderr. */
export type Printer = ReturnType<typeof createPrinter>

export function createPrinter(format: OutputFormat, options: TableOptions = {}) {
  return {
    format,
    /** Prints the result of a command. */
    result(value: unknown): void {
      const plain = toJson(value)
      process.stdout.write(`${format === 'json' ? printableJson(plain, 2) : renderTable(plain, options)}\n`)
    },
    /** Prints one item of a stream: NDJSON, or one line for people. */
    item(value: unknown, text: string): void {
      process.stdout.write(`${format === 'json' ? printableJson(toJson(value)) : clean(text)}\n`)
    },
    /** Tells people what happens; silent where a program reads. */
    note(text: string): void {
      if (format === 'table') process.stderr.write(`${cleanLines(text)}\n`)
    },
    /** Prints a failure: a sentence with its remedy, or one line of JSON. */
    failure(failure: Failure): void {
      const { kind, message, facts, commandRemedy: remedy } = failure
      const exitCode = exitCodes[kind]
      if (format === 'json') {
        process.stderr.write(`${printableJson({ error: message, kind, exitCode, ...facts, remedy })}\n`)
        return
      }
      const code = facts.code ? ` [${facts.code}]` : ''
      const lines = [`ats: ${message}${code}`, remedy, facts.requestId && `Request id: ${facts.requestId}`]
      const present = lines.filter(line => line !== undefined && line !== '')
      process.stderr.write(`${present.map(line => clean(`${line}`)).join('\n')}\n`)
    },
  }
}

/** Returns a value as JSON has it: a bigint is a string of digits. */
export const toJson = (value: unknown): Json =>
  JSON.parse(JSON.stringify(value ?? null, (_, inner) => (typeof inner === 'bigint' ? `${inner}` : inner)))
