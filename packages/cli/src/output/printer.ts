import { quoteText } from '@agent-trading-service/protocol/message-terms'
import { shorten } from '@agent-trading-service/protocol/shorten'
import { exitCodes, type Failure } from '../failure.ts'
import { clean, cleanLines, printableJson } from './clean.ts'
import { type Json, renderTable, type TableOptions } from './table.ts'

/** How much is printed of a sentence of the service. */
const MAX_SAID = 400

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
      const { isSaid, isRemedySaid, code, requestId, ...others } = facts
      const exitCode = exitCodes[kind]
      if (format === 'json') {
        const body = { error: message, kind, exitCode, code, requestId, ...others, remedy }
        process.stderr.write(`${printableJson(body)}\n`)
        return
      }
      // A service that was taken over must not give advice in our name.
      const said = isRemedySaid && remedy ? `The service says: ${quoteText(remedy, MAX_SAID)}` : remedy
      const sentence = isSaid ? shorten(message, MAX_SAID) : message
      const lines = [
        `ats: ${sentence}${code ? ` [${shorten(code)}]` : ''}`,
        said,
        requestId && `Request id: ${shorten(requestId)}`,
      ]
      const present = lines.filter(line => line !== undefined && line !== '')
      process.stderr.write(`${present.map(line => clean(`${line}`)).join('\n')}\n`)
    },
  }
}

/** Returns a value as JSON has it: a bigint is a string of digits. */
export const toJson = (value: unknown): Json =>
  JSON.parse(JSON.stringify(value ?? null, (_, inner) => (typeof inner === 'bigint' ? `${inner}` : inner)))
