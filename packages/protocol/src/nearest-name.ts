const MAX_LENGTH = 64

/**
 * Returns the name that a caller most likely meant: the same letters in another case, a few wrong ones, or its
 * beginning. Returns undefined if none is close.
 */
export function nearestName(given: string, names: readonly string[]): string | undefined {
  const text = given.trim().toLowerCase()
  if (text.length < 2 || text.length > MAX_LENGTH) return undefined
  const [nearest] = names
    .map(name => ({ name, edits: editDistance(text, name.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits)
  if (nearest && nearest.edits <= Math.ceil(text.length / 3)) return nearest.name
  return names.find(name => name.toLowerCase().startsWith(text))
}

/** Returns the question for a caller who misspelt a name; an empty text if there is none to suggest. */
export const didYouMean = (nearest: string | undefined): string =>
  nearest === undefined ? '' : ` Did you mean ${nearest}?`

/** Returns a text without its full stop, followed by that question if there is a name to suggest. */
export const withSuggestion = (text: string, nearest: string | undefined): string =>
  nearest === undefined ? text : `${text}.${didYouMean(nearest)}`

/** Returns the Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1]
    for (let j = 0; j < b.length; j++)
      next.push(Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, (row[j] ?? 0) + (letter === b[j] ? 0 : 1)))
    row = next
  }
  return row.at(-1) ?? 0
}
