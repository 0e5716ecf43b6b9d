import { expect, it } from 'vitest'
import { csvOf } from '../../src/http/csv.ts'

it.each([
  ['=HYPERLINK("http://evil")', '"\'=HYPERLINK(""http://evil"")"'],
  ['+1+1', "'+1+1"],
  ['-2+3', "'-2+3"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['\t=1', "'\t=1"],
  ['\r=1', '"\'\r=1"'],
  ['\uFF1D1', "'\uFF1D1"],
  ['-25', '-25'],
  ['0', '0'],
  ['A,B', '"A,B"'],
  ['A\nB', '"A\nB"'],
])('CSV escapes %j so that no spreadsheet executes it', (value, expected) => {
  expect(csvOf(['cell'], [{ cell: value }])).toBe(`cell\r\n${expected}\r\n`)
})
