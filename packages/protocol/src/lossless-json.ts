const STRING = /"(?:[^"\\]|\\.)*"/g
const STRING_OR_SPACE = /"(?:[^"\\]|\\.)*"|\s+/g

/**
 * Returns the value that a JSON text encodes; undefined if it encodes none, or if writing the value again gives another
 * text, apart from spaces and escapes: the text has a number with more digits than a double keeps, an exponent, or a
 * field twice.
 */
export function losslessJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    const normal = text.replace(STRING_OR_SPACE, token => (token.startsWith('"') ? normalString(token) : ''))
    return JSON.stringify(value).replace(STRING, normalString) === normal ? value : undefined
  } catch {
    return undefined
  }
}

const normalString = (token: string) => JSON.stringify(JSON.parse(token))
