import { csvFormatRow } from 'd3-dsv'

// What a spreadsheet takes for the begin of a formula, also in the forms that Asian keyboards write.
const FORMULA = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/
const NUMBER = /^-?\d+$/

/**
 * A table as RFC 4180 wants it, with a row of names first. Amounts are the digits of the JSON; null is empty. Text that
 * a spreadsheet would run as a formula gets an apostrophe before it: symbols are written by strangers.
 */
export function csvOf(columns: readonly string[], rows: readonly Record<string, unknown>[]): string {
  const lines = [columns, ...rows.map(row => columns.map(column => cell(row[column])))]
  return `${lines.map(line => csvFormatRow([...line])).join('\r\n')}\r\n`
}

function cell(value: unknown): string {
  const text = value === null || value === undefined ? '' : `${value}`
  return FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text
}
