/** A piece of a text: plain characters, or one invisible character by its code point. */
export type TextPart = { kind: 'text'; text: string } | { kind: 'invisible'; codePoint: string }

/** Controls, separators, bidirectional controls and other characters that change how a text looks without being seen. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/u

/** Splits a stranger's text, so that characters which hide or reorder others can be shown. */
export function toVisibleParts(text: string): TextPart[] {
  const parts: TextPart[] = []
  for (const character of text) {
    const last = parts.at(-1)
    if (INVISIBLE.test(character)) {
      const hex = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
      parts.push({ kind: 'invisible', codePoint: `U+${hex}` })
    } else if (last?.kind === 'text') last.text += character
    else parts.push({ kind: 'text', text: character })
  }
  return parts
}
