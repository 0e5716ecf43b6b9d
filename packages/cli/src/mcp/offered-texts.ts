/** A tool in a text: a name of the service, a name with an underscore, or a word that the text marks as one. */
const NAMED = /\b(svc_\w*[a-z])\b|`(\w+)`|\b[Cc]all (\w+)|\b([a-z]+_[a-z_]+[a-z])\b/g

/** Returns the tools that a text names. `isTool` tells tools from other words. */
export const toolsNamedIn = (text: string, isTool: (name: string) => boolean): string[] =>
  [...text.matchAll(NAMED)]
    .map(([, ...names]) => names.find(name => name !== undefined) ?? '')
    .filter(name => name.startsWith('svc_') || isTool(name))

/** Returns a text without the sentences, and their parts after a semicolon, that name a tool which is not offered. */
export function onlyOffered(text: string, isTool: (name: string) => boolean, offered: ReadonlySet<string>): string {
  const parts = text.split(/(?<=[.;]) /)
  const kept = parts.filter(part => toolsNamedIn(part, isTool).every(name => offered.has(name)))
  return kept.join(' ').replace(/;$/, '.')
}
