type Kind = 'localStorage' | 'sessionStorage'

/** Returns a stored text; undefined if there is none or storage is blocked. */
export function readText(kind: Kind, name: string): string | undefined {
  try {
    return window[kind].getItem(name) ?? undefined
  } catch {
    return undefined
  }
}

/** Stores a text, or deletes it. Where storage is blocked, it is lost with the page. */
export function writeText(kind: Kind, name: string, text: string | undefined): void {
  try {
    if (text === undefined) window[kind].removeItem(name)
    else window[kind].setItem(name, text)
  } catch {
    // Blocked storage must not stop a transaction.
  }
}
