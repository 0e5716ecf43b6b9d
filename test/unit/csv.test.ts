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
  ['x;=1+1', "x;'=1+1"],
  [';=1+1', ";'=1+1"],
  ['x; @SUM(A1)', "x; '@SUM(A1)"],
  ['x;=cmd;+1', "x;'=cmd;'+1"],
  ['x\t=1', "x\t'=1"],
  ['x|=1', "x|'=1"],
  ['x;\uFF1D1', "x;'\uFF1D1"],
  ['a;b', 'a;b'],
])('CSV escapes %j so that no spreadsheet executes it', (value, expected) => {
  expect(csvOf(['cell'], [{ cell: value }])).toBe(`cell\r\n${expected}\r\n`)
})
