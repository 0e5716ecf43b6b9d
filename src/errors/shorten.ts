const MAX_ECHO = 48
/** The protocol asks for the URI of a resource that does not exist as it was sent. */
export const MAX_URI = 256

/**
 * Returns a text of the caller for an error: at most `max` characters of it, cut between code points, and well-formed. A caller
 * need not read again what it sent.
 */
export function shorten(text: string, max = MAX_ECHO): string {
  if (text.length <= max) return text.toWellFormed()
  const end = isHighSurrogate(text.charCodeAt(max - 1)) ? max - 1 : max
  return `${text.slice(0, end).toWellFormed()}… (${text.length} characters)`
}

const isHighSurrogate = (codeUnit: number) => codeUnit >= 0xd800 && codeUnit <= 0xdbff

/** Facts that the service writes itself. */
const WRITTEN_HERE = ['problem', 'reason']
/** Longer than a hash. */
const MAX_FACT = 80

const shortenFact = (value: string) => (value.length > MAX_FACT ? shorten(value) : value.toWellFormed())

/** Returns facts with the texts of the caller shortened. */
export const shortenFacts = <F extends Record<string, unknown>>(facts: F): F =>
  Object.fromEntries(
    Object.entries(facts).map(([name, value]) => [
      name,
      typeof value === 'string' && !WRITTEN_HERE.includes(name) ? shortenFact(value) : value,
    ]),
  ) as F
