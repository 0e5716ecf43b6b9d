// Characters that start a formula in a spreadsheet, including their full-width forms.
const FORMULA = '=+\\-@\\uFF1D\\uFF0B\\uFF0D\\uFF20'
const FORMULA_START = new RegExp(`^[${FORMULA}\\t\\r\\n]`)
/** Where another separator than the comma, by which some locales read the same file, starts a cell with a formula. */
const INNER_FORMULA = new RegExp(`([;|]|(?<=[^])\\t)(\\s*)(?=[${FORMULA}])`, 'g')
const NUMBER = /^-?\d+$/

/**
 * Returns a line of RFC 4180 CSV without its end; null is an empty cell. Text that a spreadsheet would run as a formula
 * gets an apostrophe, because third parties choose it.
 */
export const csvLine = (cells: readonly unknown[]): string => cells.map(cellOf).join(',')

function cellOf(value: unknown): string {
  const text = `${value ?? ''}`
  if (NUMBER.test(text)) return text
  const inert = text.replace(INNER_FORMULA, "$1$2'").replace(FORMULA_START, "'$&")
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert
}
