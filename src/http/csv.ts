import { csvLine } from '@agent-trading-service/protocol/csv-line'

/** Returns a table as CSV with a header row. Amounts keep the digits of the JSON. */
export function csvOf(columns: readonly string[], rows: readonly Record<string, unknown>[]): string {
  const lines = [columns, ...rows.map(row => columns.map(column => row[column]))]
  return `${lines.map(csvLine).join('\r\n')}\r\n`
}
