import { codePointName, firstUnseen, hasVisible } from './unseen-text.ts'

/** The longest note of a trade, in UTF-16 code units. */
export const MAX_NOTE_LENGTH = 280

/** Returns what is wrong with a note of a trade; undefined if nothing is. */
export function findNoteProblem(note: string): string | undefined {
  if (note.length > MAX_NOTE_LENGTH) return `must be at most ${MAX_NOTE_LENGTH} characters`
  if (!note.isWellFormed()) return 'must be well-formed Unicode'
  const unseen = firstUnseen(note)
  if (unseen !== undefined)
    return `has ${codePointName(unseen)}; line breaks and other characters that are not seen are not accepted`
  return hasVisible(note) ? undefined : 'must have a visible character'
}
