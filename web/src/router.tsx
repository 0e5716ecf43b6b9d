import type { RefObject } from 'preact'
import { useLayoutEffect } from 'preact/hooks'
import { createStore, useStore } from './data/store.ts'

const place = createStore(window.location.pathname + window.location.search)

/** Returns the path and query of the page, and renders again on navigation. */
export const usePlace = (): URL => new URL(useStore(place), window.location.origin)

/** Goes to a page without loading it from the server. A page with another path begins at its top. */
export function navigate(path: string, { replace = false } = {}): void {
  const isOther = pathOf(path) !== pathOf(place.get())
  keepOffset()
  if (replace) window.history.replaceState(null, '', path)
  else window.history.pushState(null, '', path)
  if (isOther) window.scrollTo(0, 0)
  arrive(path)
}

const pathOf = (path: string) => path.split('?')[0]

function arrive(path: string) {
  if (pathOf(path) !== pathOf(place.get())) focus = 'due'
  place.set(path)
}

/** Whether the heading of the page gets the focus: not on the page that was loaded, because nobody went there yet. */
let focus: 'none' | 'due' | 'given' = 'none'

/**
 * Gives the focus to a heading after a navigation, and again if it took the place of the heading that had it, as the
 * name of an agent does once it is read.
 */
export function useHeadingFocus(heading: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    const isLost = document.activeElement === document.body
    if (focus === 'due' || (focus === 'given' && isLost)) heading.current?.focus({ preventScroll: true })
    if (focus === 'due') focus = 'given'
  }, [])
}

/** Moves the focus of an element that is removed or disabled to the part of the page around it. */
function keepFocus() {
  let path: Element[] = []
  document.addEventListener('focusin', ({ target }) => {
    path = []
    for (let each = target as Element | null; each; each = each.parentElement) path.push(each)
  })
  const observer = new MutationObserver(() => {
    const [last, ...around] = path
    if (document.activeElement !== document.body || !last || (last.isConnected && !last.matches(':disabled'))) return
    const next = around.find(each => each.isConnected && each.matches('section, dialog, main'))
    if (!(next instanceof HTMLElement)) return
    next.tabIndex = -1
    next.focus({ preventScroll: true })
  })
  observer.observe(document.body, { subtree: true, childList: true, attributeFilter: ['disabled'] })
}

const SETTLE_MS = 100
const MAX_RESTORE_MS = 3_000
let settling: ReturnType<typeof setTimeout> | undefined

/** Notes in the history how far the page is scrolled. */
function keepOffset() {
  clearTimeout(settling)
  window.history.replaceState({ offset: window.scrollY }, '')
}

/** Scrolls to where the page was left, as soon as it is long enough for that and unless the reader scrolls first. */
function restoreOffset() {
  clearTimeout(settling)
  // The browser goes to the part of the page that a link names.
  if (window.history.state === null && window.location.hash !== '') return
  const { offset = 0 } = (window.history.state ?? {}) as { offset?: number }
  const [ended, until] = [new AbortController(), Date.now() + MAX_RESTORE_MS]
  for (const input of ['wheel', 'touchstart', 'pointerdown', 'keydown', 'popstate'])
    window.addEventListener(input, () => ended.abort(), { signal: ended.signal, passive: true })
  function step() {
    if (ended.signal.aborted) return
    window.scrollTo(0, offset)
    if (Math.abs(window.scrollY - offset) > 1 && Date.now() < until) requestAnimationFrame(step)
    else ended.abort()
  }
  step()
}

const isPage = (path: string) => path === '/' || path === '/app' || path.startsWith('/app/')

/** Follows links between pages in place. Links with a modifier key, a target or another host load as usual. */
export function startRouter(): void {
  window.history.scrollRestoration = 'manual'
  restoreOffset()
  keepFocus()
  window.addEventListener('popstate', () => {
    arrive(window.location.pathname + window.location.search)
    restoreOffset()
  })
  window.addEventListener('scroll', () => {
    clearTimeout(settling)
    settling = setTimeout(keepOffset, SETTLE_MS)
  })
  document.addEventListener('click', event => {
    if (event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link === null || link.target !== '' || link.hasAttribute('download')) return
    const { origin, pathname, search, hash } = link
    if (origin !== window.location.origin || !isPage(pathname) || hash !== '') return
    event.preventDefault()
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
