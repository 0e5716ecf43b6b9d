import { createStore, useStore } from './data/store.ts'

const place = createStore(window.location.pathname + window.location.search)

/** Returns the path and query of the page, and renders again on navigation. */
export const usePlace = (): URL => new URL(useStore(place), window.location.origin)

/** Goes to a page without loading it from the server. */
export function navigate(path: string, { replace = false } = {}): void {
  if (replace) window.history.replaceState(null, '', path)
  else window.history.pushState(null, '', path)
  place.set(path)
}

const isPage = (path: string) => path === '/' || path === '/app' || path.startsWith('/app/')

/** Follows links between pages in place. Links with a modifier key, a target or another host load as usual. */
export function startRouter(): void {
  window.addEventListener('popstate', () => place.set(window.location.pathname + window.location.search))
  document.addEventListener('click', event => {
    if (event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link === null || link.target !== '' || link.hasAttribute('download')) return
    const { origin, pathname, search, hash } = link
    if (origin !== window.location.origin || !isPage(pathname) || hash !== '') return
    event.preventDefault()
    if (pathname !== window.location.pathname) window.scrollTo(0, 0)
    if (pathname + search !== place.get()) navigate(pathname + search)
  })
}

/** Returns the named parts of a path if it matches a pattern such as `/app/agents/:id`. */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
  const [expected, given] = [pattern.split('/'), path.replace(/\/$/, '').split('/')]
  if (expected.length !== given.length) return undefined
  const params: Record<string, string> = {}
  for (const [index, part] of expected.entries()) {
    const value = given[index] ?? ''
    if (part.startsWith(':')) params[part.slice(1)] = safelyDecoded(value)
    else if (part !== value) return undefined
  }
  return params
}

function safelyDecoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
