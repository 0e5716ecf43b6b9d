/** Switches between light and dark, and remembers the choice. */
export function enableThemes(): void {
  document.querySelector('[data-theme-toggle]')?.addEventListener('click', () => {
    const { dataset } = document.documentElement
    const isDark = dataset.theme ? dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
    dataset.theme = isDark ? 'light' : 'dark'
    localStorage.setItem('theme', dataset.theme)
  })
}

/** Opens and closes the navigation on small screens, and scrolls it to the present page. */
export function enableMenu(): void {
  const button = document.querySelector<HTMLButtonElement>('[data-menu]')
  const navigation = document.querySelector<HTMLElement>('#navigation')
  if (button === null || navigation === null) return
  const show = (isOpen: boolean) => {
    button.setAttribute('aria-expanded', `${isOpen}`)
    navigation.classList.toggle('open', isOpen)
  }
  button.addEventListener('click', () => show(button.getAttribute('aria-expanded') !== 'true'))
  document.addEventListener('keydown', event => {
    if (event.key !== 'Escape' || button.getAttribute('aria-expanded') !== 'true') return
    show(false)
    button.focus()
  })
  const current = navigation.querySelector<HTMLElement>('[aria-current]')
  if (current) navigation.scrollTop = Math.max(0, current.offsetTop - navigation.clientHeight / 3)
}

/** Copies what a panel shows. */
export function enableCopying(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>('[data-copy]'))
    button.addEventListener('click', async () => {
      const text = button.closest('section')?.querySelector('pre:not([hidden])')?.textContent ?? ''
      await navigator.clipboard.writeText(text).then(
        () => (button.textContent = 'Copied'),
        () => (button.textContent = 'Not allowed'),
      )
      setTimeout(() => (button.textContent = 'Copy'), 1_500)
    })
}

/** Shows only the errors that contain every word of the filter. */
export function enableFilter(): void {
  const input = document.querySelector<HTMLInputElement>('[data-filter]')
  const count = document.querySelector('[data-filter-count]')
  if (input === null || count === null) return
  input.addEventListener('input', () => {
    const words = input.value.toLowerCase().split(/\s+/)
    let shown = 0
    for (const group of document.querySelectorAll<HTMLElement>('[data-filter-group]')) {
      let inGroup = 0
      for (const item of group.querySelectorAll<HTMLElement>('[data-filter-item]')) {
        const text = (item.textContent ?? '').toLowerCase()
        item.hidden = !words.every(word => text.includes(word))
        if (!item.hidden) inGroup++
      }
      group.hidden = inGroup === 0
      shown += inGroup
    }
    count.textContent = `${shown} codes`
  })
}
