import { readFileSync } from 'node:fs'
import { Failure } from './failure.ts'

/** Reads a file that people edit, without the byte order mark that some editors write. Throws `NOT_UTF8`. */
export const readTextFile = (path: string): string => decodeText(readFileSync(path), path)

/** Decodes text from a file or standard input. Throws `NOT_UTF8`, which names UTF-16. */
export function decodeText(bytes: Uint8Array, name: string): string {
  if (isUtf16(bytes)) throw notUtf8(name, 'is UTF-16')
  try {
    // Drops a byte order mark.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes)
  } catch {
    throw notUtf8(name, 'is not UTF-8 text')
  }
}

/** Text in UTF-16 starts with its byte order mark or has zero bytes, as `>` of Windows PowerShell writes it. */
function isUtf16([first, second, third, fourth]: Uint8Array): boolean {
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) return true
  return (first === 0) !== (second === 0) && (third === 0) === (first === 0) && (fourth === 0) === (second === 0)
}

const notUtf8 = (name: string, problem: string) =>
  new Failure('usage', `${name} ${problem}; UTF-8 is expected.`, {
    code: 'NOT_UTF8',
    remedy: 'Save it as UTF-8. In Windows PowerShell: Set-Content -Encoding utf8 instead of >.',
  })
