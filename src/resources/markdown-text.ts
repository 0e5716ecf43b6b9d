// Characters with a meaning in Markdown or in HTML inside it. Line ends become spaces, so that table rows stay intact.
const SPECIAL = /[\\`*_{}[\]()#+\-.!|<>~&:]/g
const LINE_END = /[\r\n\u2028\u2029]+/g

/** Returns text that Markdown shows as it is. */
export const escaped = (text: string): string => text.replace(LINE_END, ' ').replace(SPECIAL, '\\$&')
