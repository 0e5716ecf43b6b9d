export type JsonToken = { kind: 'key' | 'string' | 'number' | 'literal' | 'plain'; text: string }

const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)|\b(true|false|null)\b/gi

/** Splits formatted JSON into tokens for highlighting. */
export function jsonTokens(text: string): JsonToken[] {
  const tokens: JsonToken[] = []
  let end = 0
  for (const match of text.matchAll(TOKENS)) {
    const [whole, quoted, colon, number] = match
    if (match.index > end) tokens.push({ kind: 'plain', text: text.slice(end, match.index) })
    end = match.index + whole.length
    if (quoted === undefined) tokens.push({ kind: number === undefined ? 'literal' : 'number', text: whole })
    else {
      tokens.push({ kind: colon === undefined ? 'string' : 'key', text: quoted })
      if (colon !== undefined) tokens.push({ kind: 'plain', text: colon })
    }
  }
  if (end < text.length) tokens.push({ kind: 'plain', text: text.slice(end) })
  return tokens
}
