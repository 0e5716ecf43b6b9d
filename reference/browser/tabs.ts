const LANGUAGE = 'language'

/** Makes tabs of the samples and examples. The chosen language stays for other pages. */
export function enableTabs(): void {
  for (const section of document.querySelectorAll<HTMLElement>('[data-tabs]')) {
    const tabs = [...section.querySelectorAll<HTMLElement>('[role=tab]')]
    const select = (tab: HTMLElement) => {
      for (const other of tabs) {
        const isSelected = other === tab
        other.setAttribute('aria-selected', `${isSelected}`)
        other.tabIndex = isSelected ? 0 : -1
        const panel = document.getElementById(other.getAttribute('aria-controls') ?? '')
        if (panel) panel.hidden = !isSelected
      }
      if ('samples' in section.dataset) localStorage.setItem(LANGUAGE, tab.id)
    }
    for (const [index, tab] of tabs.entries()) {
      tab.addEventListener('click', () => select(tab))
      tab.addEventListener('keydown', event => {
        const places: Record<string, number> = {
          ArrowRight: index + 1,
          ArrowLeft: index - 1,
          Home: 0,
          End: tabs.length - 1,
        }
        const place = places[event.key]
        const next = place === undefined ? undefined : tabs[(place + tabs.length) % tabs.length]
        if (next === undefined) return
        event.preventDefault()
        select(next)
        next.focus()
      })
    }
    const remembered = tabs.find(({ id }) => 'samples' in section.dataset && id === localStorage.getItem(LANGUAGE))
    if (remembered) select(remembered)
  }
}
