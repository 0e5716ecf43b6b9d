import type { SearchEntry } from '../search-entry.ts'

const MAX_RESULTS = 12
const EXCERPT_CHARACTERS = 120
/** What people look for comes first; an error or a field only if its name is what was typed. */
const firstKinds = ['operation', 'guide']

/** Opens the search with its button, `/` or Ctrl+K, and moves through the results with the arrow keys. */
export function enableSearch(): void {
  const dialog = document.querySelector<HTMLDialogElement>('dialog.search')
  const input = dialog?.querySelector('input')
  const list = dialog?.querySelector('ul')
  const status = dialog?.querySelector('.search-status')
  if (!dialog || !input || !list || !status) return
  let entries: Promise<SearchEntry[]> | undefined
  let active = 0

  const open = () => {
    entries ??= fetch('/docs/search.json').then(response => response.json())
    if (!dialog.open) dialog.showModal()
    input.select()
  }
  for (const button of document.querySelectorAll('[data-search]')) button.addEventListener('click', open)
  document.addEventListener('keydown', event => {
    const isTyping = event.target instanceof Element && event.target.matches('input, textarea, select')
    const isShortcut = (event.key === '/' && !isTyping) || (event.key === 'k' && (event.ctrlKey || event.metaKey))
    if (!isShortcut) return
    event.preventDefault()
    open()
  })
  dialog.addEventListener('click', event => {
    if (event.target === dialog) dialog.close()
  })

  const activate = (index: number) => {
    const options = [...list.children]
    active = options.length === 0 ? 0 : (index + options.length) % options.length
    for (const [at, option] of options.entries()) option.setAttribute('aria-selected', `${at === active}`)
    input.setAttribute('aria-activedescendant', options[active]?.id ?? '')
    options[active]?.scrollIntoView({ block: 'nearest' })
  }
  input.addEventListener('input', async () => {
    const query = input.value
    const found = ranked((await entries) ?? [], query)
    if (query !== input.value) return
    list.replaceChildren(...found.slice(0, MAX_RESULTS).map((entry, index) => option(entry, index, wordsOf(query))))
    input.setAttribute('aria-expanded', `${found.length > 0}`)
    status.textContent = query.trim() === '' ? '' : found.length === 0 ? 'Nothing found' : `${found.length} found`
    activate(0)
  })
  input.addEventListener('keydown', event => {
    if (event.key === 'ArrowDown') activate(active + 1)
    else if (event.key === 'ArrowUp') activate(active - 1)
    else if (event.key === 'Enter') list.children[active]?.querySelector('a')?.click()
    else return
    event.preventDefault()
  })
  list.addEventListener('click', () => dialog.close())
}

const wordsOf = (query: string): string[] => query.toLowerCase().split(/\s+/).filter(Boolean)

/**
 * Returns the entries that contain every word: one with exactly this title, then operations and guides, then errors and
 * fields; among them those first whose title matches best.
 */
function ranked(entries: readonly SearchEntry[], query: string): SearchEntry[] {
  const words = wordsOf(query)
  if (words.length === 0) return []
  const scored = entries.flatMap(entry => {
    const title = entry.title.toLowerCase()
    const text = `${title} ${entry.kind} ${entry.text.toLowerCase()}`
    if (!words.every(word => text.includes(word))) return []
    const joined = words.join(' ')
    const score =
      (title === joined ? 1_000 : 0) +
      (firstKinds.includes(entry.kind) ? 100 : 0) +
      (title.startsWith(joined) ? 4 : 0) +
      words.filter(word => title.includes(word)).length * 2
    return [{ entry, score }]
  })
  return scored.sort((a, b) => b.score - a.score).map(({ entry }) => entry)
}

/** Returns the part of a text around the first word that was looked for. */
function excerpt(text: string, words: readonly string[]): string {
  const found = words.map(word => text.toLowerCase().indexOf(word)).filter(at => at >= 0)
  const start = Math.max(0, Math.min(...found, text.length) - EXCERPT_CHARACTERS / 3)
  if (text.length <= EXCERPT_CHARACTERS || found.length === 0) return text.slice(0, EXCERPT_CHARACTERS)
  return `${start > 0 ? '… ' : ''}${text.slice(start, start + EXCERPT_CHARACTERS)}`
}

function option({ kind, title, url, text }: SearchEntry, index: number, words: readonly string[]): HTMLLIElement {
  const item = document.createElement('li')
  item.role = 'option'
  item.id = `result-${index}`
  const link = document.createElement('a')
  link.href = url
  link.tabIndex = -1
  for (const [name, content] of Object.entries({ kind, title, text: excerpt(text, words) })) {
    const part = document.createElement('span')
    part.className = name
    part.textContent = content
    link.append(part)
  }
  item.append(link)
  return item
}
