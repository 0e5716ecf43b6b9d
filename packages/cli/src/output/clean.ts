const CONTROLS = /[\p{Cc}\p{Cf}\u2028\u2029]/gu

/**
 * Returns a text on one line, without characters that move the cursor, clear the screen or change the order of letters: texts
 * of the service and of strangers reach the terminal.
 */
export const clean = (text: string): string => text.replace(CONTROLS, ' ')

/** The same for a text whose line ends are our own. */
export const cleanLines = (text: string): string => text.split('\n').map(clean).join('\n')

/** Returns JSON without such characters: they are escaped, so the data stay the same. Line ends only indent. */
export const printableJson = (value: unknown, indent?: number): string =>
  JSON.stringify(value, null, indent).replace(CONTROLS, character =>
    character === '\n' ? character : escaped(character),
  )

const escaped = (character: string) =>
  Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('')
