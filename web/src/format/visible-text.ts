import { codePointName, partsOfText } from '@agent-trading-service/protocol/unseen-text'

/** A piece of a text: plain characters, or one invisible character by its code point. */
export type TextPart = { kind: 'text'; text: string } | { kind: 'invisible'; codePoint: string }

/** Splits a stranger's text, so that characters which hide or reorder others can be shown. */
export const toVisibleParts = (text: string): TextPart[] =>
  partsOfText(text).map(part =>
    part.kind === 'text'
      ? { kind: 'text', text: part.text }
      : { kind: 'invisible', codePoint: codePointName(part.text) },
  )
