/**
 * Characters that change a text without being seen, or that no font shows: controls, line and paragraph separators,
 * format characters with the bidirectional controls and the tags, fillers, variation selectors, surrogates, private
 * use, noncharacters and unassigned code points. The blank Braille pattern is a symbol by its category, so it is named.
 */
const UNSEEN = '[\\p{C}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800]'

// Emoji need some of them: a selector of the colored form, joiners between emoji, and tags in the flags of three
// countries. Code points that are only reserved for emoji are none.
const EMOJI = `(?!${UNSEEN})\\p{Extended_Pictographic}(?:\\p{Emoji_Modifier}\\uFE0F?|[\\uFE0E\\uFE0F])?`
const FLAG_TAGS = ['gbeng', 'gbsct', 'gbwls'].map(tagsOf).join('|')
const SEEN = `\\u{1F3F4}(?:${FLAG_TAGS})|${EMOJI}(?:\\u200D${EMOJI})*|[0-9#*]\\uFE0F\\u20E3`

function tagsOf(country: string): string {
  const tags = [...country].map(letter => `\\u{${(0xe0000 + letter.charCodeAt(0)).toString(16)}}`)
  return `${tags.join('')}\\u{e007f}`
}

/** An emoji, or in the group an unseen character. */
const EMOJI_OR_UNSEEN = new RegExp(`${SEEN}|(${UNSEEN})`, 'gu')
/** A letter, a digit, a sign or an emoji, of those that are seen. */
const VISIBLE = new RegExp(`(?!${UNSEEN})[\\p{L}\\p{N}\\p{P}\\p{S}]`, 'u')
/** Most texts are of these characters alone. */
const PLAIN = /^[ -~]*$/

/** A piece of a text: one unseen character, or the characters between them. */
export type TextPart = { kind: 'text' | 'unseen'; text: string }

/** Splits a text at its unseen characters. */
export function partsOfText(text: string): TextPart[] {
  if (PLAIN.test(text)) return text === '' ? [] : [{ kind: 'text', text }]
  const parts: TextPart[] = []
  let from = 0
  for (const { 1: unseen, index } of text.matchAll(EMOJI_OR_UNSEEN)) {
    if (unseen === undefined) continue
    if (index > from) parts.push({ kind: 'text', text: text.slice(from, index) })
    parts.push({ kind: 'unseen', text: unseen })
    from = index + unseen.length
  }
  if (from < text.length) parts.push({ kind: 'text', text: text.slice(from) })
  return parts
}

/** Returns the name of a character, such as `U+202E`. */
export const codePointName = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`

/** Returns the first unseen character of a text; undefined if it has none. */
export const firstUnseen = (text: string): string | undefined =>
  partsOfText(text).find(({ kind }) => kind === 'unseen')?.text

/** Tells whether a text has anything to see. Spaces and marks alone are nothing. */
export const hasVisible = (text: string): boolean => VISIBLE.test(text)

const replaced = (text: string, replace: (character: string) => string): string =>
  PLAIN.test(text)
    ? text
    : partsOfText(text)
        .map(part => (part.kind === 'unseen' ? replace(part.text) : part.text))
        .join('')

/** Returns a text with the name of each unseen character in its place, such as `[U+202E]`. */
export const showUnseen = (text: string): string => replaced(text, character => `[${codePointName(character)}]`)

/**
 * Returns a JSON text with unseen characters escaped, so that it encodes the same. Line ends stay: outside of strings
 * they indent.
 */
export const escapeUnseenInJson = (json: string): string =>
  replaced(json, character => (character === '\n' ? character : escaped(character)))

const escaped = (character: string) =>
  Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('')
