/** Returns the name of the command of a read: `listPositions` is `positions`. */
export const readCommandName = (id: string): string => kebab(id.replace(/^(get|list)/, ''))

/** Returns a name in camel case as words with hyphens. */
export const kebab = (name: string): string =>
  name
    .replace(/URI$/, 'Uri')
    .replace(/(?<=[a-z0-9])[A-Z]/g, '-$&')
    .toLowerCase()
