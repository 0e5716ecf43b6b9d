import { csvFormatRow } from 'd3-dsv'

// Characters that start a formula in a spreadsheet, including their full-width forms.
const FORMULA_START = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/
const NUMBER = /^-?\d+$/

/**
 * Returns a table as RFC 4180 CSV with a header row. Amounts keep the digits of the JSON; null is an empty cell. Text
 * that a spreadsheet would run as a formula is prefixed with an apostrophe, because third parties choose the symbols.
 */
export function csvOf(columns: readonly string[], rows: readonly Record<string, unknown>[]): string {
  const lines = [columns, ...rows.map(row => columns.map(column => cell(row[column])))]
  return `${lines.map(line => csvFormatRow([...line])).join('\r\n')}\r\n`
}

function cell(value: unknown): string {
  const text = value === null || value === undefined ? '' : `${value}`
  return FORMULA_START.test(text) && !NUMBER.test(text) ? `'${text}` : text
}
