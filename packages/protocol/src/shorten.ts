import { showUnseen } from './unseen-text.ts'

const MAX_ECHO = 48

/**
 * Returns a text of the caller for an error: at most `max` characters of it, cut between code points, and
 * with the names of unseen characters in their place. A caller need not read again what it sent.
 */
export function shorten(text: string, max = MAX_ECHO): string {
  if (text.length <= max) return showUnseen(text)
  const end = isHighSurrogate(text.charCodeAt(max - 1)) ? max - 1 : max
  return `${showUnseen(text.slice(0, end))}… (${text.length} characters)`
}

const isHighSurrogate = (codeUnit: number) => codeUnit >= 0xd800 && codeUnit <= 0xdbff
